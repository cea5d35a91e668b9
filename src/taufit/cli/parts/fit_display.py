"""Text of a fit on the terminal: verdict, scores per joint, coverage, warnings, next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taufit.cli.common import format_nrmse, recording_label
from taufit.core.parameters import parse_name

if TYPE_CHECKING:
    from rich.table import Table

    from taufit.validation import Verdict
    from taufit.workflow import IdentificationResult


def show_fit(
    identified: IdentificationResult, decision: Verdict, output: Path, is_refused: bool
) -> None:
    """Print verdict, scores, coverage, warnings and the next step of a fit."""
    from taufit.cli.common import headline, plain_console
    from taufit.core.number_text import count_text, percent
    from taufit.model.fitted_zeros import zero_offsets_of_model

    console = plain_console()
    train, estimate = identified.training_score, identified.estimate
    holdout_scores = identified.holdout_scores
    grades = identified.grades
    data_label = (
        f"{count_text(len(holdout_scores), 'recording')} it has not seen"
        if holdout_scores
        else "its own training data"
    )
    kind = "physically possible" if identified.consistent else "NOT physically possible"
    console.print(
        headline(
            f"{decision.label} ({grades.overall})",
            f"  {identified.model.robot.name}: {percent(grades.unexplained)} of the torque is "
            f"left unexplained on {data_label}; the arm is {kind}.",
        )
    )
    for text in (*grades.reasons, grades.headroom_text):
        if text:
            console.print(f"  {text}")
    console.print(score_table(f"nrmse per joint, low-pass {train.cutoff_hz:g} Hz", identified))
    links = sum(name.startswith("link") for name in estimate.base_names)
    console.print(
        f"{train.seconds:.1f} s of motion, {len(estimate.base_names)} base parameters ({links} of "
        f"the links), condition {estimate.condition_number:.0f}. Single link masses are one choice "
        "among many with equal torque; only base parameters are measured.",
    )
    if identified.signs is not None:
        signs = identified.signs
        console.print(
            f"Torque signs: {len(signs.segments)} segments, {int(signs.ambiguous.sum())} "
            f"ambiguous; {'proven optimal' if signs.certified else 'not proven'}, "
            f"{'trustworthy' if signs.confident else 'uncertain: see the warnings'}.",
        )
    delays = np.atleast_1d(identified.model.training.conditioning.delay_s)
    if delays.any():
        milliseconds = " ".join(f"{1e3 * delay:.0f}" for delay in delays)
        by_joint = "" if len(delays) == 1 else ", joint by joint"
        console.print(f"Delay of torque behind motion{by_joint}: {milliseconds} ms.")
    absent = identified.model.structure.absent
    dropped = tuple(name for name in estimate.dropped if name not in absent)
    if dropped:
        console.print(f"Friction terms the data do not support: {_group_by_term(dropped)}.")
    for text in _data_coverage(identified):
        console.print(text)
    for zero in zero_offsets_of_model(identified.model):
        console.print(zero.describe)
    from taufit.temperature.apply import describe_slopes

    for text in describe_slopes(identified.model):
        console.print(text)
    for text in identified.warnings:
        console.print(f"warning: {text}")
    if not holdout_scores:
        console.print(
            "Without a hold-out this is the training error, which proves little: add --holdout 30% "
            "or --holdout FILE.",
        )
    if is_refused:
        return
    from taufit.cli.parts.next_step import export_file, next_step

    file = export_file(identified.model.robot)
    console.print(
        f"Written: {output}\n"
        + next_step("export", output, "-o", file, purpose="puts the model to use")
        + ("." if identified.signs else f"; taufit check {output} RECORDING tests it on others."),
        soft_wrap=True,
    )


def _data_coverage(identified: IdentificationResult) -> list[str]:
    """Information from the data, and the speed above which friction is extrapolated."""
    from taufit.model.information_share import measured_speed_range

    out = []
    shares = identified.model.training.from_data
    if shares is not None:
        links = " ".join(f"{100 * x:.0f}" for x in shares.links)
        out.append(
            f"From the data, in percent of each link's parameters: {links}; the rest is the "
            "nominal robot."
        )
    speed_range = measured_speed_range(identified.model)
    if speed_range is not None and speed_range.describe:
        out.append(speed_range.describe)
    return out


def score_table(title: str, identified: IdentificationResult) -> Table:
    """Table with one row per recording, one column per joint."""
    from taufit.cli.common import joint_table

    train, joints = identified.training_score, identified.model.robot.joints
    table = joint_table(title, joints)
    labelled = (
        ("training", train),
        *((recording_label(s.file), s) for s in identified.holdout_scores),
    )
    for label, score in labelled:
        cells = [*map(format_nrmse, score.measured_nrmse), format_nrmse(score.mean_nrmse)]
        table.add_row(label, *cells)
        if score.inside is not None:
            cells = [
                *(f"{100 * x:.0f}" for x in score.inside),
                f"{100 * (score.mean_inside or 0.0):.0f}",
            ]
            table.add_row("  % inside 95 % interval", *cells, style="dim")
    table.add_section()
    unit, gain = "N m", np.ones(joints)
    gains = identified.model.training.conditioning.gain
    finding = next((f for f in identified.findings if f.kind == "gains_unknown"), None)
    if gains is not None and finding is not None:
        # N m would rest on the nominal robot.
        unit, gain = "A" if "ampere" in finding.message else "as recorded", gains
    table.add_row(f"RMSE training [{unit}]", *(f"{x:.2f}" for x in train.rmse / gain), "")
    if identified.nominal_comparison is not None:
        nominal = identified.nominal_comparison.nominal.rmse / gain
        table.add_row("  nominal robot", *(f"{x:.2f}" for x in nominal), "")
    return table


def _group_by_term(names: tuple[str, ...]) -> str:
    """Joint numbers by term: ("joint_1.load", "joint_2.load") gives "load (joints 1, 2)"."""
    joints: dict[str, list[str]] = {}
    for name in names:
        owner = parse_name(name)
        group = "presliding" if owner.quantity.startswith("presliding") else owner.quantity
        number = str(owner.number + 1)
        if number not in joints.setdefault(group, []):
            joints[group].append(number)
    return ", ".join(
        f"{group} (joint{'s' if len(numbers) > 1 else ''} {', '.join(numbers)})"
        for group, numbers in joints.items()
    )
