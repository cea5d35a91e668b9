"""`taufit convert FILES --draft MAP`: drafted column map, tested before it is written."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.cli.common import print_json
from taufit.cli.parts.next_step import complete_commands, next_step
from taufit.cli.parts.robot_file import find_robot_file

if TYPE_CHECKING:
    from taufit.recording.draft import Draft


def write_draft(
    recordings: Sequence[Path], output: Path, *, robot: str | None, topic: str | None, as_json: bool
) -> None:
    """Draft a column map, read the recordings with it, write it."""
    from taufit.core.files import write_text
    from taufit.recording.draft import draft_text
    from taufit.recording.files import find_recordings
    from taufit.workflow.draft import draft_files, read_with_draft

    paths = find_recordings(recordings, allow_repeats=True).paths
    found = None if robot else find_robot_file(paths)
    robot = robot or (None if found is None else str(found))
    result = draft_files(paths, robot=robot, topic=topic)
    draft, runs = result.draft, read_with_draft(result, topic)
    command = ["fit", robot or "ROBOT", *map(str, result.paths)]
    command += [] if draft is None else ["--map", str(output)]
    command += [] if topic is None else ["--topic", topic]
    command += ["--holdout", "30%"]
    if draft is not None and draft.contradicts_gravity:
        command += ["--write-map", "corrected_map.yaml", "--apply-remedy"]
    if draft is not None:
        write_text(output, draft_text(draft, ", ".join(path.name for path in paths)))
    findings = [f for run in runs for f in run.findings if f.severity != "info"]
    if as_json:
        about: dict[str, Any] = {"reasons": [], "open": [], "rivals": [], "unknowns": {}}
        about |= {"draft": None, "map": None}
        if draft is not None:
            about = {
                "reasons": list(draft.reasons),
                "open": list(draft.open_questions),
                "rivals": list(draft.rivals),
                "unknowns": dict(draft.unknowns),
                "draft": str(output),
                "map": draft.page,
            }
        files = {"file": str(recordings[0]), "files": [str(path) for path in paths]}
        shape = {"runs": len(runs), "joints": runs[0].joints if runs else None}
        next_command = f"taufit {shlex.join(command)}"
        texts = {"findings": [finding.to_dict() for finding in findings], "next": next_command}
        print_json({**files, **about, **shape, **texts})
        return
    if draft is None:
        print(f"{paths[0]} says itself what its columns are: no map is needed.")
    else:
        if found is not None:
            print(f"  the robot is {found}, which lies beside the recording (--robot: another)")
        _print_draft(draft, [str(finding) for finding in findings], output)
    if robot is None:
        print("Next: `taufit inspect` lists bundled robots; a URDF is a ROBOT too. Then:")
        print(f"  taufit {shlex.join(command)}")
    else:
        print(next_step(*command))


def _print_draft(draft: Draft, warnings: list[str], output: Path) -> None:
    lines = [f"  {reason}" for reason in draft.reasons]
    lines += [f"  check: {item}" for item in draft.open_questions]
    lines += [f"  rival: {rival}" for rival in draft.rivals]
    lines += [f"  warning: {text}" for text in dict.fromkeys(warnings)]
    lines += [f"Written: {output}"]
    lines += [f"Replace ??? of `{key}` in {output}: {text}." for key, text in draft.unknowns]
    print(complete_commands("\n".join(lines)))
