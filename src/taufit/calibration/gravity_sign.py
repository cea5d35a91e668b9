"""Whether torque has the sign the model expects, judged by gravity."""

from __future__ import annotations

import numpy as np

from taufit.dynamics import gravity_torque
from taufit.robot import Robot
from taufit.signals.samples import Samples

# Gravity has to change this much along the motion to tell, relative to the torque, except in
# joints that carry most of it.
_LOUD = 0.3


def gravity_findings(robot: Robot, samples: Samples) -> tuple[str, ...]:
    """Sentences for joints whose torque goes against gravity, or is scaled far from it.

    tau_i = s g_i + c sign(v_i) + d a_i + b is fitted joint by joint with the nominal robot's
    gravity g: s is near one where sign, mounting and gain are right, and negative where the sign
    convention is the other way round.
    """
    if not np.any(robot.parameters):
        return ()
    moving = samples.in_motion
    gravity = gravity_torque(robot, samples.position[moving])
    messages = []
    for j in range(robot.joints):
        if samples.signed is not None and not samples.signed[j]:
            continue
        g = gravity[:, j]
        torque = samples.torque[moving, j]
        loudest = g.std() >= 0.5 * gravity.std(axis=0).max()
        if g.std() < 1e-6 or (g.std() < _LOUD * torque.std() and not loudest):
            continue
        columns = np.stack(
            [
                g,
                np.tanh(samples.velocity[moving, j] / 0.01),
                samples.acceleration[moving, j],
                np.ones(len(g)),
            ],
            axis=-1,
        )
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        slope = (np.linalg.lstsq(columns / size, torque, rcond=None)[0] / size)[0]
        if slope < (-0.2 if loudest else -0.5):
            messages.append(
                f"joint {j + 1}: torque falls where gravity makes it rise ({slope:.2f} times the "
                "nominal gravity). Its sign or the mounting is the other way round: give "
                "`sign: -1` in the column map, or --mounting."
            )
        elif loudest and not 0.2 < slope < 5.0:
            messages.append(
                f"joint {j + 1}: torque is {slope:.2g} times what gravity on the nominal robot "
                "makes of it. Check the drive gain, the units and the mounting."
            )
    return tuple(messages)
