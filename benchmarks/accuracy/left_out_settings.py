"""Settings of the fit chosen without the arm that they are scored on.

Each setting of ripple, tilt, offsets and the choice of linear friction is varied alone on all ten
arms of `leave_one_arm_out` (the first split of each). For every arm the values with the smallest
mean log nrmse of the nine other arms are taken together, and all splits of the arm are scored with
them: that is what the defaults would have been without it. So is the usual friction (see
`short_logs`), of the arms that have one; the values are chosen with that of the package. They are
compared with the defaults of today, with linear friction, and with the defaults of an earlier
version (commit 8a8bea4) on the same splits.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.leave_one_arm_out import ARM_CASES, nrmse
from benchmarks.accuracy.real_robots import DATA
from benchmarks.accuracy.short_logs import (
    ARMS,
    ratios_to_level,
    usual_constants,
    usual_friction,
    without,
)

SELECTION = "taufit.fitting.selection"
# Default first.
SETTINGS: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "linear friction below": (f"{SELECTION}.linear_friction", "_MAX_RATIO", (0.95, 0.9, 1.0)),
    "ripple criterion": (f"{SELECTION}.ripple", "_CRITERION_FACTOR", (1.5, 3.0)),
    "ripple amplitude": (f"{SELECTION}.prior_scales", "_RIPPLE_SCALE", (0.3, 0.1, 1.0)),
    "largest ripple": (f"{SELECTION}.prior_scales", "_MAX_RIPPLE_SCALE", (1.0, 0.3, 10.0)),
    "offset": (f"{SELECTION}.prior_scales", "_OFFSET_SCALE", (0.1, 0.03, 0.3, 1.0)),
    "tilt [rad]": (
        "taufit.fitting.gravity_tilt",
        "TILT_STD",
        (float(np.radians(1.0)), float(np.radians(0.5)), float(np.radians(2.0))),
    ),
}
# Mean nrmse of the same splits with the defaults of commit 8a8bea4, by that version.
FORMER = {
    "UR10e": 0.0404,
    "UR10": 0.0952,
    "Panda": 0.0535,
    "LWR4": 0.4053,
    "xMate": 0.4348,
    "TX40": 0.0997,
    "Airbot": 0.1638,
    "Kinova": 1.1064,
    "Med 7": 0.8191,
    "KR300": 0.1994,
}
Values = tuple[tuple[str, Any], ...]


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    table, better = _Table(), list[str]()
    ratios = {arm: ratios_to_level(arm) for arm in ARMS}
    for arm in ARM_CASES:
        values = choose_values(table, arm)
        default = table.score(arm, ())
        with usual_constants(usual_friction(ratios, without(arm))):
            score = _Table().score(arm, values)
        linear = table.score(arm, (), "linear")
        text = ", ".join(f"{name} {value:.3g}" for name, value in values) or "the defaults"
        note = f"{text}; defaults {default:.4f}, linear friction {linear:.4f}"
        label = f"{arm}, settings of the other nine"
        better += [arm] if score < 0.95 * FORMER[arm] else []
        yield Row(f"{label}, over linear", score / linear, "", "<= 1.03", note)
        yield Row(f"{label}, over the defaults", score / default, "", "<= 1.03", note)
        former = f"then {FORMER[arm]:.4f}; {note}"
        yield Row(f"{label}, over commit 8a8bea4", score / FORMER[arm], "", "<= 1.03", former)
    note = ", ".join(better)
    yield Row("arms better than commit 8a8bea4 by 5 %", len(better), "", ">= 5", note)


def choose_values(table: _Table, arm: str) -> Values:
    """Values that differ from the defaults, best on all arms but one."""
    values = []
    for name, (_, _, alternatives) in SETTINGS.items():
        gains = [
            np.mean(
                [
                    np.log(table.choice(other, ((name, value),)) / table.choice(other, ()))
                    for other in ARM_CASES
                    if other != arm
                ]
            )
            for value in alternatives[1:]
        ]
        if min(gains) < 0.0:
            values.append((name, alternatives[1 + int(np.argmin(gains))]))
    return tuple(values)


class _Table:
    """Mean nrmse of the cases of an arm under settings, computed once."""

    def __init__(self) -> None:
        self._scores: dict[tuple[str, Values, str, int | None], float] = {}

    def choice(self, arm: str, values: Values) -> float:
        """Value of the first split, on which settings are chosen."""
        return self.score(arm, values, splits=1)

    def score(
        self, arm: str, values: Values, friction: str = "auto", splits: int | None = None
    ) -> float:
        key = (arm, values, friction, splits)
        if key not in self._scores:
            cases = islice(ARM_CASES[arm](), splits)
            with _settings(dict(values)):
                scores = [nrmse(case, friction).mean() for case in cases]
            self._scores[key] = float(np.mean(scores))
            print(f"  {arm:8} {values} {friction} {self._scores[key]:.4f}", file=sys.stderr)
        return self._scores[key]


@contextmanager
def _settings(values: Mapping[str, Any]) -> Iterator[None]:
    """Set constants of the fit for a while."""
    former = []
    try:
        for name, value in values.items():
            module, constant, _ = SETTINGS[name]
            owner = importlib.import_module(module)
            former.append((owner, constant, getattr(owner, constant)))
            setattr(owner, constant, value)
        yield
    finally:
        for owner, constant, value in former:
            setattr(owner, constant, value)
