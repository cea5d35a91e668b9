"""`taufit contact`: what touches the arm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import Json, Model, RecordingOptions, Report, numbers, usage_error

if TYPE_CHECKING:
    from taufit.contact import ContactRun, ContactSettings, Sensitivity
    from taufit.model import FittedModel, NoiseByState


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """How often it may be wrong, and where the tool is."""

    alarms_per_hour: Annotated[
        float, typer.Option(help="False alarms that are accepted.", metavar="RATE")
    ] = 1.0
    tool: Annotated[
        str, typer.Option(help="Where forces act, in the tip's frame in metres.", metavar="X,Y,Z")
    ] = "0,0,0"

    def settings(self) -> ContactSettings:
        """As the library takes them."""
        from taufit.contact import ContactSettings
        from taufit.core.errors import TaufitError

        x, y, z = numbers(self.tool, "--tool", 3)
        try:
            return ContactSettings(alarms_per_hour=self.alarms_per_hour, tool=(x, y, z))
        except TaufitError as error:
            usage_error("--alarms-per-hour", str(error))


def command(
    model: Model,
    source: RecordingOptions,
    how: DetectionOptions,
    recording: Annotated[
        Path | None,
        typer.Argument(help="In which contacts are looked for.", metavar="[RECORDING]"),
    ] = None,
    free: Annotated[
        list[Path] | None,
        typer.Option(
            help="Recordings of the robot's own work in which nothing touches it; repeatable. They "
            "say how large residuals are in each friction state, and what an alarm needs.",
            metavar="RUN",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The model with the noise of --free in it.", metavar="FILE"
        ),
    ] = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Find contacts in a recording, with force, link and a stated rate of false alarms.

    External joint torque is what the model needs less what was measured; its noise depends on
    what friction is doing. With --free and no RECORDING it says what can be found: the smallest
    step per joint, the share of 20 N pulses, the minutes that the stated rate rests on.

    This is no safety function: it is not rated and takes tens of milliseconds; it is blind to
    forces through the axes and to what friction holds at standstill. For 0.3 s after a start it
    hardly feels anything.

    Next: record more of the robot's work without contact and give it with --free, or export the
    thresholds to C with `taufit export MODEL --format c`.
    """
    from time import process_time

    from taufit.contact import find_contacts, refine_noise
    from taufit.model.model_file import read_model, write_model

    started = process_time()
    if recording is None and not free:
        usage_error(
            "RECORDING", "give a recording to look at, or --free RUN to learn from, or both."
        )
    if report is not None and recording is None:
        usage_error("--report", "a page needs a RECORDING to show.")
    settings = how.settings()
    fitted = read_model(model)
    noise = fitted.training.noise
    quiet = [source.read_one(path) for path in free or ()]
    if quiet:
        with progress("contact") as bar:
            bar.add_task(f"learning from {len(quiet)} contact-free recordings", total=None)
            noise = refine_noise(fitted, quiet)
        fitted = fitted.with_training(replace(fitted.training, noise=noise))
    if output is not None:
        if not quiet:
            usage_error("--output", "there is nothing to store without --free RUN.")
        write_model(fitted, output)
    told: dict[str, Any] = {"model": str(model), "robot": fitted.robot.name}
    if output is not None:
        told["written"] = str(output)
    if recording is None:
        found = _what_can_be_found(fitted, quiet, settings)
        told |= found
        told["cpu_seconds"] = process_time() - started
        print_json(told) if as_json else _show_found(found, output)
        return
    with progress("contact") as bar:
        task = bar.add_task("looking for contacts", total=None)
        carried = source.read_one(recording)
        done = find_contacts(
            fitted, carried, noise=noise, settings=settings, callback=lambda _: bar.update(task)
        )
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.contact_page import contact_page

        write_text(report, contact_page(done, fitted, str(recording)))
    if as_json:
        told |= {"recording": str(recording), **done.to_dict()}
        told["cpu_seconds"] = process_time() - started
        print_json(told)
    else:
        _show(done, fitted, report, output)
    if done.refusal:
        from taufit.core.errors import InfeasibleError

        raise InfeasibleError(f"no contact is named: {done.refusal}")


def _what_can_be_found(fitted: FittedModel, quiet: list[Any], settings: Any) -> dict[str, Any]:
    from taufit.contact import ContactDetector, ContactKind, detectable_torque_steps, sensitivity

    noise = fitted.training.noise
    assert noise is not None and noise.tail is not None
    threshold = ContactDetector(fitted, noise, settings=settings).threshold
    with progress("contact") as bar:
        bar.add_task("putting contacts in", total=None)
        pulses = sensitivity(fitted, quiet, ContactKind(), noise=noise, settings=settings)
    return {
        "threshold": detectable_torque_steps(noise, threshold).tolist(),
        "evidence_threshold": threshold,
        "false_alarms_per_hour": settings.alarms_per_hour,
        "rests_on_minutes": noise.tail.minutes,
        "free_runs": noise.runs,
        "pulses": _plain(pulses),
        "noise": _noise(noise),
        "safety_function": False,
    }


def _plain(found: Sensitivity) -> dict[str, Any]:
    kind = found.kind
    return {
        "force": kind.force,
        "seconds": kind.seconds,
        "place": "tool",
        "count": found.count,
        "share": found.share,
        "median_delay": found.median,
        "late_delay": found.late,
        "text": str(found),
    }


def _noise(noise: NoiseByState) -> dict[str, Any]:
    from taufit.terms.friction.states import STATES

    return {
        state: {
            "level": noise.level[k].tolist(),
            "white": noise.white[k].tolist(),
            "seconds": noise.seconds[k].tolist(),
        }
        for k, state in enumerate(STATES)
    }


def _show_found(found: dict[str, Any], output: Path | None) -> None:
    from taufit.cli.common import plain_console

    console = plain_console()
    steps = "  ".join(f"{x:.2g}" for x in found["threshold"])
    lines = [
        f"Smallest step of external torque found within 0.2 s in fast motion, joint by joint: "
        f"{steps} N m.",
        f"{found['pulses']['text']}.",
        f"{found['false_alarms_per_hour']:g} false alarms per hour, extrapolated from "
        f"{found['rests_on_minutes']:.1f} contact-free minutes of {found['free_runs']} recordings.",
    ]
    if output is not None:
        lines.append(f"Written: {output}")
    lines.append("Next: `taufit contact MODEL RECORDING` looks for contacts with it.")
    for line in lines:
        console.print(line)


def _show(done: ContactRun, fitted: FittedModel, report: Path | None, output: Path | None) -> None:
    from taufit.cli.common import plain_console

    console = plain_console()
    rate = done.settings.alarms_per_hour
    count = len(done.contacts)
    lines = [
        f"{count or 'No'} contact{'' if count == 1 else 's'} in {done.seconds:.1f} s of "
        f"{fitted.robot.name}, at {rate:g} false alarms per hour."
    ]
    if done.refusal:
        lines = [f"no result  {fitted.robot.name}: what touches it is not known."]
    for contact in () if done.refusal else done.contacts:
        late = contact.detection_time - contact.start_time
        until = "still lasting" if contact.end_time is None else f"until {contact.end_time:.2f} s"
        lines.append(f"  {contact}; told after {1e3 * late:.0f} ms, {until}")
    others = [e for e in done.events if e.kind in ("gap", "stop beyond training")]
    lines += [f"  {event.time:.2f} s: {event.kind}: {event.text}" for event in others]
    lines += [f"warning: {text}" for text in done.warnings]
    lines += [f"Written: {path}" for path in (report, output) if path is not None]
    lines.append("Not a safety function. Next: give contact-free recordings with --free.")
    for line in lines:
        console.print(line)
