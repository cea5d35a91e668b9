"""Online payload identification on a UR10 [Xu2024]: its experiment on the simulated arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from taufit.core.arrays import Array, Float
from taufit.estimators import Wls
from taufit.model.fitted_model import FittedModel
from taufit.papers import xu2024_friction, xu2024_model, xu2024_payload
from taufit.papers.exhibit import Exhibit, Paper, row_matrix
from taufit.papers.printed_tables import printed
from taufit.payload import PayloadRun, identify_payload
from taufit.recording import Recording
from taufit.recording.crop import crop
from taufit.signals import Samples, condition
from taufit.sim import CarriedPayload, SimulatedRun, Twin, read_preset
from taufit.sim.hand_guiding import GuidedMotion
from taufit.terms import friction_model
from taufit.workflow import identify

# One arm: its ripple stays where it is from run to run.
ARM = 7.0
CUTOFF_HZ = 40.0


class Xu2024:
    """Recordings and fits of the experiment, made once and shared by the exhibits."""

    def __init__(self) -> None:
        self.paper = printed("xu2024")
        self.preset = read_preset("ur10-paper")

    @cached_property
    def twin(self) -> Twin:
        """The arm."""
        effects = self.preset.twin.effects
        assert effects.ripple is not None
        return replace(
            self.preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=ARM))
        )

    @property
    def payload(self) -> CarriedPayload:
        """The concentric payload of Table VII."""
        assert self.preset.payload is not None
        return self.preset.payload

    @cached_property
    def empty(self) -> SimulatedRun:
        """Ten periods of the paper's motion without payload."""
        return self.twin.run(self.preset.motion(periods=10), seed=11)

    @cached_property
    def loaded(self) -> SimulatedRun:
        """Ten periods with the payload; methods see the first three."""
        return self.twin.run(self.preset.motion(periods=10), seed=12, payload=self.payload)

    @cached_property
    def first_periods(self) -> Recording:
        """What the payload methods see of the loaded run: three periods."""
        return crop(self.loaded.recording, None, 30.5)

    @cached_property
    def empty_samples(self) -> Samples:
        """Conditioned at the paper's 40 Hz."""
        return condition([self.empty.recording], cutoff_hz=CUTOFF_HZ)

    @cached_property
    def model(self) -> FittedModel:
        """The paper's offline identification: power-law friction, weighted least squares."""
        return identify(
            self.twin.robot,
            [self.empty.recording],
            friction=friction_model("power_law"),
            estimator=Wls(),
            cutoff_hz=CUTOFF_HZ,
        ).model

    @cached_property
    def best(self) -> FittedModel:
        """What taufit fits by default."""
        return identify(self.twin.robot, [self.empty.recording]).model

    def found(self, method: str) -> PayloadRun:
        """The payload by one of the methods."""
        if method not in self._found:
            own = self.best if method == "filter" else self.model
            source = self.poses if method == "static" else self.first_periods
            self._found[method] = identify_payload(own, source, method=method)
        return self._found[method]

    @cached_property
    def _found(self) -> dict[str, PayloadRun]:
        return {}

    @cached_property
    def poses(self) -> Recording:
        """Poses held with the payload, each approached from both sides."""
        motion = xu2024_payload.held_poses(self.twin.robot.joints)
        return self.twin.run(motion, seed=13, payload=self.payload).recording

    @cached_property
    def guided(self) -> tuple[GuidedMotion, GuidedMotion]:
        """Led by hand, without and with the payload compensated."""
        return xu2024_payload.guided(self, False), xu2024_payload.guided(self, True)

    @cached_property
    def rows(self) -> Float[Array, "58 p"]:
        """The paper's base parameters over our standard ones."""
        rows = [row["coefficients"] for row in self.paper["base_parameters"]["rows"]]
        return row_matrix(rows, self.model.names)


def paper() -> Paper:
    """The paper and its exhibits."""
    own = Xu2024()
    source = own.paper["source"]

    def drawing(label: str, title: str, what: str) -> tuple[str, Callable[[], Exhibit]]:
        return label, lambda: Exhibit(label, title, missing=what)

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
            ("Table I", lambda: payload.table_1(own)),
            ("Figure 1", lambda: model.figure_1(own)),
            ("Figure 2", lambda: model.figure_2(own)),
            ("Table II", lambda: model.table_2(own)),
            drawing(
                "Figure 3",
                "Frames of the arm",
                "a drawing of the frames; `taufit report` draws the arm.",
            ),
            ("Table III", lambda: model.table_3(own)),
            ("Table IV", lambda: model.table_4(own)),
            ("Figure 4", lambda: model.figure_4(own)),
            ("Table V", lambda: model.table_5(own)),
            ("Table VI", lambda: model.table_6(own)),
            drawing("Figure 5", "The payload", "a photograph."),
            ("Figure 6", lambda: payload.figure_6(own)),
            ("Table VII", lambda: payload.table_7(own)),
            ("Figure 7", lambda: friction.figure_7(own)),
            ("Table VIII", lambda: friction.table_8(own)),
            ("Table IX", lambda: friction.table_9(own)),
            ("Figure 8", lambda: friction.figure_8(own)),
            drawing("Figure 9", "The second payload", "a photograph."),
            ("Figure 10", lambda: payload.figure_10(own)),
            ("Figure 11", lambda: payload.figure_11(own)),
            ("Figure 12", lambda: payload.figure_12(own)),
        ),
    )
