"""Lie theory, nonlinear friction and excitation of a Franka robot [Luo2024], simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taufit.estimators import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.papers import luo2024_friction, luo2024_model
from taufit.papers.exhibit import Exhibit, Paper
from taufit.papers.printed_tables import printed_tables
from taufit.signals import Samples, condition
from taufit.sim import SimulatedRun, read_preset
from taufit.terms import friction_model
from taufit.terms.friction import Friction
from taufit.workflow import condition_for_model, identify

CUTOFF_HZ = 10.0
# The simulated robot records at 1 kHz; 100 Hz suffice below the low-pass [Hz].
RATE_HZ = 100.0


@dataclass(frozen=True, slots=True)
class PaperFrictionModel:
    """Friction model of the paper's comparison, with its name there and here."""

    label: str
    key: str
    friction: Friction


# Eq. (10) has five columns per joint. Eq. (16) adds load above a threshold; our smooth version is
# Coulomb friction that grows with load. Ref. 6 is the conventional Coulomb and viscous model.
FRICTION_MODELS = (
    PaperFrictionModel("eq. (10), polynomial", "eq10", friction_model("polynomial")),
    PaperFrictionModel(
        "eq. (16), with load", "eq16", friction_model("linear_load", quadratic=True)
    ),
    PaperFrictionModel("ref. 6, Coulomb and viscous", "ref6", friction_model("linear")),
)


class Luo2024:
    """Recordings and fits, computed once and shared by the exhibits."""

    def __init__(self) -> None:
        self.paper = printed_tables("luo2024")
        self.preset = read_preset("franka")

    def run(self, seed: int, periods: int = 1) -> SimulatedRun:
        """Run of the simulated robot."""
        motion = self.preset.motion(seed, periods=periods)
        return self.preset.twin.run(motion, seed=seed, rate_hz=RATE_HZ)

    @cached_property
    def training(self) -> SimulatedRun:
        """Training run: three periods of one excitation; the paper has five."""
        return self.run(21, periods=3)

    @cached_property
    def verification(self) -> SimulatedRun:
        """Verification run with another motion."""
        return self.run(22)

    @cached_property
    def models(self) -> dict[str, FittedModel]:
        """One weighted least-squares fit per friction model of the paper, and taufit's default."""
        models = {}
        samples = condition([self.training.recording], cutoff_hz=CUTOFF_HZ)
        for friction_entry in FRICTION_MODELS:
            structure = TorqueModel(
                self.preset.twin.robot, friction_entry.friction, rotor_inertia=False
            )
            models[friction_entry.key] = fitted_model(
                structure, fit_samples(structure, samples, Wls()), samples
            )
        default_fit = identify(
            self.preset.twin.robot, [self.training.recording], cutoff_hz=CUTOFF_HZ
        )
        models["own"] = default_fit.model
        return models

    def samples(self, run: SimulatedRun) -> Samples:
        """Samples conditioned like those of the fits."""
        return condition_for_model(self.models["own"], [run.recording])


def paper() -> Paper:
    """Paper and its exhibits."""
    experiment = Luo2024()
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


def nrms(residual: np.ndarray) -> np.ndarray:
    """Root mean square per joint."""
    return np.sqrt(np.mean(residual**2, axis=0))
