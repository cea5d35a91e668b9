"""`taufit contact`: contact detection in a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json, progress
from taufit.cli.options import (
    Json,
    LoadedModel,
    RecordingOptions,
    Report,
    parse_numbers,
    usage_error,
)
from taufit.cli.options.option_groups import FormerName
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    from taufit.contact import ContactRun, ContactSettings, Sensitivity
    from taufit.model import FittedModel, NoiseByState


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """False alarm rate and tool."""

    alarms_per_hour: Annotated[
        float, typer.Option(help="Accepted false alarms per hour.", metavar="RATE")
    ] = 1.0
    tool: Annotated[
        str,
        typer.Option(help="Point of contact at the tool, in the tip frame [m].", metavar="X,Y,Z"),
    ] = "0,0,0"

    def settings(self) -> ContactSettings:
        """Convert to contact settings."""
        from taufit.contact import ContactSettings
        from taufit.core.errors import TaufitError

        x, y, z = parse_numbers(self.tool, "--tool", 3)
        try:
            return ContactSettings(alarms_per_hour=self.alarms_per_hour, tool=(x, y, z))
        except TaufitError as error:
            usage_error("--alarms-per-hour", str(error))


def command(
    arm: LoadedModel,
    source: RecordingOptions,
    detection: DetectionOptions,
    recording: Annotated[
        Path | None,
        typer.Argument(help="Recording to search for contacts.", metavar="RECORDING"),
    ] = None,
    contact_free: Annotated[
        list[Path] | None,
        typer.Option(
            help="Contact-free recording of the robot's daily work, repeatable. Determines the "
            "noise by friction regime and the threshold.",
            metavar="RUN",
        ),
        FormerName("--free"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Model to write, with noise of --contact-free.", metavar="FILE"
        ),
    ] = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Detect contacts in a recording, with force, link and a given false alarm rate.

    External joint torque is model torque minus measured torque; its noise depends on the friction
    regime. With --contact-free and no RECORDING it reports the sensitivity: smallest detectable
    torque step per joint, detection rate of 20 N pulses, duration of the contact-free data.

    Not a safety function: not rated, detection takes tens of milliseconds, forces through the axes
    and within the stiction band at standstill are unobservable. Sensitivity is low for 0.3 s after
    start-up.

    Next: record more contact-free work of the robot and give it with --contact-free, or export the
    thresholds to C with `taufit export MODEL --format c`.
    """
    from time import process_time

    from taufit.contact import find_contacts, refine_noise
    from taufit.model.accuracy_statement import accuracy_statement, accuracy_to_dict
    from taufit.model.model_file import write_model

    started = process_time()
    if recording is None and not contact_free:
        usage_error(
            "RECORDING", "give a recording to search, --contact-free RUN to calibrate, or both."
        )
    if report is not None and recording is None:
        usage_error("--report", "a page needs a RECORDING to show.")
    settings = detection.settings()
    fitted = arm.read()
    noise = fitted.training.noise
    free_recordings = [source.read_single(path) for path in contact_free or ()]
    if free_recordings:
        with progress("contact") as bar:
            bar.add_task(
                f"learning from {len(free_recordings)} contact-free recordings", total=None
            )
            noise = refine_noise(fitted, free_recordings)
        fitted = fitted.with_training(replace(fitted.training, noise=noise))
    if output is not None:
        if not free_recordings:
            usage_error("--output", "there is nothing to store without --contact-free RUN.")
        write_model(fitted, output)
    output_data: dict[str, Any] = {
        "model": str(arm.model),
        "robot": fitted.robot.name,
        **accuracy_to_dict(fitted),
    }
    if output is not None:
        output_data["written"] = str(output)
    if recording is None:
        sensitivity_data = _measure_sensitivity(fitted, free_recordings, settings)
        output_data |= sensitivity_data
        output_data["cpu_seconds"] = process_time() - started
        if as_json:
            print_json(output_data)
        else:
            _show_sensitivity(accuracy_statement(fitted), sensitivity_data, output)
        return
    with progress("contact") as bar:
        task = bar.add_task("looking for contacts", total=None)
        contact_recording = source.read_single(recording)
        result = find_contacts(
            fitted,
            contact_recording,
            noise=noise,
            settings=settings,
            callback=lambda _: bar.update(task),
        )
    if report is not None:
        from taufit.core.files import write_text
        from taufit.report.contact_page import contact_page

        write_text(report, contact_page(result, fitted, Path(recording).name))
    if as_json:
        output_data |= {"recording": str(recording), **result.to_dict()}
        output_data["cpu_seconds"] = process_time() - started
        print_json(output_data)
    else:
        _show(result, fitted, report, output)
    if result.refusal:
        from taufit.core.errors import InfeasibleError

        raise InfeasibleError(f"no contact is named: {result.refusal}")


def _measure_sensitivity(
    fitted: FittedModel, free_recordings: list[Any], settings: Any
) -> dict[str, Any]:
    from taufit.contact import ContactDetector, ContactKind, detectable_torque_steps, sensitivity

    noise = fitted.training.noise
    assert noise is not None and noise.tail is not None
    threshold = ContactDetector(fitted, noise, settings=settings).threshold
    with progress("contact") as bar:
        bar.add_task("putting contacts in", total=None)
        pulses = sensitivity(fitted, free_recordings, ContactKind(), noise=noise, settings=settings)
    return {
        "threshold": detectable_torque_steps(noise, threshold).tolist(),
        "evidence_threshold": threshold,
        "false_alarms_per_hour": settings.alarms_per_hour,
        "rests_on_minutes": noise.tail.minutes,
        "free_runs": noise.runs,
        "pulses": _sensitivity_to_dict(pulses),
        "noise": _noise_to_dict(noise),
        "safety_function": False,
    }


def _sensitivity_to_dict(result: Sensitivity) -> dict[str, Any]:
    kind = result.kind
    return {
        "force": kind.force,
        "seconds": kind.seconds,
        "place": "tool",
        "count": result.count,
        "share": result.share,
        "median_delay": result.median,
        "late_delay": result.late,
        "text": str(result),
    }


def _noise_to_dict(noise: NoiseByState) -> dict[str, Any]:
    from taufit.terms.friction.states import STATES

    return {
        state: {
            "level": noise.level[k].tolist(),
            "white": noise.white[k].tolist(),
            "seconds": noise.seconds[k].tolist(),
        }
        for k, state in enumerate(STATES)
    }


def _show_sensitivity(accuracy: str, data: dict[str, Any], output: Path | None) -> None:
    from taufit.cli.common import plain_console
    from taufit.contact.settings import alarm_rate_text

    console = plain_console()
    steps = "  ".join(f"{x:.2g}" for x in data["threshold"])
    lines = [
        accuracy,
        f"Smallest step of external torque found within 0.2 s in fast motion, joint by joint: "
        f"{steps} N m.",
        f"{data['pulses']['text']}.",
        f"{alarm_rate_text(data['false_alarms_per_hour'])}, extrapolated from "
        f"{data['rests_on_minutes']:.1f} contact-free minutes of {data['free_runs']} "
        f"recording{'' if data['free_runs'] == 1 else 's'}.",
    ]
    if output is not None:
        lines.append(f"Written: {output}")
    lines.append("Next: `taufit contact` looks for contacts with it.")
    for line in lines:
        console.print(line)


def _show(
    result: ContactRun, fitted: FittedModel, report: Path | None, output: Path | None
) -> None:
    from taufit.cli.common import plain_console
    from taufit.contact.settings import alarm_rate_text
    from taufit.model.accuracy_statement import accuracy_statement

    console = plain_console()
    rate = result.alarms_per_hour
    count = len(result.contacts)
    rate_text = "" if rate is None else f", at {alarm_rate_text(rate)}"
    lines = [
        accuracy_statement(fitted),
        f"{count or 'No'} contact{'' if count == 1 else 's'} in {result.seconds:.1f} s of "
        f"{fitted.robot.name}{rate_text}.",
    ]
    if result.refusal:
        lines[1] = f"no result  {fitted.robot.name}: what touches it is not known."
    for contact in () if result.refusal else result.contacts:
        delay = contact.detection_time - contact.start_time
        end_text = (
            "still lasting" if contact.end_time is None else f"until {contact.end_time:.2f} s"
        )
        lines.append(f"  {contact}; noticed after {1e3 * delay:.0f} ms, {end_text}")
    other_events = [e for e in result.events if e.kind in ("gap", "stop beyond training")]
    lines += [f"  {event.time:.2f} s: {event.kind}: {event.text}" for event in other_events]
    lines += [f"warning: {text}" for text in result.warnings]
    lines += [f"Written: {path}" for path in (report, output) if path is not None]
    lines.append("Not a safety function. Next: give contact-free recordings with --contact-free.")
    for line in lines:
        console.print(line)
