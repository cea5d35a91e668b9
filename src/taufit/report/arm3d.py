"""The arm in three dimensions along a motion, drawn by the script beside this file."""

from __future__ import annotations

import base64
import html
import json
from typing import TYPE_CHECKING

import numpy as np

from taufit.dynamics import forward_kinematics
from taufit.robot import Robot
from taufit.robot.mounting import rotation_rpy

if TYPE_CHECKING:
    from taufit.excitation import Motion


def arm3d(robot: Robot, motion: Motion, caption: str, frames: int = 240) -> str:
    """The HTML of one figure: base, joints and tip in world axes, the tip's path behind them."""
    time = np.linspace(0.0, motion.duration, frames)
    q, _, _ = motion.at(time)
    poses = forward_kinematics(robot, q)
    points = np.concatenate([np.zeros((frames, 1, 3)), poses[:, :, :3, 3]], 1)
    points = points @ rotation_rpy(*robot.mounting).T
    spec = {
        "points": base64.b64encode(points.astype(np.float32).tobytes()).decode(),
        "count": points.shape[1],
        "frames": frames,
        "seconds": motion.duration,
        "reach": float(max(np.linalg.norm(points, axis=-1).max(), 1e-3)),
    }
    return (
        f'<figure class="arm3d"><figcaption>{html.escape(caption)}</figcaption>'
        f'<canvas role="img" aria-label="{html.escape(caption, quote=True)}"></canvas>'
        f'<button type="button">Play</button>'
        f'<input type="range" min="0" max="{frames - 1}" value="0" aria-label="time">'
        f'<script type="application/json">{json.dumps(spec)}</script></figure>'
    )
