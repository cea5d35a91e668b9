"""`taufit convert`: quality report and conversion of a recording."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from taufit.cli.options import Json, RecordingOptions, require_mounting
from taufit.cli.parts.next_step import complete_commands, next_step
from taufit.cli.parts.robot_file import find_robot_file
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError


@dataclass(frozen=True, slots=True)
class ArmOptions:
    """Robot data that the file lacks."""

    robot: Annotated[
        str | None,
        typer.Option("--robot", help="Bundled name or file; joints are put in its order."),
    ] = None
    mounting: Annotated[
        str | None,
        typer.Option("--mounting", help="Mounting: ground, ceiling, wall or ROLL,PITCH,YAW [deg]."),
    ] = None
    payload: Annotated[
        float | None, typer.Option("--payload", help="Mass of the payload [kg].", metavar="KG")
    ] = None


def command(
    recording: Annotated[
        list[Path],
        typer.Argument(
            help="File of the robot or logger, or all files of a run.", metavar="RECORDING"
        ),
    ],
    source: RecordingOptions,
    about: ArmOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .parquet, .csv[.gz], .tsv, .npz, .mcap; no suffix: ROS 2 bag.",
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Report the quality only.")] = False,
    draft: Annotated[
        Path | None,
        typer.Option(
            "--draft", help="Column map to write, drafted from names and numbers.", metavar="MAP"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a recording, report its quality, write it as Parquet, CSV or MCAP.

    RECORDING: .parquet, .csv, .tsv, .txt (also .gz), .npz, .npy, .mat, .h5, .mcap, .bag, a ROS 2
    bag or LeRobot directory, a UR RTDE record, or the .live file of an unfinished recording.

    Without -o and --report it is written under RECORDING's name with .parquet into this directory.
    A file with several runs becomes one file per run, unless --run selects one. With --draft
    nothing
    is converted: a column map is drafted from names and numbers, tested, and written. A run with
    one file per quantity is given with all its files, as a folder or a pattern.

    Next: `taufit fit ROBOT RECORDING.parquet` fits a model to it.
    """
    from taufit.cli.common import print_json, progress
    from taufit.recording import recording_quality, reorder_joints, write_recording

    if draft is not None:
        from taufit.cli.parts.map_draft import write_draft

        write_draft(recording, draft, robot=about.robot, topic=source.topic, as_json=as_json)
        return
    path = _single_run(recording, source)
    recordings = source.runs(path, payload=about.payload)
    arm = None
    if about.robot is not None or about.mounting is not None:
        arm, robot_meta = _read_robot(about.robot, about.mounting)
        recordings = [replace(r, meta={**r.meta, **robot_meta}) for r in recordings]
        if arm is not None:
            recordings = [reorder_joints(r, arm.joint_names, robot=arm.name) for r in recordings]
    outputs: list[Path | None] = [None] * len(recordings)
    if output is not None or not report:
        outputs = [*_output_paths(path, output, recordings)]
        for run, target in zip(recordings, outputs, strict=True):
            assert target is not None
            write_recording(run, target)
    pages = []
    with progress("checking") as bar:
        task = bar.add_task("checking", total=len(recordings))
        for run, target in zip(recordings, outputs, strict=True):
            findings = [*run.findings, *_signal_findings(run, arm)]
            pages.append(_run_to_dict(run, recording_quality(run), findings, target))
            bar.advance(task)
    if as_json:
        first = pages[0] if len(pages) == 1 else {}
        print_json({"file": str(path), **first, "runs": pages})
        return
    for page in pages if len(pages) <= 5 or report else pages[:1]:
        print(complete_commands("\n".join(_wrap_lines(_run_lines(path, page)))))
    if len(pages) > 5 and not report:
        print(f"... and {len(pages) - 1} more runs; --report shows them all")
    for target in [target for target in outputs if target is not None][:5]:
        print(f"written: {target}")
    if len(pages) > 5 and outputs[0] is not None:
        print(f"written: {len(pages)} files in all")
    robots = [about.robot, recordings[0].meta.get("robot")]
    print(_next_line(robots, [*outputs, path], pages[0]["findings"]))


def _next_line(
    robots: Sequence[str | None], files: Sequence[Path | None], findings: list[dict[str, Any]]
) -> str:
    robot = next(filter(None, robots), None)
    file = next(filter(None, files))
    robot_path = find_robot_file([file]) if robot is None else None
    robot = robot or (None if robot_path is None else str(robot_path))
    if robot is None:
        return (
            "Next: `taufit inspect` lists bundled robots; a URDF is a ROBOT too. Then:\n"
            f"  taufit fit ROBOT {shlex.quote(str(file))} --holdout 30%"
        )
    options = {"--holdout": "30%"}
    for finding in findings:
        words = finding.get("remedy", {}).get("options", [])
        options |= dict(zip(words[::2], words[1::2], strict=True))
    option_words = [word for pair in options.items() for word in pair]
    if any(finding["kind"] == "sign" for finding in findings):
        option_words += ["--write-map", "corrected_map.yaml", "--apply-remedy"]
    return next_step("fit", robot, file, *option_words, purpose="fits a model to it.")


def _single_run(paths: list[Path], source: RecordingOptions) -> Path:
    """Position file of the only run among the given files."""
    from taufit.recording.files import find_recordings

    if len(paths) == 1 and not paths[0].is_dir() and "*" not in paths[0].name:
        return paths[0]
    if len(paths) == 1 and (paths[0] / "metadata.yaml").exists():
        return paths[0]
    recording_paths = find_recordings(paths, allow_repeats=True, column_map=source.map).paths
    if len(recording_paths) > 1:
        raise RecordingError(
            f"{len(recording_paths)} files are given: {recording_paths[0]}, "
            f"{recording_paths[1]}{', ...' if recording_paths[2:] else ''}. "
            "Convert one run at a time; a run with one file per quantity needs a map that names "
            "its files (`taufit convert FILES --draft map.yaml` writes one, --map map.yaml "
            "reads them)."
        )
    return recording_paths[0]


def _read_robot(name: str | None, mounting: str | None) -> tuple[Any, dict[str, Any]]:
    about: dict[str, Any] = {}
    if mounting is not None:
        about["mounting"] = require_mounting(mounting)
    if name is None:
        return None, about
    from taufit.robot import read_robot

    arm = read_robot(name)
    if mounting is not None:
        arm = arm.with_mounting(mounting)
    return arm, {**about, "robot": arm.name}


def _output_paths(source: Path, output: Path | None, recordings: list[Any]) -> list[Path]:
    if output is None:
        stem = source.name
        for ending in (".gz", *reversed(source.suffixes)):
            stem = stem.removesuffix(ending)
        output = Path(f"{stem}.parquet")
    if output.exists() and source.exists() and output.resolve() == source.resolve():
        raise RecordingError(f"{output} is the recording itself; give another name with -o.")
    if len(recordings) == 1:
        return [output]
    # All suffixes, so that run.csv.gz becomes run_007.csv.gz.
    ending = "".join(
        s for s in output.suffixes if s in (".gz", ".parquet", ".csv", ".tsv", ".npz", ".mcap")
    )
    stem = output.name.removesuffix(ending)
    return [output.with_name(f"{stem}_{r.meta['run']:03d}{ending}") for r in recordings]


def _signal_findings(recording: Any, robot: Any) -> list[Any]:
    """Findings about the signals, beyond those of reading."""
    from taufit.diagnosis.channels import channel_findings
    from taufit.signals import quality_report

    findings = [*quality_report(recording, robot=robot), *channel_findings(recording)]
    if robot is not None:
        from taufit.calibration.excitation_check import model_findings

        findings += model_findings(robot, recording)
    return [finding for finding in findings if finding not in recording.findings]


def _run_to_dict(
    recording: Any, run_quality: Any, findings: list[Any], output: Path | None
) -> dict[str, Any]:
    page = {
        "run": recording.meta.get("run"),
        "samples": len(recording),
        "rows": recording.meta.get("rows", len(recording)),
        "joints": recording.joints,
        "robot": recording.meta.get("robot"),
        "signal_unit": recording.signal_unit,
        "torque_source": recording.torque_source,
        "signed": None if recording.signed is None else recording.signed.tolist(),
        "gain": "auto" if recording.meta.get("gains") == "auto" else recording.gain,
        "payload": recording.payload,
        **run_quality.to_dict(),
        "fields": list(recording.quantities()),
        "findings": [finding.to_dict() for finding in findings],
        "output": None if output is None else str(output),
    }
    return page


def _wrap_lines(lines: list[str]) -> list[str]:
    """Lines wrapped under their column on a terminal; unchanged for other programs."""
    import shutil
    import sys
    import textwrap

    if not sys.stdout.isatty():
        return lines
    width = max(40, shutil.get_terminal_size().columns)
    indent = "           "
    return [textwrap.fill(line, width, subsequent_indent=indent) for line in lines]


def _run_lines(source: Path, page: dict[str, Any]) -> list[str]:
    run = "" if page["run"] is None else f", run {page['run']}"
    unit = page["signal_unit"] or "raw numbers"
    lines = [
        f"{source.name}{run}: {page['samples']} samples of {page['rows']} rows, {page['joints']} "
        f"joints, {page['torque_source'].replace('_', ' ')} [{unit}]",
        f"  rate     {page['rate_hz']:.4g} Hz on average, {page['nominal_rate_hz']:.4g} Hz "
        f"nominal; steps {page['shortest_step_s'] * 1e3:.3g} to "
        f"{page['longest_step_s'] * 1e3:.3g} ms, "
        + (f"jitter {page['jitter_s'] * 1e3:.2g} ms" if page["jitter_s"] > 1e-7 else "no jitter"),
        f"  gaps     {page['gaps']}, about {page['lost_samples']} samples missing",
    ]
    rest_text = ", ".join(f"{a:.2f}-{b:.2f}" for a, b in page["rest"][:6])
    more_text = f" and {len(page['rest']) - 6} more" if len(page["rest"]) > 6 else ""
    lines.append(f"  rest     {rest_text + more_text + ' s' if rest_text else 'none'}")
    motion = page["motion"]
    lines.append(f"  motion   {f'{motion[0]:.2f}-{motion[1]:.2f} s' if motion else 'none'}")
    lines.append("  travel   " + ", ".join(f"{x:.3g}" for x in page["travel"]) + " rad")
    gain = page["gain"]
    if gain is None:
        text = "unknown"
    elif page["signal_unit"] == "N m" and all(x == 1.0 for x in gain):
        text = "none needed: torque as it is"
    elif isinstance(gain, str):
        text = "from the controller's own targets (auto)"
    else:
        text = ", ".join(f"{x:.4g}" for x in gain) + f" N m per {page['signal_unit'] or 'unit'}"
    lines.append(f"  gains    {text}")
    if page["payload"] is not None:
        lines.append(f"  payload  {page['payload']:g} kg")
    if not page["findings"]:
        lines.append("  nothing unusual")
    order = {"error": 0, "warning": 1, "info": 2}
    for item in sorted(page["findings"], key=lambda f: order[f["severity"]]):
        action = f" -> {item['action']}" if item.get("action") else ""
        lines.append(f"  {item['severity']:<8} {item['message']}{action}")
    return lines
