"""Online payload identification on a UR10 [Xu2024], on the simulated robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from taufit.core.arrays import Array, Float
from taufit.excitation import Motion
from taufit.model.fitted_model import FittedModel
from taufit.papers import xu2024_friction, xu2024_model, xu2024_payload, xu2024_trials
from taufit.papers.exhibit import Exhibit, Paper, row_matrix
from taufit.papers.printed_tables import printed_tables
from taufit.payload import PayloadRun, identify_payload
from taufit.recording import Recording
from taufit.recording.crop import crop
from taufit.robot import Robot, read_robot
from taufit.signals import Samples
from taufit.sim import CarriedPayload, SimulatedRun, Twin, read_preset
from taufit.sim.hand_guiding import GuidedMotion
from taufit.workflow import identify

# Number of the simulated robot: its ripple is the same in all runs.
ARM = 7.0
REPETITIONS = 20


class Xu2024:
    """Recordings and fits of the experiment, computed once and shared by the exhibits.

    Attributes:
        preparations: Preparations of the offline data; the first is judged as that of the paper.
    """

    preparations = tuple(xu2024_trials.PREPARATIONS)

    def __init__(self, seed: int = 0, repetitions: int | None = None) -> None:
        self.paper = printed_tables("xu2024")
        self.preset = read_preset("ur10-paper")
        self.seed, self.repetitions = seed, repetitions or REPETITIONS

    @cached_property
    def robot(self) -> Robot:
        """Bundled robot, compared with the printed kinematics."""
        return read_robot("ur10")

    @cached_property
    def twin(self) -> Twin:
        """Simulated robot."""
        effects = self.preset.twin.effects
        assert effects.ripple is not None
        return replace(
            self.preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=ARM))
        )

    @property
    def payload(self) -> CarriedPayload:
        """Concentric payload of Table VII."""
        assert self.preset.payload is not None
        return self.preset.payload

    def motion(self, periods: int) -> Motion:
        """Excitation of Table IV."""
        return self.preset.motion(periods=periods)

    def run(self, offset: int, periods: int, loaded: bool, number: int = 0) -> SimulatedRun:
        """Run of the paper's motion; `number` counts the repetitions."""
        payload = self.payload if loaded else ()
        seed = offset + 100 * number + 10_000 * self.seed
        return self.twin.run(self.motion(periods), seed=seed, payload=payload)

    @cached_property
    def empty(self) -> SimulatedRun:
        """Ten periods of the paper's motion without payload."""
        return self.run(11, 10, loaded=False)

    @cached_property
    def loaded(self) -> SimulatedRun:
        """Ten periods with the payload; the methods get the first three."""
        return self.run(12, 10, loaded=True)

    @cached_property
    def first_periods(self) -> Recording:
        """First three periods of the loaded run, input of the payload methods."""
        return crop(self.loaded.recording, None, 30.5)

    @cached_property
    def empty_samples(self) -> Samples:
        """Samples without payload, prepared as in the paper."""
        return xu2024_trials.offline_samples(self.empty.recording, "fourier", self)

    @cached_property
    def model(self) -> FittedModel:
        """Offline identification of the paper: power-law friction, weighted least squares."""
        return xu2024_trials.offline_model(self.twin.robot, self.empty_samples)

    @cached_property
    def default_model(self) -> FittedModel:
        """Default fit of taufit."""
        return identify(self.twin.robot, [self.empty.recording]).model

    @cached_property
    def trials(self) -> list[xu2024_trials.MassTrial]:
        """Mass by all methods, one trial per repetition."""
        return [xu2024_trials.mass_trial(self, number) for number in range(self.repetitions)]

    def estimate(self, method: str) -> PayloadRun:
        """Payload estimated by one of the methods."""
        if method not in self._estimates:
            model = self.default_model if method == "filter" else self.model
            source = self.poses() if method == "static" else self.first_periods
            self._estimates[method] = identify_payload(model, source, method=method)
        return self._estimates[method]

    @cached_property
    def _estimates(self) -> dict[str, PayloadRun]:
        return {}

    def poses(self, number: int = 0) -> Recording:
        """Recording of standing poses with the payload, each approached from both sides."""
        motion = xu2024_payload.standing_poses_motion(self.twin.robot.joints)
        seed = 13 + 100 * number + 10_000 * self.seed
        return self.twin.run(motion, seed=seed, payload=self.payload).recording

    @cached_property
    def friction_curves(self) -> dict[bool, dict[str, list[xu2024_friction.FittedCurve]]]:
        """Curves of both friction models, without and with payload."""
        return {loaded: xu2024_friction.fit_curves(self, loaded) for loaded in (False, True)}

    @cached_property
    def guided_motions(self) -> tuple[GuidedMotion, GuidedMotion]:
        """Hand guiding without and with compensated payload."""
        return xu2024_payload.simulate_guiding(self, False), xu2024_payload.simulate_guiding(
            self, True
        )

    @cached_property
    def rows(self) -> Float[Array, "58 p"]:
        """Base parameters of the paper as rows over our standard parameters."""
        rows = [row["coefficients"] for row in self.paper["base_parameters"]["rows"]]
        return row_matrix(rows, self.model.names)


def paper(seed: int = 0, repetitions: int | None = None) -> Paper:
    """Paper and its exhibits."""
    return paper_of(Xu2024(seed, repetitions))


def paper_of(experiment: Xu2024) -> Paper:
    """Exhibits of an experiment."""
    source = experiment.paper["source"]

    def drawing(label: str, title: str, reason: str) -> tuple[str, Callable[[], Exhibit]]:
        return label, lambda: Exhibit(label, title, missing=reason)

    model, friction, payload = xu2024_model, xu2024_friction, xu2024_payload
    return Paper(
        "xu2024",
        source["paper"],
        source["authors"],
        source["journal"],
        (
            "Appendix: pi_31 is Ixy6; Iyy6 is printed.",
            "The forgetting factor of 100 is the variance of the torque: nothing is forgotten, and "
            "with P0 = 10 the recursion is ridge regression towards pi_a.",
            "The offset vector of the trajectory lacks a comma: (0, -pi/2, 0, -pi/2, 0, 0).",
            "Table VI is no possible arm (negative rotor inertias of joints 4 to 6, negative "
            "Coulomb friction of joint 2), nor are the payload inertias of Table VII possible.",
            "The condition number 79.67 refers to a weighting that is not printed.",
        ),
        (
            ("Table I", lambda: payload.table_1(experiment)),
            ("Figure 1", lambda: model.figure_1(experiment)),
            ("Figure 2", lambda: model.figure_2(experiment)),
            ("Table II", lambda: model.table_2(experiment)),
            drawing(
                "Figure 3",
                "Frames of the arm",
                "a drawing of the frames; `taufit design ur10 --seconds 1 -o motion.json --plot "
                "motion.html` draws the arm.",
            ),
            ("Table III", lambda: model.table_3(experiment)),
            ("Table IV", lambda: model.table_4(experiment)),
            ("Figure 4", lambda: model.figure_4(experiment)),
            ("Table V", lambda: model.table_5(experiment)),
            ("Table VI", lambda: model.table_6(experiment)),
            drawing("Figure 5", "The payload", "a photograph."),
            ("Figure 6", lambda: payload.figure_6(experiment)),
            ("Table VII", lambda: payload.table_7(experiment)),
            ("Figure 7", lambda: friction.figure_7(experiment)),
            ("Table VIII", lambda: friction.table_8(experiment)),
            ("Table IX", lambda: friction.table_9(experiment)),
            ("Figure 8", lambda: friction.figure_8(experiment)),
            drawing("Figure 9", "The second payload", "a photograph."),
            ("Figure 10", lambda: payload.figure_10(experiment)),
            ("Figure 11", lambda: payload.figure_11(experiment)),
            ("Figure 12", lambda: payload.figure_12(experiment)),
        ),
    )
