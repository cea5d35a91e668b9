"""`taufit convert FILE --draft MAP`: drafted column map, tested before it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.cli.common import print_json

if TYPE_CHECKING:
    from taufit.recording.draft import Draft


def write_draft(
    recording: Path, output: Path, *, robot: str | None, topic: str | None, as_json: bool
) -> None:
    """Draft a column map, read the recording with it, write it."""
    from taufit.core.files import write_text
    from taufit.recording import read_map, read_recordings
    from taufit.recording.draft import draft_text

    draft = draft_column_map(recording, robot=robot, topic=topic)
    recordings = (
        []
        if draft is None
        else read_recordings(recording, column_map=read_map(draft.page), topic=topic)
    )
    robot_name = robot or "ROBOT"
    if draft is None:
        text = f"{recording} needs no map: its columns are recognised."
        next_command = f"taufit fit {robot_name} {recording} --holdout 30%"
    else:
        write_text(output, draft_text(draft, recording.name))
        text = f"Written: {output}"
        next_command = f"taufit fit {robot_name} {recording} --map {output} --holdout 30%"
    findings = [
        f for recording_read in recordings for f in recording_read.findings if f.severity != "info"
    ]
    if as_json:
        print_json(
            {
                "file": str(recording),
                "draft": None if draft is None else str(output),
                "map": None if draft is None else draft.page,
                "reasons": [] if draft is None else list(draft.reasons),
                "open": [] if draft is None else list(draft.open_questions),
                "runs": len(recordings),
                "joints": recordings[0].joints if recordings else None,
                "findings": [finding.to_dict() for finding in findings],
                "next": next_command,
            }
        )
        return
    for reason in () if draft is None else draft.reasons:
        print(f"  {reason}")
    for item in () if draft is None else draft.open_questions:
        print(f"  check: {item}")
    for text_ in dict.fromkeys(str(finding) for finding in findings):
        print(f"  warning: {text_}")
    print(f"{text}\nNext: `{next_command}`")


def draft_column_map(
    recording: Path, *, robot: str | None = None, topic: str | None = None
) -> Draft | None:
    """Draft a column map; None for files that describe their columns."""
    from taufit.recording.draft import draft_map
    from taufit.recording.read import read_table

    table = read_table(recording, topic=topic)
    if table is None:
        return None
    robot_data: dict[str, Any] = {}
    if robot is not None:
        from taufit.dynamics import gravity_torque
        from taufit.robot import read_robot

        arm = read_robot(robot)
        robot_data = {"joints": arm.joints, "joint_names": arm.joint_names}
        if arm.parameters.any():
            robot_data["gravity"] = lambda position: gravity_torque(arm, position)
    return draft_map(table, **robot_data)
