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
    from taufit.recording.finding import Finding
    from taufit.robot.held_joints import RecordedChain
    from taufit.workflow.draft import FilesDraft


def write_draft(
    recordings: Sequence[Path], output: Path, *, robot: str | None, topic: str | None, as_json: bool
) -> None:
    """Draft a column map, read the recordings with it, write it."""
    from taufit.core.files import write_text
    from taufit.recording import read_recordings
    from taufit.recording.draft import draft_text
    from taufit.recording.files import find_recordings
    from taufit.workflow.draft import draft_files, read_with_draft
    from taufit.workflow.recorded_chain import chain_of_files

    paths = find_recordings(recordings, allow_repeats=True).paths
    robot_path = None if robot else find_robot_file(paths)
    robot = robot or (None if robot_path is None else str(robot_path))
    chain = None if robot is None else chain_of_files(robot, paths, topic)
    arm = robot if chain is None else chain.read(str(robot))
    result = draft_files(paths, robot=arm, topic=topic)
    draft, runs = result.draft, read_with_draft(result, topic)
    if draft is None and robot is None:
        robot = read_recordings(paths[0], topic=topic)[0].meta.get("robot")
    command = _fit_command(result, robot, output, topic, chain)
    if draft is not None:
        write_text(output, draft_text(draft, ", ".join(path.name for path in paths)))
    findings = [f for run in runs for f in run.findings if f.severity != "info"]
    if as_json:
        files = {"file": str(recordings[0]), "files": [str(path) for path in paths]}
        shape = {"runs": len(runs), "joints": runs[0].joints if runs else None}
        next_command = f"taufit {shlex.join(command)}"
        texts = {"findings": [finding.to_dict() for finding in findings], "next": next_command}
        print_json({**files, **_draft_page(draft, output), **shape, **texts})
        return
    if robot_path is not None:
        print(f"  the robot is {robot_path}, which lies beside the recording (--robot: another)")
    if chain is not None:
        print(f"  {chain.description}")
    if draft is None:
        print(f"{paths[0]} says itself what its columns are: no map is needed.")
    else:
        _print_draft(draft, warnings_of_runs(findings), output)
    if robot is None:
        print("Next: `taufit inspect` lists bundled robots; a URDF is a ROBOT too. Then:")
    elif draft is not None and draft.unknowns:
        print("Then:")
    else:
        print(next_step(*command))
        return
    print(f"  taufit {shlex.join(command)}")


def _fit_command(
    result: FilesDraft,
    robot: str | None,
    output: Path,
    topic: str | None,
    chain: RecordedChain | None,
) -> list[str]:
    """Arguments of the fit that follows a draft.

    Magnitudes of current beside commands are those of a servo, whose model needs no torque.
    """
    page = {} if result.draft is None else result.draft.page
    is_servo = page.get("signed") is False and "commanded_position" in page["columns"]
    command = ["servo" if is_servo else "fit", robot or "ROBOT", *map(str, result.paths)]
    command += [] if result.draft is None else ["--map", str(output)]
    command += [] if topic is None else ["--topic", topic]
    command += [] if chain is None else chain.options
    command += ["--holdout", "30%"]
    if result.draft is not None and result.draft.contradicts_gravity:
        command += ["--write-map", "corrected_map.yaml", "--apply-remedy"]
    return command


def _draft_page(draft: Draft | None, output: Path) -> dict[str, Any]:
    """Draft as plain data for JSON."""
    if draft is None:
        empty: dict[str, Any] = {"reasons": [], "open": [], "rivals": [], "unknowns": {}}
        return {**empty, "draft": None, "map": None}
    return {
        "reasons": list(draft.reasons),
        "open": list(draft.open_questions),
        "rivals": list(draft.rivals),
        "unknowns": dict(draft.unknowns),
        "draft": str(output),
        "map": draft.page,
    }


def warnings_of_runs(findings: Sequence[Finding]) -> list[str]:
    """Texts of the findings on several runs, one for each kind, joint and column."""
    runs_by_warning: dict[tuple[object, ...], list[str]] = {}
    for finding in findings:
        runs_by_warning.setdefault((finding.kind, finding.joint, finding.column), []).append(
            str(finding)
        )
    return [
        f"{text} (likewise in {len(others)} more)" if others else text
        for text, *others in runs_by_warning.values()
    ]


def _print_draft(draft: Draft, warnings: list[str], output: Path) -> None:
    lines = [f"  {reason}" for reason in draft.reasons]
    lines += [f"  check: {item}" for item in draft.open_questions]
    lines += [f"  rival: {rival}" for rival in draft.rivals]
    lines += [f"  warning: {text}" for text in warnings]
    lines += [f"Written: {output}"]
    lines += [f"Replace ??? of `{key}` in {output}: {text}." for key, text in draft.unknowns]
    print(complete_commands("\n".join(lines)))
