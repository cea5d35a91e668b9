"""Result of a payload estimation."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.model.payload import Payload
from taufit.payload.controller_commands import FlangePayload
from taufit.robot.inertia import tensor_entries


@dataclass(frozen=True, slots=True, eq=False)
class PayloadEstimate:
    """A payload in the last link's frame, with 95 % intervals.

    Attributes:
        time: Time of the newest sample used [s].
        parameters: Ten inertial parameters, physically consistent.
        mass: Mass [kg], with `mass_interval`.
        centre: Centre of mass in the last link's frame [m], with `centre_interval` (low, high).
        inertia: Inertia about the centre of mass, axes of the last link's frame [kg m^2].
        inertia_interval: Low and high of the six entries Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
        mass_std, centre_std: Standard deviations.
        ready: Whether the motion so far separates friction from load.
        accurate: Whether the required accuracy is reached.
        empty: Whether zero mass is consistent with the data.
        from_prior: Whether the inertia is determined mostly by the prior shape.
        warnings: Messages for the user.
        unexplained: Reason why the model does not describe this robot; "" if it does.
        covariance: Covariance of `parameters`; None if the method gives none.
    """

    time: float
    parameters: Float[Array, " 10"]
    mass: float
    mass_std: float
    mass_interval: tuple[float, float]
    centre: Float[Array, " 3"]
    centre_std: Float[Array, " 3"]
    centre_interval: tuple[Float[Array, " 3"], Float[Array, " 3"]]
    inertia: Float[Array, "3 3"]
    inertia_interval: tuple[Float[Array, " 6"], Float[Array, " 6"]]
    ready: bool = False
    accurate: bool = False
    empty: bool = False
    from_prior: bool = True
    warnings: tuple[str, ...] = field(default=())
    unexplained: str = ""
    covariance: Float[Array, "10 10"] | None = None

    def __repr__(self) -> str:
        low, high = self.mass_interval
        x, y, z = self.centre
        return (
            f"PayloadEstimate({self.mass:.3f} kg, 95 %: {low:.3f} to {high:.3f}; "
            f"centre {x:.3f}, {y:.3f}, {z:.3f} m)"
        )

    @property
    def has_intervals(self) -> bool:
        """Whether the method gives standard deviations; without them there are no intervals."""
        return bool(np.isfinite(self.mass_std))

    def to_payload(self) -> Payload:
        """Payload for `FittedModel.with_payload`."""
        return Payload(self.parameters, self.covariance)

    def to_dict(self) -> dict[str, Any]:
        """Value, low and high of mass, com and inertia for JSON; None without interval."""
        return {
            "mass": {
                "value": self.mass,
                "low": _number(self.mass_interval[0]),
                "high": _number(self.mass_interval[1]),
            },
            "com": {
                "value": self.centre.tolist(),
                "low": _numbers(self.centre_interval[0]),
                "high": _numbers(self.centre_interval[1]),
            },
            "inertia": {
                "entries": ["Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"],
                "value": tensor_entries(self.inertia).tolist(),
                "low": _numbers(self.inertia_interval[0]),
                "high": _numbers(self.inertia_interval[1]),
                "from_shape_prior": self.from_prior,
            },
        }

    def set_payload(self, flange: Float[Array, "4 4"] | None = None) -> dict[str, Any]:
        """Mass, centre of gravity and inertia in the flange frame, as controllers expect them.

        Args:
            flange: Flange frame in the last link's frame (`robot.tip`); by default the identity.
        """
        placement = np.eye(4) if flange is None else flange
        return FlangePayload.from_last_link(
            self.mass, self.centre, self.inertia, placement
        ).to_dict()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _numbers(values: Float[Array, " n"]) -> list[float] | None:
    return values.tolist() if np.isfinite(values).all() else None


def interval(value: Any, std: Any) -> tuple[Any, Any]:
    """95 % interval of a normal quantity."""
    half = NORMAL_95 * np.asarray(std)
    return value - half, value + half
