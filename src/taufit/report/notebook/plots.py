"""Charts of the report with matplotlib, for papers and notebooks; each returns its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.extras import missing_extra
from taufit.model.fitted_model import FittedModel
from taufit.recording import Recording
from taufit.report.model_view import predict_breakdown
from taufit.report.palette import LIGHT
from taufit.report.sections.friction import friction_curve
from taufit.signals import Samples

_CURVE_POINTS, _COLUMNS = 401, 3


def plot_friction(model: FittedModel, joints: Sequence[int] | None = None) -> Any:
    """Plot friction over speed within the training range, one panel per joint (from 0)."""
    indices = _joint_indices(joints, model.robot.joints)
    velocity_range = model.training.ranges.velocity
    max_speed = np.ones(model.robot.joints) if velocity_range is None else velocity_range.largest
    axes = _panels(len(indices))
    for axis, joint in zip(axes, indices, strict=True):
        speed = np.linspace(-max_speed[joint], max_speed[joint], _CURVE_POINTS)
        axis.plot(speed, friction_curve(model, speed, joint, 0.0), color=LIGHT["model"])
        _label(axis, model.robot.joint_names[joint], "speed [rad/s]", "friction [N m]")
    return axes


def plot_torque(model: FittedModel, samples: Samples, joints: Sequence[int] | None = None) -> Any:
    """Plot measured and predicted torque over time, one panel per joint (from 0).

    Residuals are in a strip below each panel, on a scale of five times their root mean square.
    """
    indices = _joint_indices(joints, model.robot.joints)
    predicted = predict_breakdown(model, samples).total
    time = np.arange(len(predicted)) / samples.rate_hz
    panels = _panels(len(indices), strips=True)
    axes, strips = panels[::2], panels[1::2]
    for axis, strip, joint in zip(axes, strips, indices, strict=True):
        measured = samples.torque[:, joint]
        axis.plot(time, measured, color=LIGHT["measured"], linewidth=3.0, label="measured")
        axis.plot(time, predicted[:, joint], color=LIGHT["model"], linewidth=1.0, label="model")
        _label(axis, model.robot.joint_names[joint], "", "torque [N m]")
        axis.tick_params(labelbottom=False)
        strip.sharex(axis)
        residual = measured - predicted[:, joint]
        strip.plot(time, residual, color=LIGHT["residual"], linewidth=0.8, label="residual")
        limit = 5.0 * float(np.sqrt(np.mean(residual**2))) or 1.0
        strip.set_ylim(-limit, limit)
        _label(strip, "", "time [s]", "[N m]")
    lines = [*axes[0].lines, *strips[0].lines]
    axes[0].figure.legend(handles=lines, loc="outside upper right", ncols=3, frameon=False)
    return axes


def plot_recording(recording: Recording) -> Any:
    """Plot position, velocity if recorded, and the torque channel over time."""
    time = recording.time - recording.time[0]
    channels = [("position [rad]", recording.position)]
    if recording.velocity is not None:
        channels.append(("velocity [rad/s]", recording.velocity))
    channels.append((f"torque channel [{recording.signal_unit or 'raw'}]", recording.signal))
    return _plot_channels(time, channels)


def plot_samples(samples: Samples) -> Any:
    """Plot conditioned motion and torque over time, run after run."""
    channels = [
        ("position [rad]", samples.position),
        ("velocity [rad/s]", samples.velocity),
        ("acceleration [rad/s2]", samples.acceleration),
        ("torque [N m]", samples.torque),
    ]
    return _plot_channels(np.arange(len(samples.torque)) / samples.rate_hz, channels)


def _plot_channels(
    time: Float[Array, " n"], channels: Sequence[tuple[str, Float[Array, "n j"]]]
) -> Any:
    axes = _panels(len(channels), columns=1)
    for axis, (label, values) in zip(axes, channels, strict=True):
        axis.plot(time, values, linewidth=1.0)
        _label(axis, "", "time [s]", label)
    axes[0].legend([f"joint {j + 1}" for j in range(channels[0][1].shape[1])], ncols=4)
    return axes


def _joint_indices(joints: Sequence[int] | None, count: int) -> list[int]:
    return list(range(count)) if joints is None else [int(j) for j in joints]


def _panels(count: int, columns: int = _COLUMNS, *, strips: bool = False) -> Any:
    """Create the given number of axes in one figure, each followed by its strip if asked for."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise missing_extra("plot", "a plot") from None
    columns = min(columns, count)
    rows = -(-count // columns)
    heights = (3, 1) if strips else (1,)
    size = (4.0 * columns if columns > 1 else 9.0, (3.2 if strips else 2.6) * rows)
    figure, grid = pyplot.subplots(
        rows * len(heights),
        columns,
        figsize=size,
        layout="constrained",
        squeeze=False,
        height_ratios=heights * rows,
    )
    axes = grid.reshape(rows, len(heights), columns).swapaxes(1, 2).ravel()
    used = count * len(heights)
    for unused in axes[used:]:
        figure.delaxes(unused)
    return axes[:used]


def _label(axis: Any, title: str, x: str, y: str) -> None:
    axis.set_title(title, fontsize="medium")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(color=LIGHT["grid"])
    axis.set_axisbelow(True)
    axis.tick_params(colors=LIGHT["soft"], length=0)
    for side in axis.spines.values():
        side.set_visible(False)
