"""`taufit fit`: a robot and recordings in, a model and its scores out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress

if TYPE_CHECKING:
    from rich.table import Table

    from taufit.recording import Recording
    from taufit.signs.hints import SignHint
    from taufit.validation import Verdict
    from taufit.workflow import Identification


def command(
    robot: Annotated[
        str, typer.Argument(help="A bundled name, .urdf, .xacro or .yaml.", metavar="ROBOT")
    ],
    recording: Annotated[
        list[Path],
        typer.Argument(help="What was measured; several are fitted together.", metavar="RECORDING"),
    ],
    map: Annotated[
        Path | None, typer.Option("--map", help="YAML that says what the columns are.")
    ] = None,
    friction: Annotated[
        str, typer.Option(help="auto, or the name of a friction model.", metavar="NAME")
    ] = "auto",
    estimator: Annotated[
        str, typer.Option(help="auto, or the name of an estimator.", metavar="NAME")
    ] = "auto",
    holdout: Annotated[
        list[Path] | None,
        typer.Option("--holdout", help="Recording kept out of the fit, to score it. Repeatable."),
    ] = None,
    holdout_map: Annotated[
        Path | None, typer.Option(help="Column map of the hold-outs, where it is another.")
    ] = None,
    cutoff_hz: Annotated[
        str,
        typer.Option(
            help="Zero-phase 4th-order low-pass for motion and torque alike, or auto.", metavar="HZ"
        ),
    ] = "10",
    rotor_inertia: Annotated[
        bool | None,
        typer.Option(
            "--rotor-inertia/--no-rotor-inertia",
            help="One per joint; by default where torque was measured at the motor.",
        ),
    ] = None,
    no_offset: Annotated[
        bool, typer.Option("--no-offset", help="No constant torque offset per joint.")
    ] = False,
    torque_signs: Annotated[
        str, typer.Option(help="recorded, or unknown where only magnitudes were.")
    ] = "recorded",
    sign_hint: Annotated[
        list[str] | None,
        typer.Option(
            "--sign-hint",
            help="Sign of a stretch you know, e.g. 2:3.1-4.0:+ for joint 2 from 3.1 to 4.0 s; "
            "@RUN behind it in another run than the first. Repeatable.",
            metavar="JOINT:T0-T1:SIGN",
        ),
    ] = None,
    temperature: Annotated[
        str,
        typer.Option(
            help="How friction follows joint temperature: auto, none, linear, exponential, "
            "arrhenius, or thermal-model (estimated where there is no sensor)."
        ),
    ] = "auto",
    mounting: Annotated[
        str | None, typer.Option(help="ground, ceiling, wall or ROLL,PITCH,YAW in degrees.")
    ] = None,
    base: Annotated[str | None, typer.Option(help="Link of a URDF to start the chain at.")] = None,
    tip: Annotated[str | None, typer.Option(help="Link of a URDF to end the chain at.")] = None,
    run: Annotated[
        int | None, typer.Option(help="One run of files that hold several.", metavar="K")
    ] = None,
    max_mean_nrmse: Annotated[
        float | None, typer.Option(help="Refuse a model whose mean nrmse is above this.")
    ] = None,
    max_nrmse: Annotated[
        float | None, typer.Option(help="Refuse a model with any joint's nrmse above this.")
    ] = None,
    max_rmse: Annotated[
        str | None, typer.Option(help="Refuse above this RMSE [N m]; one, or one per joint: A,B,..")
    ] = None,
    min_correlation: Annotated[
        float | None, typer.Option(help="Refuse a model with any joint's correlation below this.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="One HTML page about the fit.", metavar="FILE.html")
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Fit although the recording contradicts the robot."),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Fitted model.", metavar="MODEL")
    ] = Path("model.json"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Fit a robot's dynamic model to recorded motion and torque.

    With the defaults the model is physically possible, its friction terms are those the recording
    supports, and its links lean on the nominal robot only where the motion shows nothing. Limits
    (--max-..., --min-...) are tested on the hold-outs if there are any, else on the training data.

    Next: `taufit check MODEL RECORDING` tests it on recordings it has not seen.
    """
    from time import process_time

    from taufit.model.model_file import write_model
    from taufit.robot import read_robot
    from taufit.temperature.apply import TEMPERATURE_CHOICES
    from taufit.validation import Limits, verdict
    from taufit.workflow import identify
    from taufit.workflow.identify import file_hash

    started = process_time()
    model = _friction(friction)
    method = _estimator(estimator)
    cutoff = _cutoff(cutoff_hz)
    if torque_signs not in ("recorded", "unknown"):
        raise typer.BadParameter("use recorded or unknown.", param_hint="--torque-signs")
    if temperature not in TEMPERATURE_CHOICES:
        raise typer.BadParameter(
            f"{temperature!r} is not known; use {', '.join(TEMPERATURE_CHOICES)}.",
            param_hint="--temperature",
        )
    limits = Limits(max_mean_nrmse, max_nrmse, _numbers(max_rmse), min_correlation)
    kept_out = list(holdout or [])

    with progress("fit") as bar:
        task = bar.add_task("reading", total=len(recording) + len(kept_out) + 2)
        recordings: list[Recording] = []
        for path in recording:
            recordings += _read(path, map, run)
            bar.advance(task)
        others: dict[str, list[Recording]] = {}
        for path in kept_out:
            others[str(path)] = _read(path, holdout_map or map, run)
            bar.advance(task)
        told = mounting if mounting is not None else recordings[0].meta.get("mounting")
        arm = read_robot(robot, base=base, tip=tip, mounting=told)
        bar.update(task, description="fitting")
        done = identify(
            arm,
            recordings,
            holdout=others,
            friction=model,
            estimator=method,
            cutoff_hz=cutoff,
            rotor_inertia=rotor_inertia,
            offset=not no_offset,
            torque_signs=torque_signs,  # type: ignore[arg-type]
            sign_hints=_sign_hints(sign_hint, arm.joint_names),
            temperature=temperature,
            force=force,
            provenance={
                "recordings": [{"file": p.name, "sha256": file_hash(p)} for p in recording],
                "holdout": [{"file": p.name, "sha256": file_hash(p)} for p in kept_out],
                "map": None if map is None else {"file": map.name, "sha256": file_hash(map)},
                "robot_file": robot
                if not Path(robot).exists()
                else {"file": Path(robot).name, "sha256": file_hash(robot)},
            },
        )
        bar.advance(task)
        judged = verdict(done.holdout or (done.training,), limits)
        refused = limits.given and not judged.passed
        if not refused:
            write_model(done.model, output)
            if report is not None:
                _report(done, report)
        bar.advance(task)

    if as_json:
        data = done.to_dict()
        data |= judged.to_dict()
        data["model"] = None if refused else str(output)
        data["cpu_seconds"] = process_time() - started
        print_json(data)
    else:
        _show(done, judged, output, refused)
    if refused:
        from taufit.errors import InfeasibleError

        raise InfeasibleError(
            "the model does not reach the limits, so nothing was written: "
            f"{'; '.join(judged.reasons)}."
        )


def _friction(name: str) -> Any:
    from taufit.friction import FRICTION_MODELS

    if name == "auto":
        return "auto"
    if name not in FRICTION_MODELS:
        raise typer.BadParameter(
            f"{name!r} is not known; use auto, {', '.join(FRICTION_MODELS)}.",
            param_hint="--friction",
        )
    return None if name == "none" else FRICTION_MODELS[name]()


def _estimator(name: str) -> Any:
    from taufit.estimators import ESTIMATORS

    if name == "auto":
        return None
    if name not in ESTIMATORS:
        raise typer.BadParameter(
            f"{name!r} is not known; use auto, {', '.join(ESTIMATORS)}.", param_hint="--estimator"
        )
    return ESTIMATORS[name]()


def _cutoff(text: str) -> Any:
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a frequency in Hz nor auto.", param_hint="--cutoff-hz"
        ) from None
    if not 0.0 < value < 1e6:
        raise typer.BadParameter("give a positive frequency in Hz.", param_hint="--cutoff-hz")
    return value


def _sign_hints(texts: list[str] | None, joint_names: tuple[str, ...]) -> list[SignHint]:
    from taufit.errors import TaufitError
    from taufit.signs.hints import read_hint

    try:
        return [read_hint(text, joint_names) for text in texts or []]
    except TaufitError as error:
        raise typer.BadParameter(str(error), param_hint="--sign-hint") from None


def _numbers(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no list of numbers: A,B,...", param_hint="--max-rmse"
        ) from None


def _read(path: Path, map: Path | None, run: int | None) -> list[Recording]:
    from dataclasses import replace

    from taufit.recording import read_recording, read_recordings

    if run is not None:
        found = [read_recording(path, map=map, run=run)]
    else:
        found = read_recordings(path, map=map)
    # Refusals and warnings name the file even where it does not name itself.
    return [replace(one, meta={"file": path.name, **one.meta}) for one in found]


def _report(done: Identification, path: Path) -> None:
    from taufit.files import write_text
    from taufit.report import fit_page

    write_text(path, fit_page(done))


def _show(done: Identification, judged: Verdict, output: Path, refused: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    train, estimate = done.training, done.estimate
    tested = done.holdout
    unseen = done.mean_holdout_nrmse
    share = train.mean_nrmse if unseen is None else unseen
    where = f"{len(tested)} recording(s) it has not seen" if tested else "its own training data"
    kind = "physically possible" if done.consistent else "NOT physically possible"
    console.print(
        f"[bold]{judged.word}[/bold]  {escape(done.model.robot.name)}: {100 * share:.1f} % of the "
        f"torque is left unexplained on {where}; the arm is {kind}.",
        highlight=False,
    )
    console.print(score_table(f"nrmse per joint, low-pass {train.cutoff_hz:g} Hz", done))
    links = sum(name.startswith("link") for name in estimate.base_names)
    console.print(
        f"{train.seconds:.1f} s of motion, {len(estimate.base_names)} base parameters ({links} of "
        f"the links), condition {estimate.condition_number:.0f}. Single link masses are one choice "
        "among many with equal torque; only base parameters are measured.",
        highlight=False,
    )
    if done.signs is not None:
        found = done.signs
        console.print(
            f"Torque signs: {len(found.segments)} segments, {int(found.ambiguous.sum())} "
            f"ambiguous; {'proven optimal' if found.certified else 'not proven'}, "
            f"{'trustworthy' if found.confident else 'in doubt: see the warnings'}.",
            highlight=False,
        )
    if estimate.dropped:
        console.print(
            f"Friction terms the data do not support: {_grouped(estimate.dropped)}.",
            highlight=False,
            markup=False,
        )
    from taufit.temperature.apply import spoken_slopes

    for text in spoken_slopes(done.model):
        console.print(text, highlight=False, markup=False)
    for text in done.warnings:
        console.print(f"warning: {text}", highlight=False, markup=False)
    if refused:
        return
    console.print(
        f"Written: {output}\nNext: `taufit check {output} RECORDING` tests it on recordings it has "
        "not seen.",
        highlight=False,
        markup=False,
    )


def score_table(title: str, done: Identification) -> Table:
    """One row per recording, one column per joint."""
    from rich import box
    from rich.table import Table

    train, joints = done.training, done.model.robot.joints
    # Without vertical lines seven joints fit 80 columns.
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("recording", overflow="fold")
    for j in range(joints):
        table.add_column(f"J{j + 1}", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", style="bold", no_wrap=True)
    for label, one in (("training", train), *((_short(s.file), s) for s in done.holdout)):
        table.add_row(label, *(f"{x:.3f}" for x in one.nrmse), f"{one.mean_nrmse:.3f}")
    table.add_section()
    table.add_row("RMSE training [N m]", *(f"{x:.2f}" for x in train.rmse), "")
    if done.before is not None:
        table.add_row("  nominal robot", *(f"{x:.2f}" for x in done.before.nominal.rmse), "")
    return table


def _grouped(names: tuple[str, ...]) -> str:
    """("joint_1.load", "joint_2.load") as "load (joints 1, 2)"."""
    joints: dict[str, list[str]] = {}
    for name in names:
        joint, term = name.split(".", 1)
        group = "presliding" if term.startswith("presliding") else term
        number = joint.removeprefix("joint_")
        if number not in joints.setdefault(group, []):
            joints[group].append(number)
    return ", ".join(
        f"{group} (joint{'s' if len(which) > 1 else ''} {', '.join(which)})"
        for group, which in joints.items()
    )


def _short(path: str) -> str:
    name = Path(path).name
    for suffix in (".gz", ".csv", ".parquet", ".mcap"):
        name = name.removesuffix(suffix)
    return name
