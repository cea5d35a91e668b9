"""Variables of a unit by value reference, for FMI 2 and 3."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.names import clean_name
from taufit.model.fitted_model import FittedModel
from taufit.terms import needs

# Units of a quantity for revolute and for prismatic joints.
UNITS = {
    "position": ("rad", "m"),
    "velocity": ("rad/s", "m/s"),
    "acceleration": ("rad/s2", "m/s2"),
    "torque": ("N.m", "N"),
    "temperature": ("degC", "degC"),
    "stiffness": ("N.m/rad", "N/m"),
    "damping": ("N.m.s/rad", "N.s/m"),
    "integral": ("N.m/(rad.s)", "N/(m.s)"),
}


@dataclass(frozen=True, slots=True, eq=False)
class VariableGroup:
    """One quantity of every joint.

    Attributes:
        name: `position` becomes position[1], position[2], ...
        quantity: Key of `UNITS`.
        causality: input, parameter or output.
        about: Description, before "of joint ...".
        start: Start values, one per joint; None for results.
        fixed: Whether it can be set only until the end of initialization.
    """

    name: str
    quantity: str
    causality: str
    about: str
    start: Float[Array, " j"] | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """One scalar variable; its value reference is its position in the list, after time."""

    name: str
    causality: str
    variability: str
    initial: str | None
    start: float | None
    unit: str
    description: str


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """All variables of a unit: inputs and tunable parameters, fixed parameters, results."""

    groups: tuple[VariableGroup, ...]
    joint_names: tuple[str, ...]
    prismatic: tuple[bool, ...]

    def __post_init__(self) -> None:
        order = [self._rank(group) for group in self.groups]
        assert order == sorted(order), "references say by their order what can be set"

    @staticmethod
    def _rank(group: VariableGroup) -> int:
        return 2 if group.start is None else int(group.fixed)

    def count(self, rank: int) -> int:
        """Number of value references, including time, up to a rank: settable, fixed, result."""
        return 1 + len(self.joint_names) * sum(self._rank(g) <= rank for g in self.groups)

    @property
    def places(self) -> dict[str, int]:
        """First value reference of each group."""
        return {g.name: 1 + k * len(self.joint_names) for k, g in enumerate(self.groups)}

    @property
    def starts(self) -> Float[Array, " v"]:
        """Start values by value reference; 0 for time and results."""
        zeros = np.zeros(len(self.joint_names))
        return np.concatenate(
            [[0.0], *(zeros if g.start is None else g.start for g in self.groups)]
        )

    def enumerate_variables(self) -> Iterator[tuple[int, Variable]]:
        """Value references and variables, without time."""
        for group in self.groups:
            for j, joint in enumerate(self.joint_names):
                output = group.causality == "output"
                variability = "continuous"
                if group.causality == "parameter":
                    variability = "fixed" if group.fixed else "tunable"
                initial = "calculated" if group.start is None else "exact"
                yield (
                    self.places[group.name] + j,
                    Variable(
                        f"{group.name}[{j + 1}]",
                        group.causality,
                        variability,
                        initial if output or group.causality == "parameter" else None,
                        None if group.start is None else float(group.start[j]),
                        UNITS[group.quantity][self.prismatic[j]],
                        f"{group.about} of joint {j + 1} ({clean_name(joint)})",
                    ),
                )


def _variables_of_model(model: FittedModel, groups: list[VariableGroup]) -> Variables:
    robot = model.robot
    return Variables(tuple(groups), tuple(robot.joint_names), tuple(robot.is_prismatic.tolist()))


def _temperature_group(model: FittedModel) -> list[VariableGroup]:
    if not needs(model.term_sum, "temperature"):
        return []
    start = np.asarray(model.typical_temperature, float)
    return [VariableGroup("temperature", "temperature", "input", "temperature", start)]


def inverse_variables(model: FittedModel) -> Variables:
    """Variables of inverse dynamics: motion in, torque out."""
    zero = np.zeros(model.robot.joints)
    return _variables_of_model(
        model,
        [
            VariableGroup("position", "position", "input", "position", zero),
            VariableGroup("velocity", "velocity", "input", "velocity", zero),
            VariableGroup("acceleration", "acceleration", "input", "acceleration", zero),
            *_temperature_group(model),
            VariableGroup("torque", "torque", "output", "torque of the drive"),
        ],
    )


def forward_variables(model: FittedModel, presliding: Float[Array, " j"]) -> Variables:
    """Variables of forward dynamics: torque in, motion out; with a servo if its gains are set."""
    zero = np.zeros(model.robot.joints)
    servo = "of the servo of the drive"
    return _variables_of_model(
        model,
        [
            VariableGroup("torque", "torque", "input", "torque given to the drive", zero),
            VariableGroup("reference_position", "position", "input", f"reference {servo}", zero),
            VariableGroup(
                "reference_velocity", "velocity", "input", f"reference velocity {servo}", zero
            ),
            *_temperature_group(model),
            VariableGroup("stiffness", "stiffness", "parameter", f"stiffness {servo}", zero),
            VariableGroup("damping", "damping", "parameter", f"damping {servo}", zero),
            VariableGroup("integral_gain", "integral", "parameter", f"integral gain {servo}", zero),
            VariableGroup(
                "presliding",
                "position",
                "parameter",
                "displacement over which friction turns over",
                presliding,
                True,
            ),
            VariableGroup("position", "position", "output", "position", zero, True),
            VariableGroup("velocity", "velocity", "output", "velocity", zero, True),
            VariableGroup(
                "acceleration", "acceleration", "output", "acceleration in the last step"
            ),
            VariableGroup(
                "drive_torque", "torque", "output", "torque of the drive in the last step"
            ),
            VariableGroup("friction", "torque", "output", "friction and offset in the last step"),
        ],
    )
