"""Payload of the simulated robot over time."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError
from taufit.model.payload import Payload
from taufit.robot import Robot
from taufit.sim.mujoco_arm import negative_eigenvalue


@dataclass(frozen=True, slots=True, eq=False)
class CarriedPayload:
    """Payload on the last link.

    Attributes:
        parameters: Ten inertial parameters in the frame of the last link.
        pick: Time of picking up after the start of the recording [s]; None: before.
        drop: Time of dropping [s]; None: never.
    """

    parameters: Float[Array, " 10"]
    pick: float | None = None
    drop: float | None = None

    @classmethod
    def lump(
        cls,
        mass: float,
        centre: tuple[float, float, float] | Float[Array, " 3"] = (0.0, 0.0, 0.0),
        inertia: Float[Array, "3 3"] | None = None,
        *,
        pick: float | None = None,
        drop: float | None = None,
    ) -> CarriedPayload:
        """Payload from mass, centre of mass in the last link's frame and inertia about it.

        Default inertia: that of an aluminium sphere.
        """
        return cls(Payload.from_mass(mass, tuple(centre), inertia).parameters, pick, drop)


def require_valid_payload(robot: Robot, payloads: tuple[CarriedPayload, ...]) -> None:
    """InfeasibleError for payloads that are inconsistent or too heavy for the robot."""
    arm = float(robot.parameters[robot.layout.masses].sum())
    for item in payloads:
        if not np.all(np.isfinite(item.parameters)) or item.parameters[0] <= 0.0:
            raise InfeasibleError("a payload has a positive mass and finite parameters.")
        smallest = negative_eigenvalue(item.parameters)
        if smallest is not None:
            raise InfeasibleError(
                f"this payload is not physically possible: its pseudo-inertia has the eigenvalue "
                f"{smallest:.3g}."
            )
        if item.drop is not None and item.drop <= (item.pick or 0.0):
            raise InfeasibleError("a payload is dropped after it is picked up, not before.")
        if item.parameters[0] > 2.0 * arm:
            raise InfeasibleError(
                f"a payload of {item.parameters[0]:.4g} kg is more than twice the arm's own "
                f"{arm:.4g} kg: no such arm carries that."
            )


def payload_timeline(
    payloads: tuple[CarriedPayload, ...],
) -> list[tuple[float, Float[Array, " 10"]]]:
    """(time, total parameters from then on), the first at -infinity."""
    times = sorted({t for item in payloads for t in (item.pick, item.drop) if t is not None})
    events = []
    for time in [-np.inf, *times]:
        total = np.zeros(10)
        for item in payloads:
            is_picked = item.pick is None or item.pick <= time
            is_dropped = item.drop is not None and item.drop <= time
            if is_picked and not is_dropped:
                total += item.parameters
        events.append((time, total))
    return events
