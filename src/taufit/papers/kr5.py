"""KUKA KR5 with unsigned torque: tables and figures of that paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import base_parameters, forward_kinematics, inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.papers.exhibit import (
    GIVEN,
    INDEPENDENT,
    ComparedRow,
    Exhibit,
    Paper,
    compare_columns,
    compare_joints,
    compare_value,
    outside_row_space,
    row_matrix,
)
from taufit.papers.printed_tables import printed_tables
from taufit.report.charts import Series, chart
from taufit.robot import Robot, from_dh, read_robot
from taufit.signals import Samples
from taufit.signs.findings import SignedSegment
from taufit.signs.unknown_signs import UnsignedFit, fit_unsigned
from taufit.sim import random_fourier, read_preset

VALIDATION_SEED = 41
# Noise of the torque magnitudes relative to their rms, and number of motions for each.
NOISE_LEVELS = (0.005, 0.01, 0.02, 0.05, 0.1)
REPETITIONS = 10
# Noise of the run that Figure 2, Table II and Figure 3 show.
SHOWN_NOISE = 0.02
# Half width of the bounds of the tree search, relative to each parameter.
_RELATIVE_BOUND = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class UnsignedRun:
    """One simulated run with magnitudes of torque.

    Attributes:
        truth: Torque without noise [N m].
        samples: Motion and magnitudes, unfiltered, as in the paper.
    """

    truth: Float[Array, "n j"]
    samples: Samples

    def correct_segments(self, segments: Sequence[SignedSegment]) -> int:
        """Number of segments with the correct sign."""
        return sum(
            int(np.sign(self.truth[s.first : s.last + 1, s.joint].sum()) == s.sign)
            for s in segments
        )


class Kr5:
    """Experiment on the simulated robot, computed once and shared by the exhibits."""

    def __init__(self, seed: int = 0, repetitions: int | None = None) -> None:
        self.paper = printed_tables("kr5")
        self.preset = read_preset("kr5-unsigned")
        self.seed, self.repetitions = seed, repetitions or REPETITIONS

    @cached_property
    def robot(self) -> Robot:
        """Bundled robot, compared with the printed kinematics."""
        return read_robot("kr5")

    @cached_property
    def model(self) -> TorqueModel:
        """Model of the paper: links alone."""
        return TorqueModel(self.preset.twin.robot, friction=None, rotor_inertia=False, offset=False)

    def trial(self, noise: float, number: int = 0) -> UnsignedRun:
        """667 samples of a random motion; `noise` relative to the rms torque of each joint."""
        seed = number + 1000 * self.seed
        motion = self.preset.motion(seed)
        sampling = self.paper["sampling"]
        time = np.arange(sampling["samples_per_joint"]) * sampling["implied_simulation_period_s"]
        q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
        torque = inverse_dynamics(self.preset.twin.robot, q, v, a)
        deviation = noise * np.sqrt(np.mean(torque**2, axis=0))
        rng = np.random.default_rng(seed)
        magnitude = np.abs(torque + deviation * rng.normal(size=torque.shape))
        samples = Samples.from_arrays(q, v, a, magnitude, rate_hz=1.0 / time[1])
        samples = replace(samples, signed=np.zeros(torque.shape[1], bool))
        return UnsignedRun(torque, samples)

    @cached_property
    def figure_run(self) -> UnsignedRun:
        """Run of the figures and of Table II."""
        return self.trial(SHOWN_NOISE)

    @cached_property
    def exact(self) -> UnsignedFit:
        """Signs by exact search."""
        return self.fit_exact(self.figure_run)

    @cached_property
    def tree(self) -> UnsignedFit:
        """Signs by the paper's tree search."""
        return self.fit_tree(self.figure_run)

    def fit_exact(self, trial: UnsignedRun) -> UnsignedFit:
        """Signs by exact search."""
        return fit_unsigned(self.model, trial.samples)

    def fit_tree(self, trial: UnsignedRun) -> UnsignedFit:
        """Signs by the paper's tree search, within bounds around the nominal robot."""
        nominal = self.model.nominal
        size = np.abs(nominal)
        floor = np.tile([0.5, *[0.1] * 3, *[0.1] * 6], self.model.robot.joints)
        half_width = np.maximum(_RELATIVE_BOUND * size, floor)
        settings = self.paper["tree_search"]
        return fit_unsigned(
            self.model,
            trial.samples,
            "tree",
            start=settings["s0"],
            width=settings["w"],
            bounds=(nominal - half_width, nominal + half_width),
        )

    @cached_property
    def sign_shares(self) -> dict[str, Float[Array, "n s"]]:
        """Fraction of segments with the correct sign, by search; noise levels x motions."""
        shares: dict[str, list[list[float]]] = {"tree": [], "exact": []}
        for noise in NOISE_LEVELS:
            trials = [self.trial(noise, number) for number in range(self.repetitions)]
            for name, fit in (("tree", self.fit_tree), ("exact", self.fit_exact)):
                segments = [fit(trial).segments for trial in trials]
                shares[name].append(
                    [
                        trial.correct_segments(part) / len(part)
                        for trial, part in zip(trials, segments, strict=True)
                    ]
                )
        return {name: np.array(values) for name, values in shares.items()}


def paper(seed: int = 0, repetitions: int | None = None) -> Paper:
    """Paper and its exhibits."""
    return paper_of(Kr5(seed, repetitions))


def paper_of(experiment: Kr5) -> Paper:
    """Exhibits of an experiment."""
    return Paper(
        "kr5",
        "Identification of a robot dynamic model when torque signs are unknown",
        "",
        "KUKA KR5 Sixx R650, tree search T-PBPR",
        (
            "Nine of the 36 base parameters are not printed; they are listed under Table II.",
            "667 samples in 13.33 s are 20 ms apart; the controller's period is 12 ms.",
            "The theta column of Table I is the drawn pose, not an offset.",
            "Parameters pi and -pi explain magnitudes equally well; only a physically possible arm "
            "settles the common sign, which the paper does not mention.",
        ),
        (
            ("Figure 1", lambda: _arm(experiment)),
            ("Table I", lambda: _table_1(experiment)),
            ("Figure 2", lambda: _figure_2(experiment)),
            ("Table II", lambda: _table_2(experiment)),
            ("Figure 3", lambda: _figure_3(experiment)),
        ),
    )


def _arm(experiment: Kr5) -> Exhibit:
    return Exhibit(
        "Figure 1",
        "The arm and its frames",
        missing="a drawing of the arm and its frames; `taufit design kr5 --seconds 1 "
        "-o motion.json --plot motion.html` draws the same arm.",
    )


def _table_1(experiment: Kr5) -> Exhibit:
    table = experiment.paper["kinematics"]
    printed_robot = from_dh(np.array(table["rows"]), name="printed")
    bundled = experiment.robot
    pose = np.random.default_rng(1).uniform(-2.0, 2.0, (50, 6))
    bundled_pose, printed_pose = (
        forward_kinematics(arm, pose)[:, -1] for arm in (bundled, printed_robot)
    )
    return Exhibit(
        "Table I",
        "Denavit-Hartenberg parameters",
        (
            compare_value(
                "last frame, bundled arm against the printed table",
                0.0,
                float(np.abs(bundled_pose - printed_pose).max()),
                "m",
                1e-9,
                "largest difference over 50 poses; the theta column is the drawn pose",
            ),
            compare_value("base parameters", 36, base_parameters(experiment.model).rank, "", 0.0),
            compare_value("standard parameters", 60, len(experiment.model.names), "", 0.0),
        ),
    )


def _figure_2(experiment: Kr5) -> Exhibit:
    search, sampling = experiment.paper["tree_search"], experiment.paper["sampling"]
    exact, tree, trial = experiment.exact, experiment.tree, experiment.figure_run
    sample_count = int(sum(segment.last - segment.first + 1 for segment in tree.segments))
    other_motion = "the excitation, its threshold and its noise are not printed: another motion"
    rows = [
        compare_value(
            "samples per joint",
            sampling["samples_per_joint"],
            len(trial.samples),
            "",
            0.0,
            "as many as printed were simulated",
            GIVEN,
        ),
        compare_value(
            "segments of the tree search",
            search["segments_found"],
            len(tree.segments),
            reason=other_motion,
        ),
        compare_value(
            "samples kept by the tree search",
            sampling["samples_kept"],
            sample_count,
            reason=other_motion,
        ),
        compare_value(
            f"segments with the right sign, tree search, noise {100 * SHOWN_NOISE:g} %",
            100.0 * search["correct_signs"] / search["segments_found"],
            100.0 * trial.correct_segments(tree.segments) / len(tree.segments),
            "%",
            0.0,
            "the noise of the paper is not stated",
        ),
        compare_value(
            f"segments with the right sign, exact search, noise {100 * SHOWN_NOISE:g} %",
            100.0,
            100.0 * trial.correct_segments(exact.segments) / len(exact.segments),
            "%",
            0.0,
            f"{len(exact.segments)} segments, all samples used, "
            f"{'certified' if exact.certified else 'not certified'} optimal",
        ),
        *_noise_rows(experiment),
    ]
    figures = tuple(
        sign_chart(experiment, exact, trial, joint) for joint in range(trial.samples.joints)
    )
    return Exhibit(
        "Figure 2", "Torques, and the signs found for their magnitudes", tuple(rows), (), figures
    )


def _noise_rows(experiment: Kr5) -> list[ComparedRow]:
    """Runs with all signs right, by noise; the paper has one, all right."""
    columns = [f"noise {100 * noise:g} %" for noise in NOISE_LEVELS]
    rows = []
    for name, required in (("tree", 0.02), ("exact", 0.05)):
        shares = experiment.sign_shares[name]
        percent = 100.0 * np.mean(shares == 1.0, axis=1)
        rows.append(
            ComparedRow(
                f"runs with all signs right, {name} search",
                tuple(columns),
                (100.0,) * len(columns),
                tuple(float(x) for x in percent),
                "%",
                tuple(
                    ({"tree": 10.0, "exact": 0.0}[name] if noise <= required else None)
                    for noise in NOISE_LEVELS
                ),
                f"{experiment.repetitions} motions for each noise; printed once, noise not stated",
                INDEPENDENT,
            )
        )
        rows.append(
            compare_columns(
                f"segments with the right sign, {name} search",
                columns,
                None,
                100.0 * shares.T,
                "%",
                reason="median and range of the motions",
            )
        )
    return rows


def sign_chart(experiment: Kr5, fit: UnsignedFit, trial: UnsignedRun, joint: int) -> str:
    """Torque, noisy and filtered magnitude, and the sign of each segment as a strip."""
    samples, sign = trial.samples, fit.recovery.sample_sign[:, joint]
    magnitude = samples.torque[:, joint]
    width = 9
    filtered = np.convolve(magnitude, np.full(width, 1.0 / width), mode="same")
    strip = -0.15 * float(magnitude.max())
    strips = [
        Series(
            name,
            np.where(sign == value, strip, np.nan),
            dash=dash,
        )
        for name, value, dash in (("sign +", 1, ()), ("sign \N{MINUS SIGN}", -1, (2, 3)))
    ]
    return chart(
        samples.time,
        [
            Series("torque behind the magnitudes", trial.truth[:, joint]),
            Series("noisy magnitude", magnitude, points=True),
            Series("filtered magnitude", filtered),
            Series("magnitude with the sign found", sign * magnitude),
            *strips,
        ],
        caption=f"Joint {joint + 1}",
        xlabel="time [s]",
        ylabel="torque [N m]",
        group="kr5-signs",
    )


def _table_2(experiment: Kr5) -> Exhibit:
    table = experiment.paper["base_parameters"]
    all_rows = [*table["rows"], *table["unreported_rows"]]
    rows = row_matrix([row["coefficients"] for row in all_rows], experiment.model.names)
    base = base_parameters(experiment.model)
    estimate = experiment.exact.estimate
    computed = rows @ estimate.values
    # Every printed row is a combination of base parameters, so its std follows from theirs.
    over_base = rows @ np.linalg.pinv(base.mapping)
    std = np.sqrt(np.einsum("ij,jk,ik->i", over_base, estimate.base_covariance, over_base))
    true_values = rows @ experiment.preset.twin.robot.parameters
    columns = ("truth", "estimate")
    entries: list[ComparedRow] = [
        compare_value(
            "rows in the row space", 0.0, outside_row_space(rows, base.mapping), "", 1e-9
        ),
        compare_value(
            "rank of 27 printed and 9 other rows", 36, np.linalg.matrix_rank(rows), "", 0.0
        ),
    ]
    for row, value, value_std, true_value in zip(all_rows, computed, std, true_values, strict=True):
        printed_value = row.get("true")
        limit = None if printed_value is None else 4.0 * float(value_std)
        entries.append(
            ComparedRow(
                row["expression"],
                columns,
                (printed_value, row.get("estimated")),
                (float(true_value), float(value)),
                "",
                (None, None),
                "",
            )
            if limit is None
            else ComparedRow(
                row["expression"],
                columns,
                (printed_value, printed_value),
                (float(true_value), float(value)),
                "",
                (_PRINTED_DIGITS, limit),
                _ROW_REASON,
                GIVEN,
            )
        )
    printed_error = [row["estimated"] - row["true"] for row in table["rows"]]
    our_error = [f - row["true"] for f, row in zip(computed, table["rows"], strict=False)]
    entries.append(
        compare_value(
            "root mean square error of the 27",
            float(np.sqrt(np.mean(np.square(printed_error)))),
            float(np.sqrt(np.mean(np.square(our_error)))),
            "",
            reason=f"the paper's noise is not stated; {100 * SHOWN_NOISE:g} % of each joint's "
            "torque here",
        )
    )
    truth = np.array([row["true"] for row in table["rows"]])
    selected, our_count = (
        np.sum(np.abs(error) < 0.25 * np.abs(truth)) for error in (printed_error, our_error)
    )
    entries.append(
        compare_value(
            "of these within 25 % of the truth",
            float(selected),
            float(our_count),
            "",
            reason="the selection rule of the paper",
        )
    )
    return Exhibit(
        "Table II",
        "Base parameters: printed truth beside our estimate from magnitudes",
        tuple(entries),
        ("Rows without printed values are the nine base parameters that the paper leaves out.",),
    )


# Digits of Table II.
_PRINTED_DIGITS = 6e-5
_ROW_REASON = (
    "truth: the bundled arm against the printed value; estimate: within four standard deviations "
    "of the printed truth, from magnitudes alone"
)


def _figure_3(experiment: Kr5) -> Exhibit:
    robot = experiment.preset.twin.robot
    sources = experiment.preset.sources
    motion = random_fourier(
        robot,
        seed=VALIDATION_SEED,
        harmonics=3,
        frequency_hz=sources["frequency_hz"],
        centre=sources["centre"],
        speed=1.5,
        reach=1.5,
        acceleration=8,
    )
    time = np.arange(667) * 0.02
    states = [np.asarray(x) for x in motion.at(time)[:3]]
    true_torque = inverse_dynamics(robot, *states)
    predicted = experiment.exact.model.torque(*states)
    torque_std = true_torque.std(axis=0)
    nrmse = np.sqrt(np.mean((predicted - true_torque) ** 2, axis=0)) / torque_std
    entries = (
        compare_joints("nrmse on a new motion", None, nrmse, reason="only drawn in the paper"),
    )
    figures = tuple(
        chart(
            time,
            [
                Series("nominal", true_torque[:, j]),
                Series("identified", predicted[:, j], dash=(6, 4)),
                Series("error", predicted[:, j] - true_torque[:, j]),
            ],
            caption=f"Joint {j + 1}",
            xlabel="time [s]",
            ylabel="torque [N m]",
            group="kr5-new",
        )
        for j in range(6)
    )
    return Exhibit(
        "Figure 3", "Torque on a new motion, nominal and identified", entries, (), figures
    )
