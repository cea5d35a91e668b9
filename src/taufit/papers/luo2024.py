"""Lie theory, nonlinear friction and excitation of a Franka robot [Luo2024], simulated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.estimators import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.papers import luo2024_friction, luo2024_model
from taufit.papers.exhibit import Exhibit, Paper
from taufit.papers.printed_tables import printed_tables
from taufit.robot import Robot, read_robot
from taufit.signals import Samples, condition
from taufit.sim import CarriedPayload, SimulatedRun, read_preset
from taufit.terms import friction_model
from taufit.terms.friction import Friction
from taufit.workflow import identify

CUTOFF_HZ = 10.0
# Centre of the payloads in the frame of the last link [m].
PAYLOAD_CENTRE = (0.0, 0.0, 0.157)
# The simulated robot records at 1 kHz; 100 Hz suffice below the low-pass [Hz].
RATE_HZ = 100.0


@dataclass(frozen=True, slots=True)
class PaperFrictionModel:
    """Friction model of the paper's comparison, with its name there and here."""

    label: str
    key: str
    friction: Friction
    has_offset: bool = True


# Eq. (10) has three columns per joint: viscous, Coulomb, offset. Eq. (17), the branch of eq. (16)
# without external force, is the polynomial of five columns. Ref. 6, the conventional model, has no
# offset.
FRICTION_MODELS = (
    PaperFrictionModel("eq. (10): Coulomb, viscous, offset", "eq10", friction_model("linear")),
    PaperFrictionModel("eq. (16): polynomial of (17)", "eq16", friction_model("polynomial")),
    PaperFrictionModel(
        "ref. 6: Coulomb, viscous", "ref6", friction_model("linear"), has_offset=False
    ),
)
REPETITIONS = 10
# Distance of the seeds of two repetitions, and of two seeds of the command.
_REPETITION_STEP, _SEED_STEP = 100, 10_000


class Luo2024:
    """Recordings and fits, computed once and shared by the exhibits.

    Attributes:
        friction_models: Friction models of Tables V and VI.
    """

    friction_models = FRICTION_MODELS

    def __init__(self, seed: int = 0, repetitions: int | None = None) -> None:
        self.paper = printed_tables("luo2024")
        self.preset = read_preset("franka")
        self.seed, self.repetitions = seed, repetitions or REPETITIONS

    @cached_property
    def robot(self) -> Robot:
        """Bundled robot, compared with the printed kinematics."""
        return read_robot("panda")

    def run(self, seed: int, periods: int = 1, payload: float = 0.0) -> SimulatedRun:
        """Run of the simulated robot."""
        motion = self.preset.motion(seed, periods=periods)
        payloads = CarriedPayload.lump(payload, PAYLOAD_CENTRE) if payload else ()
        return self.preset.twin.run(motion, seed=seed, rate_hz=RATE_HZ, payload=payloads)

    def _samples(self, first_seed: int, periods: int = 1) -> list[Samples]:
        """Conditioned runs, one per repetition."""
        seeds = first_seed + _SEED_STEP * self.seed + _REPETITION_STEP * np.arange(self.repetitions)
        runs = (self.run(int(seed), periods) for seed in seeds)
        return [condition([run.recording], cutoff_hz=CUTOFF_HZ) for run in runs]

    @cached_property
    def training(self) -> list[Samples]:
        """Training runs: three periods of one excitation each; the paper has five."""
        return self._samples(21, periods=3)

    @cached_property
    def verification(self) -> list[Samples]:
        """Verification runs with another motion each."""
        return self._samples(22)

    @cached_property
    def models(self) -> dict[str, list[FittedModel]]:
        """Weighted least-squares fits, per friction model of the paper and repetition."""
        models: dict[str, list[FittedModel]] = {}
        for entry in self.friction_models:
            structure = TorqueModel(
                self.preset.twin.robot,
                entry.friction,
                rotor_inertia=False,
                offset=entry.has_offset,
            )
            models[entry.key] = [
                fitted_model(structure, fit_samples(structure, samples, Wls()), samples)
                for samples in self.training
            ]
        return models

    @cached_property
    def payload_tests(self) -> dict[str, list[luo2024_friction.PayloadFrictionTest]]:
        """Friction tests with payloads, by load dependence of the simulated robot; five seeds."""
        return {
            name: [
                luo2024_friction.run_payload_test(self, factor, number)
                for number in range(min(self.repetitions, 5))
            ]
            for name, factor in luo2024_friction.LOAD_FACTORS.items()
        }

    @cached_property
    def default_model(self) -> FittedModel:
        """Default fit of taufit to the first training run."""
        run = self.run(21 + _SEED_STEP * self.seed, periods=3)
        return identify(self.preset.twin.robot, [run.recording], cutoff_hz=CUTOFF_HZ).model


def paper(seed: int = 0, repetitions: int | None = None) -> Paper:
    """Paper and its exhibits."""
    return paper_of(Luo2024(seed, repetitions))


def paper_of(experiment: Luo2024) -> Paper:
    """Exhibits of an experiment."""
    source = experiment.paper["source"]
    model, friction = luo2024_model, luo2024_friction
    steps: tuple[tuple[str, Callable[[Luo2024], Exhibit]], ...] = (
        ("Figure 1", _not_reproduced("Figure 1", "The procedure", "a block diagram.")),
        (
            "Figure 2",
            _not_reproduced("Figure 2", "Two links", "a drawing of the recursion's variables."),
        ),
        ("Table I", model.table_1),
        ("Figure 3", _not_reproduced("Figure 3", "The experiment", "a photograph.")),
        ("Table II", model.table_2),
        ("Table III", model.table_3),
        ("Table IV", model.table_4),
        ("Figure 4", model.figure_4),
        ("Table V", model.table_5),
        ("Table VI", model.table_6),
        ("Figure 5", friction.figure_5),
        ("Figure 6", model.figure_6),
        ("Figure 7", friction.figure_7),
    )

    def bind(make: Callable[[Luo2024], Exhibit]) -> Callable[[], Exhibit]:
        return lambda: make(experiment)

    return Paper(
        "luo2024",
        source["paper"],
        source["authors"],
        source["journal"],
        (
            "Eq. (2) needs a plus before the velocity product, eq. (3) the inverse transform.",
            "The joint shifts are q4_robot = q4 - pi/2 and q6_robot = q6 + pi/2; printed with "
            "sides exchanged. The flange's reference orientation is diag(1, -1, -1).",
            "Eqs. (8) and (18): |velocity| in the exponent, as in (9).",
            "Friction falls with temperature; the text lets it grow.",
            "log det(J'J) is to be maximised.",
            "Table IV is no possible arm although a feasible set is claimed: negative masses.",
            "Table VI: the nonlinear model is worse than eq. (10) on joints 1, 4 and 7; in sum it "
            "gains 0.5 %.",
            "Ten friction coefficients cannot be separated at 0.1 to 30 deg/s.",
        ),
        tuple((label, bind(make)) for label, make in steps),
    )


def _not_reproduced(label: str, title: str, reason: str) -> Callable[[Luo2024], Exhibit]:
    return lambda _: Exhibit(label, title, missing=reason)
