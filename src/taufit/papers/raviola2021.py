"""Temperature and mounting of UR3 and UR5 [Raviola2021], on simulated robots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import base_parameters
from taufit.estimators import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples, solve_rows
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.papers import raviola2021_model, raviola2021_temperature
from taufit.papers.exhibit import Exhibit, Paper
from taufit.papers.printed_tables import printed_tables
from taufit.regression.regression import RowsInMemory
from taufit.regression.rows import SampleRows
from taufit.robot import Robot
from taufit.signals import Samples, condition
from taufit.sim import Preset, SimulatedRun, Thermal, read_preset
from taufit.temperature.runwise_fits import RunwiseFits, repeat_identification, single_runs
from taufit.temperature.temperature_slopes import select_temperature_law
from taufit.terms import friction_model

CUTOFF_HZ, DEAD_ZONE = 10.0, 0.02
# Number of seeds where chance plays, and distance of the seeds of two commands.
REPETITIONS, _SEED_STEP = 5, 10_000
# Number of warm-up runs; each stands for three of the paper's half hour.
WARM_UP_RUNS, SPEED_UP = 20, 3.0
# Friction of the simulated robots reverses within 0.2 mrad of travel, unlike the paper's model.
_PRESLIDING = friction_model("presliding", (2e-4,), load=False, quadratic=False)


@dataclass(eq=False)
class WarmUpExperiment:
    """One of the two robots, cold, on ground and ceiling, and during warm-up.

    Attributes:
        name: "ur3" or "ur5".
        seed: Seed of the simulated runs.
    """

    name: str
    seed: int = 0

    @cached_property
    def preset(self) -> Preset:
        """Preset of the simulated robot."""
        return read_preset(f"{self.name}-warmup")

    def samples(self, seed: int, periods: int = 1, mounting: str = "ground") -> Samples:
        """Samples of a run at constant temperature."""
        run = self.run(seed + _SEED_STEP * self.seed, periods, mounting)
        return condition([run.recording], cutoff_hz=CUTOFF_HZ)

    def run(
        self, seed: int, periods: int, mounting: str, robot: Robot | None = None
    ) -> SimulatedRun:
        """Run at constant temperature."""
        twin = self.preset.twin
        twin = replace(
            twin,
            robot=(robot or twin.robot).with_mounting(mounting),
            effects=twin.effects.without("thermal"),
        )
        return twin.run(self.preset.motion(seed, periods=periods), seed=seed, rest=(0.3, 0.3))

    @cached_property
    def training(self) -> Samples:
        """Training samples: three periods, as in the paper."""
        return self.samples(1, periods=3)

    @cached_property
    def validation(self) -> Samples:
        """Validation samples: one period of another motion."""
        return self.samples(7)

    @cached_property
    def structure(self) -> TorqueModel:
        """The paper's model: rotor inertias, Coulomb friction through tanh(v / 0.001), viscous."""
        return TorqueModel(
            self.preset.twin.robot,
            friction_model("linear", width=0.001),
            rotor_inertia=True,
            offset=False,
        )

    @cached_property
    def weighted(self) -> FittedModel:
        """Model of the paper, weighted least squares."""
        estimate = fit_samples(self.structure, self.training, Wls())
        return fitted_model(self.structure, estimate, self.training)

    @cached_property
    def presliding_fit(self) -> FittedModel:
        """Weighted least squares with pre-sliding friction."""
        structure = TorqueModel(self.preset.twin.robot, _PRESLIDING)
        return fitted_model(structure, fit_samples(structure, self.training, Wls()), self.training)

    @property
    def thermal(self) -> Thermal:
        """Thermal effect of the simulated robot."""
        thermal = self.preset.twin.effects.thermal
        assert thermal is not None
        return thermal

    @cached_property
    def cold(self) -> Float[Array, " j"]:
        """Temperatures at power-up [degC]."""
        return np.array(self.thermal.reference, float)

    @cached_property
    def warm(self) -> Float[Array, " j"]:
        """Temperatures after half an hour [degC]; printed for the UR5, used for both."""
        return np.array(printed_tables("raviola2021")["temperature"]["UR5_warm_degC"], float)

    @cached_property
    def warm_up(self) -> Samples:
        """Consecutive runs, each starting at the final temperature of the previous one."""
        effects = self.preset.twin.effects
        temperature = housing = self.cold
        recordings = []
        for k in range(WARM_UP_RUNS):
            thermal = replace(
                self.thermal, initial=temperature, initial_housing=housing, speed_up=SPEED_UP
            )
            twin = replace(self.preset.twin, effects=replace(effects, thermal=thermal))
            seed = 100 + k + _SEED_STEP * self.seed
            run = twin.run(self.preset.motion(seed, periods=3), seed=seed, rest=(0.3, 0.3))
            temperature, housing = run.trace.temperature[-1], np.array(run.truth["housing_end"])
            recordings.append(run.recording)
        return condition(recordings, cutoff_hz=CUTOFF_HZ, dead_zone=DEAD_ZONE)

    @cached_property
    def temperature_fit(self) -> FittedModel:
        """One fit over the warm-up with temperature-dependent viscous friction."""
        choice = select_temperature_law(
            TorqueModel(self.preset.twin.robot, _PRESLIDING), self.warm_up, "linear"
        )
        model = choice.model
        rows = SampleRows(model, choice.samples, dropped=choice.dropped)
        base = base_parameters(model, dropped=choice.dropped)
        return model.with_values(solve_rows(RowsInMemory(rows, base), model, Wls())[0].values)

    @cached_property
    def runwise_fits(self) -> RunwiseFits:
        """Procedure of the paper: one identification per run."""
        structure = TorqueModel(self.preset.twin.robot, _PRESLIDING)
        return repeat_identification(structure, single_runs(self.warm_up), Wls())


class Raviola2021:
    """Both robots and the printed tables."""

    def __init__(self, seed: int = 0, repetitions: int | None = None) -> None:
        self.paper = printed_tables("raviola2021")
        self.repetitions = repetitions or REPETITIONS
        self.arms = (WarmUpExperiment("ur3", seed), WarmUpExperiment("ur5", seed))

    def robot(self, arm: WarmUpExperiment) -> Robot:
        """Bundled robot, compared with the printed base parameters and limits."""
        return arm.preset.twin.robot

    @property
    def ur5(self) -> WarmUpExperiment:
        """UR5."""
        return self.arms[1]


def paper(seed: int = 0, repetitions: int | None = None) -> Paper:
    """Paper and its exhibits."""
    return paper_of(Raviola2021(seed, repetitions))


def paper_of(experiment: Raviola2021) -> Paper:
    """Exhibits of an experiment."""
    source = experiment.paper["source"]
    model, temperature = raviola2021_model, raviola2021_temperature
    steps: tuple[tuple[str, Callable[[Raviola2021], Exhibit]], ...] = (
        ("Table 1", model.table_1),
        ("Figure 1", model.figure_1),
        ("Figure 2", model.figure_2),
        ("Figure 3", model.figure_3),
        ("Table 2", model.table_2),
        ("Figure 4", model.figure_4),
        ("Figure 5", model.figure_5),
        ("Figure 6", model.figure_6),
        ("Table 3", model.table_3),
        ("Figure 7", temperature.figure_7),
        ("Figure 8", temperature.figure_8),
        ("Table 4", temperature.table_4),
        ("Table 5", temperature.table_5),
        ("Table 6", temperature.table_6),
        ("Table 7", temperature.table_7),
        ("Figure 9", model.figure_9),
        ("Table 8", model.table_8),
    )

    def bind(make: Callable[[Raviola2021], Exhibit]) -> Callable[[], Exhibit]:
        return lambda: make(experiment)

    return Paper(
        "raviola2021",
        source["paper"],
        source["authors"],
        source["journal"],
        (
            "Identifiable, in combination, without effect: 36, 33 and 9 parameters with axis 1 "
            "vertical, 37, 34 and 7 otherwise; 30, 39, 9 and 30, 42, 6 are printed.",
            "Appendix, UR3, row 2: mz1 - 4.104 Ixz2; 2.353 is the UR5's.",
            "More than 52 columns make the condition number grow, not drop.",
            "Standard deviations lack the residual variance.",
            "e_N divides by N and not by the root of it: it falls with the length of the record.",
            "About 90 % less error is 87.3 and 87.4 %; the ceiling's error is in Table 8, not 7.",
            "Weighted least squares took 138.9 s with a dense weight matrix; scaling rows costs "
            "what least squares costs.",
        ),
        tuple((label, bind(make)) for label, make in steps),
    )
