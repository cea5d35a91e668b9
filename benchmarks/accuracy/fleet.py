"""A simulated fleet of UR5: friction by siblings against separate fits, and who is named.

Every arm is recorded for 20 s; friction terms differ by 20 % from robot to robot, links by 1 %. Two
are worn (one joint's friction 1.9 times its own), one has a tool of 1.5 kg that nobody knows of,
one is mounted 20 degrees off. Separate fits are `taufit.identify` on one robot's recording, for
some of the robots. By default 40 robots; `python -m benchmarks.accuracy.fleet 200` takes about four
minutes of processor time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import taufit
from benchmarks import Row
from benchmarks.simulated_fleet import SPEEDS, Plan, make, name_of
from taufit.arrays import Array, Float
from taufit.fleet import study_fleet
from taufit.model.fitted_model import FittedModel


def rows(robots: int = 40, compared: int = 10, seed: int = 21) -> Iterator[Row]:
    odd = {
        name_of(robots // 12): "friction",
        name_of(robots // 2): "friction",
        name_of(robots // 3): "tool",
        name_of(3 * robots // 4): "mounting",
    }
    plan = Plan(
        robots=robots, worn={robots // 12: (1, 1.9), robots // 2: (3, 1.9)},
        tool={robots // 3: 1.5}, mounted={3 * robots // 4: (0.0, 0.35, 0.0)}, seed=seed,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        truth = make(Path(name), plan)
        found = study_fleet(taufit.read_robot("ur5"), name)
        usual = [one for one in truth if one not in odd]
        some = usual[:: max(1, len(usual) // compared)]
        alone = {
            one: taufit.identify("ur5", Path(name) / one / "2026-03-01.parquet").model
            for one in some
        }
    together = {one.robot: one for one in found.robots}
    named = {one.robot: one.surprises[0].kind for one in found.robots if one.outlier}
    note = f"{robots} UR5, 20 s each"
    right = sum(named.get(one) == kind for one, kind in odd.items())
    yield Row("odd robots named by cause", right, "of 4", ">= 4", note)
    yield Row("others named", len(set(named) - set(odd)), "", "<= 0", note)
    siblings = _rms([friction_curve(together[one].model) - truth[one] for one in some])
    separate = _rms([friction_curve(model) - truth[one] for one, model in alone.items()])
    yield Row("friction by siblings", siblings, "N m rms", "", f"{note}; {len(some)} compared")
    yield Row("friction by separate fits", separate, "N m rms", "", f"{len(some)} robots")
    yield Row("siblings over separate fits", siblings / separate, "x", "<= 0.75", note)


def friction_curve(model: FittedModel) -> Float[Array, "j s"]:
    """Steady friction without load at the speeds that are compared [N m]."""
    speed = np.asarray(model.robot.limits.velocity)[:, None] * np.array(SPEEDS)
    own = model.layout.split(np.asarray(model.values)).friction
    out = np.zeros_like(speed)
    for k, term in enumerate(model.friction.terms if model.friction is not None else ()):
        if term.name == "coulomb":
            out += own[:, k, None]
        elif term.name.startswith("viscous"):
            out += own[:, k, None] * speed ** int(term.name.removeprefix("viscous") or 1)
    return out


def _rms(values: list[Array]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 40):
        print(f"{row.name:<35} {row.value:10.4g} {row.unit:<8} {row.target:<8} {row.note}")
