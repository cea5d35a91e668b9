"""Check that an exported model is physically consistent, as simulators require."""

from __future__ import annotations

import numpy as np

from taufit.core.errors import InfeasibleError
from taufit.robot import Robot, pseudo_inertia


def require_feasible(robot: Robot, *, tolerance: float = 1e-9) -> None:
    """InfeasibleError for a robot with an inconsistent link (negative pseudo-inertia eigenvalue).

    The tolerance is relative to the link's largest eigenvalue: a consistent fit may end on the
    boundary of the feasible set.
    """
    for link in robot.links:
        if not np.all(np.isfinite(link.parameters)):
            raise InfeasibleError(f"link {link.name!r} has parameters that are not finite numbers.")
        values = np.linalg.eigvalsh(pseudo_inertia(link.parameters))
        if values[0] < -tolerance * max(values[-1], 1e-12):
            raise InfeasibleError(
                f"link {link.name!r} is not physically possible (smallest pseudo-inertia "
                f"eigenvalue {values[0]:.3g}), so it cannot be exported. Fit again with "
                "--estimator consistent_sdp."
            )
    if np.any(robot.rotor_inertias < 0):
        joint = robot.joint_names[int(np.argmin(robot.rotor_inertias))]
        raise InfeasibleError(
            f"joint {joint!r} has a negative rotor inertia, so it cannot be exported. Fit again "
            "with --estimator consistent_sdp."
        )
