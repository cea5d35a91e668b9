"""`taufit convert FILE --draft MAP`: a column map to start from, tried before it is handed out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.cli.common import print_json

if TYPE_CHECKING:
    from taufit.recording.draft import Draft


def write_draft(
    recording: Path, output: Path, *, robot: str | None, topic: str | None, as_json: bool
) -> None:
    """Draft a map for a recording, read the recording with it, write it."""
    from taufit.core.files import write_text
    from taufit.recording import read_map, read_recordings
    from taufit.recording.draft import draft_text

    draft = drafted(recording, robot=robot, topic=topic)
    read = (
        []
        if draft is None
        else read_recordings(recording, column_map=read_map(draft.page), topic=topic)
    )
    arm = robot or "ROBOT"
    if draft is None:
        text = f"{recording} says itself what its columns are: no map is needed."
        following = f"taufit fit {arm} {recording} --holdout 30%"
    else:
        write_text(output, draft_text(draft, recording.name))
        text = f"Written: {output}"
        following = f"taufit fit {arm} {recording} --map {output} --holdout 30%"
    findings = [f for one in read for f in one.findings if f.severity != "info"]
    if as_json:
        print_json(
            {
                "file": str(recording),
                "draft": None if draft is None else str(output),
                "map": None if draft is None else draft.page,
                "reasons": [] if draft is None else list(draft.reasons),
                "open": [] if draft is None else list(draft.open),
                "runs": len(read),
                "joints": read[0].joints if read else None,
                "findings": [finding.to_dict() for finding in findings],
                "next": following,
            }
        )
        return
    for reason in () if draft is None else draft.reasons:
        print(f"  {reason}")
    for item in () if draft is None else draft.open:
        print(f"  check: {item}")
    for text_ in dict.fromkeys(str(finding) for finding in findings):
        print(f"  warning: {text_}")
    print(f"{text}\nNext: `{following}`")


def drafted(recording: Path, *, robot: str | None = None, topic: str | None = None) -> Draft | None:
    """The draft, or None for files that say themselves what their columns are."""
    from taufit.recording.draft import draft_map
    from taufit.recording.read import read_table

    table = read_table(recording, topic=topic)
    if table is None:
        return None
    known: dict[str, Any] = {}
    if robot is not None:
        from taufit.dynamics import gravity_torque
        from taufit.robot import read_robot

        arm = read_robot(robot)
        known = {"joints": arm.joints, "joint_names": arm.joint_names}
        if arm.parameters.any():
            known["gravity"] = lambda position: gravity_torque(arm, position)
    return draft_map(table, **known)
