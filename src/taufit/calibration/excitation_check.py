"""Excitation check: which base parameters a motion can identify, before any fit."""

from __future__ import annotations

import numpy as np

from taufit.core.errors import RecordingError
from taufit.dynamics import base_parameters, gravity_torque, regressor
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.signals import Samples, condition, lowpass

# Minimum ratio of gravity torque std to torque std for a sign check, except in the joints with the
# largest gravity torque.
_GRAVITY_RATIO = 0.3


def gravity_findings(robot: Robot, samples: Samples) -> tuple[str, ...]:
    """Messages about joints whose torque has the wrong sign or scale relative to gravity.

    tau_i = s g_i + c sign(v_i) + d a_i + b is fitted per joint with the gravity torque g of the
    nominal robot: s is near one where sign, mounting and gain are right, and negative where the
    torque sign is reversed.
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
        is_largest = g.std() >= 0.5 * gravity.std(axis=0).max()
        if g.std() < 1e-6 or (g.std() < _GRAVITY_RATIO * torque.std() and not is_largest):
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
        if slope < (-0.2 if is_largest else -0.5):
            messages.append(
                f"joint {j + 1}: torque falls where gravity makes it rise ({slope:.2f} times the "
                "nominal gravity). Its sign or the mounting is the other way round: give "
                "`sign: -1` in the column map, or --mounting."
            )
        elif is_largest and not 0.2 < slope < 5.0:
            messages.append(
                f"joint {j + 1}: torque is {slope:.2g} times what gravity on the nominal robot "
                "makes of it. Check the drive gain, the units and the mounting."
            )
    return tuple(messages)


# Fraction of a column independent of the other columns, below which its parameter is confounded.
_INDEPENDENT_FRACTION = 0.01
_MAXIMUM_ROWS = 1500


def model_findings(robot: Robot, recording: Recording) -> tuple[Finding, ...]:
    """Findings that need a robot model: excitation, and torque sign against gravity.

    Empty if the recording cannot be conditioned or does not move; the quality report says why.
    """
    if recording.joints != robot.joints:
        return ()
    try:
        samples = condition(recording)
    except RecordingError:
        return ()
    signs = (
        Finding("sign", "warning", text, "taken as the map says")
        for text in gravity_findings(robot, samples)
    )
    return (*excitation_findings(robot, samples), *signs)


def excitation_findings(robot: Robot, samples: Samples) -> tuple[Finding, ...]:
    """Finding on how many base parameters of a robot the motion identifies, and which it does not.

    With W the base columns of the moving rows, weighted by the noise, each column is split into
    the part that other columns (friction and offset among them) can express and the remainder o;
    the standard deviation of a parameter is 1 / |o|. A parameter is weakly excited if |o| is below
    1 % of the column, or if its standard deviation exceeds the largest such parameter (mass, first
    moment, inertia) of its link in the nominal robot.
    """
    rows = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
    if len(rows) < 50 or robot.joints != samples.joints:
        return ()
    friction = lowpass(samples, np.tanh(samples.friction_velocity / 0.005))
    rows = rows[:: max(1, len(rows) // _MAXIMUM_ROWS)]
    base = base_parameters(robot)
    columns = regressor(
        robot, samples.position[rows], samples.velocity[rows], samples.acceleration[rows]
    )[:, :, base.columns]
    j, b = robot.joints, len(base.columns)
    extra = np.zeros((len(rows), j, 3 * j))
    for i in range(j):
        extra[:, i, 3 * i : 3 * i + 3] = np.stack(
            [friction[rows, i], samples.velocity[rows, i], np.ones(len(rows))], axis=1
        )
    noise = np.ones(j) if samples.noise is None else np.maximum(samples.noise, 1e-9)
    # The grid is finer than the low-pass: neighbouring rows are not independent.
    noise = np.maximum(noise, 1e-3 * np.std(samples.torque[samples.in_motion], axis=0))
    sampling_fraction = len(rows) / max(1, int(np.count_nonzero(samples.in_motion)))
    weight = samples.keep[rows] / (noise * np.sqrt(sampling_fraction))
    stacked = np.concatenate([columns, extra], axis=2) * weight[:, :, None]
    stacked = stacked.reshape(-1, b + 3 * j)
    size = np.linalg.norm(stacked, axis=0)
    excited = size > 1e-9 * size.max()
    upper = np.asarray(np.linalg.qr(stacked[:, excited] / size[excited], mode="r"))
    # 1 / sqrt of the diagonal of (W'W)^-1 is the independent part of each unit column; it is zero
    # for dependent columns, so small singular values are bounded, not dropped.
    _, singular, right = np.linalg.svd(upper)
    inverse = right.T / np.maximum(singular, 1e-9 * singular[0])
    independent = np.zeros(b + 3 * j)
    independent[excited] = 1.0 / np.linalg.norm(inverse, axis=1)
    independent = independent[:b]
    with np.errstate(divide="ignore"):
        std = np.where(independent > 0, 1.0 / (independent * np.maximum(size[:b], 1e-300)), np.inf)
    weak = independent < _INDEPENDENT_FRACTION
    if np.any(robot.parameters):
        nominal = np.abs(base.mapping @ robot.parameters)
        # Link name and first letter of the parameter: m, h or I.
        kinds = np.array([name[: name.index(".") + 2] for name in base.names])
        for kind in np.unique(kinds):
            largest = np.max(nominal[kinds == kind])
            weak |= (kinds == kind) & (std > largest) & (largest > 0)
    names = [base.names[k] for k in np.flatnonzero(weak)]
    condition_number = float(np.linalg.cond(upper[:, : np.count_nonzero(excited[:b])]))
    text = f"the motion shows {b - len(names)} of {b} base parameters of the links"
    if names:
        listed_names = ", ".join(names[:8]) + (
            f" and {len(names) - 8} more" if len(names) > 8 else ""
        )
        text += f"; hardly {listed_names}"
    return (
        Finding(
            "excitation",
            "warning" if len(names) > 0.25 * b or condition_number > 1e4 else "info",
            f"{text} (scaled condition number {condition_number:.3g})",
            "a fit holds those near the nominal arm; `taufit design` plans a motion that shows them"
            if names
            else "",
            value=float(b - len(names)),
        ),
    )
