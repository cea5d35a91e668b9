"""A simulated fleet of UR5: friction by siblings against separate fits, and who is named.

Every arm is recorded for 20 s; friction terms differ by 20 % from robot to robot, links by 1 %. Two
are worn, one has a tool of 1.5 kg that nobody knows of, one is mounted 20 degrees off. Separate
fits are `taufit.identify` on every robot's recording.

How much wear siblings can show follows from their spread: a joint's friction differs by 0.14 on a
logarithmic scale, the farthest of 1,200 by chance is more than 3 spreads out, and a joint that had
little friction before must wear more until it stands out. `detectable_rise` says so: about
2.3 times among 200 robots for 19 of 20 worn joints. Worn joints here have 2.4 times their own
friction. With 1.9 times about one in three is not farther out than chance takes one; how many of
the two could be named at all is a row of its own.

By default 40 robots; `python -m benchmarks.accuracy.fleet 200 201 1.9` takes 200, seed 201 and wear
of 1.9 times, about five minutes of processor time.
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
from taufit.core.arrays import Array, Float
from taufit.fleet import study_fleet
from taufit.fleet.friction_outliers import friction_outliers
from taufit.fleet.levels import FrictionCurve
from taufit.model.fitted_model import FittedModel

# Of the worn joints, as a factor on their own friction.
WEAR = 2.4


def rows(robots: int = 40, seed: int = 21, wear: float = WEAR) -> Iterator[Row]:
    worn = {robots // 12: 1, robots // 2: 3}
    odd = {
        **{name_of(k): "friction" for k in worn},
        name_of(robots // 3): "tool",
        name_of(3 * robots // 4): "mounting",
    }
    plan = Plan(
        robots=robots, worn={k: (joint, wear) for k, joint in worn.items()},
        tool={robots // 3: 1.5}, mounted={3 * robots // 4: (0.0, 0.35, 0.0)}, seed=seed,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        truth = make(Path(name), plan)
        found = study_fleet(taufit.read_robot("ur5"), name)
        usual = [one for one in truth if one not in odd]
        alone = {
            one: taufit.identify(
                "ur5", Path(name) / one / "2026-03-01.parquet", ignore_contradictions=True
            ).model
            for one in usual
        }
    together = {one.robot: one for one in found.robots}
    named = {one.robot: one.outliers[0].kind for one in found.robots if one.is_outlier}
    of = f"{robots} robots" if wear == WEAR else f"{robots} robots, wear {wear:g} x"
    note = f"UR5, 20 s each, seed {seed}{_long(robots)}"
    yield Row(
        f"{of}, wear named from, joints' median",
        float(np.median(found.detectable_rise)),
        "x",
        "",
        note,
    )
    right = sum(named.get(one) == kind for one, kind in odd.items())
    yield Row(f"{of}, odd ones named by cause", right, "of 4", ">= 4", note)
    yield Row(f"{of}, others named", len(set(named) - set(odd)), "", "<= 0", note)
    possible = friction_outliers({one: _exact(curve) for one, curve in truth.items()})
    seen = sum(any(u.joint == j for u in possible[name_of(k)]) for k, j in worn.items())
    yield Row(f"{of}, worn ones named if friction were known exactly", seen, "of 2", "", note)
    siblings = _rms([friction_curve(together[one].model) - truth[one] for one in usual])
    separate = _rms([friction_curve(model) - truth[one] for one, model in alone.items()])
    note = f"UR5, seed {seed}; {len(usual)} compared, 5 to 50 % of rated speed{_long(robots)}"
    yield Row(f"{of}, friction by siblings", siblings, "N m rms", "", note)
    yield Row(f"{of}, friction by separate fits", separate, "N m rms", "", note)
    yield Row(f"{of}, siblings over separate fits", siblings / separate, "x", "<= 0.75", note)


def _long(robots: int) -> str:
    return " (long run)" if robots > 40 else ""


def _exact(curve: Float[Array, "j s"]) -> FrictionCurve:
    """True friction at the lowest and the highest speed, known without error."""
    return FrictionCurve(curve[:, [0, -1]], np.zeros((len(curve), 2, 2)))


def friction_curve(model: FittedModel) -> Float[Array, "j s"]:
    """Steady friction without load at the speeds that are compared [N m]."""
    speed = np.asarray(model.robot.limits.velocity)[:, None] * np.array(SPEEDS)
    own = model.layout.split(np.asarray(model.values)).drive
    out = np.zeros_like(speed)
    for k, term in enumerate(model.friction_model.parameters if model.friction is not None else ()):
        if term.name == "coulomb":
            out += own[:, k, None]
        elif term.name.startswith("viscous"):
            out += own[:, k, None] * speed ** int(term.name.removeprefix("viscous") or 1)
    return out


def _rms(values: list[Array]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    for row in rows(*(int(word) for word in sys.argv[1:3]), *(float(w) for w in sys.argv[3:])):
        print(f"{row.name:<55} {row.value:10.4g} {row.unit:<8} {row.target:<8} {row.note}")
