"""Inputs of terms as one object, in which missing parts raise errors.

The caller fills in available parts; a term reads the parts it needs. Reading a missing part raises
an error that names part, term and remedy, so no term silently runs on zeros. Besides motion and
load, any recorded channel is a part, by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import MissingInputError

# Parts computed from motion and model; all others are recorded channels.
MOTION = ("velocity", "position", "load", "travel", "acceleration")
# Parts available in compiled loops and exported code.
COMPILED = ("velocity", "position", "load", "temperature", "travel")
_REMEDIES = {
    "velocity": "Pass the joint's velocity.",
    "position": "Use it where joint positions are at hand, or choose a model without position.",
    "load": "Pass the rigid-body torque as `load`, or choose a model without load.",
    "temperature": "Record joint temperatures, or choose a model without them.",
    "travel": "Pass the time between two samples as `step`, or use the model's `steady()` form.",
    "acceleration": "Pass the joint's acceleration.",
}


class TermInput:
    """Inputs of terms at n samples, for one joint (n,) or all joints (n, j).

    Attributes:
        step: Sampling period [s], or None for independent samples.

    Args:
        velocity: Joint velocity [rad/s or m/s].
        position: Joint position [rad or m].
        load: Rigid-body torque including any payload [N m].
        temperature: Joint temperature [degC]: the channel of that name.
        travel: Displacement per sample, velocity times sampling period; by default velocity times
            `step` if given.
        acceleration: Joint acceleration [rad/s^2 or m/s^2].
        channels: Further recorded channels by name.
        step: Time between two samples [s].
    """

    __slots__ = ("_parts", "_reader", "step")

    def __init__(
        self,
        velocity: Float[Array, "n ..."] | None = None,
        position: Float[Array, "n ..."] | None = None,
        load: Float[Array, "n ..."] | None = None,
        temperature: Float[Array, "n ..."] | None = None,
        travel: Float[Array, "n ..."] | None = None,
        *,
        acceleration: Float[Array, "n ..."] | None = None,
        channels: Mapping[str, Float[Array, "n ..."]] | None = None,
        step: float | None = None,
    ) -> None:
        named_parts = {
            "velocity": velocity,
            "position": position,
            "load": load,
            "temperature": temperature,
            "travel": travel,
            "acceleration": acceleration,
        }
        self._parts: dict[str, Any] = {
            **(channels or {}),
            **{name: part for name, part in named_parts.items() if part is not None},
        }
        self._reader: object | None = None
        self.step = step

    def __len__(self) -> int:
        return len(next(iter(self._parts.values()))) if self._parts else 0

    def has(self, part: str) -> bool:
        """Whether a part is available."""
        return part in self._parts or (
            part == "travel" and self.step is not None and "velocity" in self._parts
        )

    def read(self, part: str) -> Float[Array, "n ..."]:
        """Part by name; raises an error that names the term if it is missing."""
        if part in self._parts:
            values: Array = self._parts[part]
            return values
        if self.has(part):
            travel: Array = self._parts["velocity"] * self.step
            return travel
        reader_text = (
            "a term" if self._reader is None else f"term {_reader_name(self._reader, part)}"
        )
        remedy = _REMEDIES.get(part, f"Record the channel {part!r}, or choose a model without it.")
        raise MissingInputError(
            f"{reader_text} needs the {part} of the joint, which is not known here. {remedy}"
        )

    @property
    def velocity(self) -> Float[Array, "n ..."]:
        return self.read("velocity")

    @property
    def position(self) -> Float[Array, "n ..."]:
        return self.read("position")

    @property
    def load(self) -> Float[Array, "n ..."]:
        return self.read("load")

    @property
    def temperature(self) -> Float[Array, "n ..."]:
        return self.read("temperature")

    @property
    def acceleration(self) -> Float[Array, "n ..."]:
        return self.read("acceleration")

    @property
    def travel(self) -> Float[Array, "n ..."]:
        return self.read("travel")

    def for_reader(self, model: object) -> TermInput:
        """Inputs with the name of the reading term for messages."""
        return self._with(self._parts, reader=model)

    def require(self, parts: Iterable[str], model: object) -> TermInput:
        """Inputs restricted to given parts; raises for the first missing one."""
        inputs = self.for_reader(model)
        return self._with({part: inputs.read(part) for part in sorted(parts)})

    def replace(self, **parts: Float[Array, "n ..."]) -> TermInput:
        """Inputs with some parts replaced."""
        return self._with({**self._parts, **parts})

    def joint(self, k: int) -> TermInput:
        """Inputs of one joint."""
        return self._with({name: part[:, k] for name, part in self._parts.items()})

    def select_rows(self, rows: slice) -> TermInput:
        """Inputs of some samples."""
        return self._with({name: part[rows] for name, part in self._parts.items()})

    def at_motors(self, coupling: Float[Array, "j j"]) -> TermInput:
        """Convert joint to motor inputs: x_m = C x for motion, C^-T tau for load.

        Recorded channels belong to the motors already.
        """
        motor_parts = {
            name: part @ coupling.T
            if name in ("velocity", "position", "travel", "acceleration")
            else part @ np.linalg.inv(coupling)
            if name == "load"
            else part
            for name, part in self._parts.items()
        }
        return self._with(motor_parts)

    def at_places(self, reach: Float[Array, "j j"]) -> TermInput:
        """Convert joint motion to that of other places: x_p = R x."""
        moved = ("velocity", "position", "travel", "acceleration")
        return self._with(
            {name: x @ reach.T if name in moved else x for name, x in self._parts.items()}
        )

    def _with(self, parts: dict[str, Any], reader: object | None = None) -> TermInput:
        out = TermInput(step=self.step)
        out._parts = parts
        out._reader = self._reader if reader is None else reader
        return out


def _reader_name(reader: object, part: str) -> str:
    """Class name of the reader; of a sum, that of the term that reads the part."""
    terms = getattr(reader, "terms", ())
    return next(
        (_reader_name(term, part) for term in terms if part in term.needs), type(reader).__name__
    )
