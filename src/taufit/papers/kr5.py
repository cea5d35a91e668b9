"""KUKA KR5, torques whose signs are unknown: the tables and figures of that paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import base_parameters, forward_kinematics, inverse_dynamics
from taufit.model.torque_model import TorqueModel
from taufit.papers.exhibit import Entry, Exhibit, Paper, outside_row_space, row_matrix
from taufit.papers.printed_tables import printed
from taufit.report.charts import Series, chart
from taufit.robot import from_dh, read_robot
from taufit.signals import Samples
from taufit.signs.findings import SignedSegment
from taufit.signs.unknown_signs import UnsignedFit, fit_unsigned
from taufit.sim import random_fourier, read_preset

SEED, OTHER_MOTION = 0, 41
# Deviations of the boxes the tree search looks in, as shares of the size of each parameter.
_BOX = 0.5


class Kr5:
    """The experiment on the simulated arm, made once and shared by the exhibits."""

    def __init__(self) -> None:
        self.paper = printed("kr5")
        self.preset = read_preset("kr5-unsigned")
        robot = self.preset.twin.robot
        self.model = TorqueModel(robot, friction=None, rotor_inertia=False, offset=False)

    @cached_property
    def truth(self) -> Float[Array, "n j"]:
        """Torque without noise, at the motion of the recording."""
        s = self.samples
        return inverse_dynamics(self.preset.twin.robot, s.position, s.velocity, s.acceleration)

    @cached_property
    def samples(self) -> Samples:
        """667 samples of motion and magnitudes, unfiltered, as the paper has them."""
        motion = self.preset.motion(SEED)
        robot = self.preset.twin.robot
        sampling = self.paper["sampling"]
        time = np.arange(sampling["samples_per_joint"]) * sampling["implied_simulation_period_s"]
        q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
        torque = inverse_dynamics(robot, q, v, a)
        noise = 0.05 * np.sqrt(np.mean(torque**2, axis=0))
        rng = np.random.default_rng(SEED)
        magnitude = np.abs(torque + noise * rng.normal(size=torque.shape))
        samples = Samples.from_arrays(q, v, a, magnitude, rate_hz=1.0 / time[1])
        return replace(samples, signed=np.zeros(robot.joints, bool))

    @cached_property
    def exact(self) -> UnsignedFit:
        """Signs by exact search."""
        return fit_unsigned(self.model, self.samples)

    @cached_property
    def tree(self) -> UnsignedFit:
        """Signs by the paper's tree search, within boxes round the nominal arm."""
        nominal = self.model.nominal
        size = np.abs(nominal)
        floor = np.tile([0.5, *[0.1] * 3, *[0.1] * 6], self.model.robot.joints)
        wide = np.maximum(_BOX * size, floor)
        settings = self.paper["tree_search"]
        return fit_unsigned(
            self.model,
            self.samples,
            "tree",
            start=settings["s0"],
            width=settings["w"],
            bounds=(nominal - wide, nominal + wide),
        )

    def right(self, segments: Sequence[SignedSegment]) -> int:
        """Segments whose sign is that of the torque behind the magnitudes."""
        return sum(
            int(np.sign(self.truth[s.first : s.last + 1, s.joint].sum()) == s.sign)
            for s in segments
        )


def paper() -> Paper:
    """The paper and its exhibits."""
    own = Kr5()
    return Paper(
        "kr5",
        "Identification of a robot dynamic model when torque signs are unknown",
        "authors not known here: the title page is not part of the text at hand",
        "KUKA KR5 Sixx R650, tree search T-PBPR",
        (
            "Nine of the 36 base parameters are not printed; they are listed under Table II.",
            "667 samples in 13.33 s are 20 ms apart; the controller's period is 12 ms.",
            "The theta column of Table I is the drawn pose, not an offset.",
            "Parameters pi and -pi explain magnitudes equally well; only a physically possible arm "
            "settles the common sign, which the paper does not mention.",
        ),
        (
            ("Figure 1", lambda: _arm(own)),
            ("Table I", lambda: _table_1(own)),
            ("Figure 2", lambda: _figure_2(own)),
            ("Table II", lambda: _table_2(own)),
            ("Figure 3", lambda: _figure_3(own)),
        ),
    )


def _arm(own: Kr5) -> Exhibit:
    return Exhibit(
        "Figure 1",
        "The arm and its frames",
        missing="a drawing of the arm and its frames; `taufit report` draws the same arm.",
    )


def _table_1(own: Kr5) -> Exhibit:
    table = own.paper["kinematics"]
    drawn = from_dh(np.array(table["rows"]), name="printed")
    bundled = read_robot("kr5")
    pose = np.random.default_rng(1).uniform(-2.0, 2.0, (50, 6))
    here, there = (forward_kinematics(arm, pose)[:, -1] for arm in (bundled, drawn))
    return Exhibit(
        "Table I",
        "Denavit-Hartenberg parameters",
        (
            Entry(
                "last frame, bundled arm against the printed table",
                0.0,
                float(np.abs(here - there).max()),
                "m",
                1e-9,
                "largest difference over 50 poses; the theta column is the drawn pose",
            ),
            Entry("base parameters", 36, base_parameters(own.model).rank, "", 0.0),
            Entry("standard parameters", 60, len(own.model.names), "", 0.0),
        ),
    )


def _figure_2(own: Kr5) -> Exhibit:
    s, search, sampling = own.samples, own.paper["tree_search"], own.paper["sampling"]
    exact, tree = own.exact, own.tree
    kept = int(sum(one.last - one.first + 1 for one in tree.segments))
    entries = (
        Entry("samples per joint", sampling["samples_per_joint"], len(s), "", 0.0),
        Entry(
            "segments of the tree search",
            search["segments_found"],
            len(tree.segments),
            why="the excitation, its threshold and its noise are not printed: another motion here",
        ),
        Entry(
            "samples kept by the tree search",
            sampling["samples_kept"],
            kept,
            why="as above",
        ),
        Entry(
            "share of right signs, tree search",
            100.0 * search["correct_signs"] / search["segments_found"],
            100.0 * own.right(tree.segments) / len(tree.segments),
            "%",
            why="5 % noise here; the paper does not state its own",
        ),
        Entry(
            "share of right signs, exact search",
            100.0,
            100.0 * own.right(exact.segments) / len(exact.segments),
            "%",
            0.0,
            f"{len(exact.segments)} segments, all samples used, "
            f"{'certified' if exact.certified else 'not certified'} optimal",
        ),
    )
    sign = exact.recovery.sample_sign
    figures = tuple(
        chart(
            s.time,
            [
                Series("torque behind the magnitudes", own.truth[:, j]),
                Series("magnitude with the sign found", sign[:, j] * s.torque[:, j], points=True),
            ],
            caption=f"Joint {j + 1}",
            xlabel="time [s]",
            ylabel="torque [N m]",
            group="kr5-signs",
        )
        for j in range(6)
    )
    return Exhibit(
        "Figure 2", "Torques, and the signs found for their magnitudes", entries, (), figures
    )


def _table_2(own: Kr5) -> Exhibit:
    table = own.paper["base_parameters"]
    every = [*table["rows"], *table["unreported_rows"]]
    rows = row_matrix([row["coefficients"] for row in every], own.model.names)
    base = base_parameters(own.model)
    estimate = own.exact.estimate
    ours = rows @ estimate.values
    # Every printed row is a combination of base parameters, so its deviation follows from theirs.
    over_base = rows @ np.linalg.pinv(base.mapping)
    spread = np.sqrt(np.einsum("ij,jk,ik->i", over_base, estimate.base_covariance, over_base))
    behind = rows @ own.preset.twin.robot.parameters
    entries: list[Entry] = [
        Entry("rows in the row space", 0.0, outside_row_space(rows, base.mapping), "", 1e-9),
        Entry("rank of 27 printed and 9 other rows", 36, np.linalg.matrix_rank(rows), "", 0.0),
    ]
    for row, found, std, true in zip(every, ours, spread, behind, strict=True):
        stated = row.get("true")
        entries.append(
            Entry(
                row["expression"],
                stated,
                float(found),
                "",
                None if stated is None else 4.0 * float(std),
                f"± {NORMAL_95 * std:.2g} (95 %); "
                + (
                    f"not printed; of the arm behind it {true:.4g}"
                    if stated is None
                    else f"the paper's estimate is {row['estimated']:.4g}"
                ),
            )
        )
    printed_error = [row["estimated"] - row["true"] for row in table["rows"]]
    own_error = [f - row["true"] for f, row in zip(ours, table["rows"], strict=False)]
    entries.append(
        Entry(
            "root mean square error of the 27",
            float(np.sqrt(np.mean(np.square(printed_error)))),
            float(np.sqrt(np.mean(np.square(own_error)))),
            "",
            why="the paper's noise is not stated; 5 % of each joint's torque here",
        )
    )
    return Exhibit(
        "Table II",
        "Base parameters: printed truth beside our estimate from magnitudes",
        tuple(entries),
        ("Agreement is asked within four standard deviations of our estimate.",),
    )


def _figure_3(own: Kr5) -> Exhibit:
    robot = own.preset.twin.robot
    sources = own.preset.sources
    motion = random_fourier(
        robot,
        seed=OTHER_MOTION,
        harmonics=3,
        frequency_hz=sources["frequency_hz"],
        centre=sources["centre"],
        speed=1.5,
        reach=1.5,
        acceleration=8,
    )
    time = np.arange(667) * 0.02
    states = [np.asarray(x) for x in motion.at(time)[:3]]
    true = inverse_dynamics(robot, *states)
    found = own.exact.model.torque(*states)
    spread = true.std(axis=0)
    nrmse = np.sqrt(np.mean((found - true) ** 2, axis=0)) / spread
    entries = tuple(
        Entry(
            f"nrmse on a new motion, joint {j + 1}",
            None,
            float(nrmse[j]),
            "",
            why="only drawn in the paper",
        )
        for j in range(6)
    )
    figures = tuple(
        chart(
            time,
            [Series("nominal", true[:, j]), Series("identified", found[:, j], dash=(6, 4))],
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
