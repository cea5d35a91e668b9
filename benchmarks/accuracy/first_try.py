"""Mistakes users make, on a real and on simulated arms: named, refused, or swallowed?

python -m benchmarks first_try                 all sets
python -m benchmarks.accuracy.first_try ur5e   one set, trap by trap
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import Row
from benchmarks.traps import TRAPS, Log, Trap, log_of, recordings_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
REAL = SHARED / "ur10e" / "identification_data" / "ur-20_02_10-20sec_7harm.csv.gz"
SETS = ("ur10e", "ur5e", "panda", "kr5")
# A fit this much worse than the clean one must not pass as good without a word.
WORSE = 1.5


@dataclass(frozen=True)
class Outcome:
    """What became of one trap.

    Attributes:
        named: Whether the right cause was named.
        refused: Whether no model was made.
        nrmse: Of the model that was made, or nan.
        good: Whether that model was called good.
        kinds: Of all findings.
        text: Beginning of the refusal or of the findings.
        followed: Whether the advice, followed, led to a model; None where none could be.
    """

    named: bool
    refused: bool
    nrmse: float
    good: bool
    kinds: tuple[str, ...]
    text: str
    followed: bool | None = None


def base_log(name: str, seed: int = 5) -> Log:
    """The clean recording of a set."""
    from taufit.recording import read_recording

    if name == "ur10e":
        return log_of(read_recording(REAL, map="ur10e_csv"), name)
    return log_of(simulated(name, seed), name)


def simulated(name: str, seed: int):
    """A run of a twin with friction, noise, jitter of its size."""
    from dataclasses import replace

    from taufit.robot import read_robot
    from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor

    arm = typical_rotor(read_robot(name))
    twin = replace(Twin(arm, name="typical"), effects=typical_effects(arm))
    motion = random_fourier(arm, seed=seed, periods=2.0)
    return twin.run(motion, seed=seed, rate_hz=200.0, rest=(0.5, 0.5)).recording


def outcome(trap: Trap, clean: Log) -> Outcome:
    """Spoil a log, fit it, and see what is said."""
    from taufit.errors import TaufitError
    from taufit.robot import read_robot
    from taufit.workflow import identify

    log = clean.copy()
    if log.v is None and "velocity" in trap.name:
        return Outcome(True, True, float("nan"), False, (), "no velocity to spoil")
    trap.spoil(log)
    try:
        recordings = recordings_of(log)
        robot = read_robot(log.robot, mounting=log.mounting)
        done = identify(robot, recordings)
    except TaufitError as error:
        found = getattr(error, "findings", ())
        kinds = tuple(f.kind for f in found)
        named = bool(set(kinds) & trap.kinds) or bool(re.search(trap.words, str(error)))
        followed = _followed(error, log) if found else None
        return Outcome(named, True, float("nan"), False, kinds, str(error)[:160], followed)
    everything = [*done.findings, *(f for r in recordings for f in r.findings)]
    kinds = tuple(dict.fromkeys(f.kind for f in everything if f.severity != "info"))
    named = bool(set(kinds) & trap.kinds)
    good = done.grades.overall == "good" if hasattr(done, "grades") else True
    return Outcome(
        named,
        False,
        done.training.mean_nrmse,
        good,
        kinds,
        "; ".join(map(str, done.findings))[:160],
    )


def _followed(error, log: Log) -> bool | None:
    """Whether the remedy found, applied, leads to an accepted fit."""
    from taufit.errors import TaufitError
    from taufit.robot import read_robot
    from taufit.workflow import identify

    changes = [cause.change for cause in error.causes if cause.change is not None]
    if not changes:
        return None
    recordings, robot = recordings_of(log), read_robot(log.robot, mounting=log.mounting)
    for change in changes:
        recordings = [change.recording(one) for one in recordings]
        robot = change.robot(robot)
    try:
        identify(robot, recordings)
    except TaufitError:
        return False
    return True


def run_set(name: str, *, told: bool = False, only: str = "") -> tuple[dict[str, Outcome], float]:
    """Every trap of a set, and the clean nrmse."""
    from taufit.robot import read_robot
    from taufit.workflow import identify

    clean = base_log(name)
    floor = identify(read_robot(name), recordings_of(clean)).training.mean_nrmse
    out = {}
    for trap in TRAPS:
        if only and only not in trap.name:
            continue
        started = time.process_time()
        one = out[trap.name] = outcome(trap, clean)
        if told:
            mark = "named  " if one.named else "refused" if one.refused else "PASSED "
            print(
                f"{mark} {trap.name:<42} {one.nrmse:.3f} {one.followed} {','.join(one.kinds)[:60]} "
                f"| {one.text[:90]!r} {time.process_time() - started:.1f} s",
                flush=True,
            )
    return out, floor


def silent(name: str, one: Outcome, trap: Trap, floor: float) -> bool:
    """A good verdict where the fit is bad or the arm is wrong, and nothing was said."""
    wrong = "wrong arm" in name
    bad = one.nrmse > WORSE * floor or wrong
    return not one.refused and bad and one.good and not one.named and not trap.harmless


def rows() -> Iterator[Row]:
    """Figures of every set."""
    for name in SETS:
        if name == "ur10e" and not REAL.exists():
            continue
        found, floor = run_set(name)
        traps = {trap.name: trap for trap in TRAPS}
        counted = {key: one for key, one in found.items() if not traps[key].harmless}
        total = len(counted)
        caught = sum(one.named or one.refused for one in counted.values())
        right = sum(one.named for one in counted.values())
        quiet = sum(silent(key, one, traps[key], floor) for key, one in counted.items())
        tried = [one.followed for one in counted.values() if one.followed is not None]
        note = f"nrmse of the clean run {floor:.3f}"
        yield Row(
            f"{name}: traps refused or named, of {total}", caught, "", f">= {total - 3}", note
        )
        yield Row(f"{name}: traps named with the right cause", right)
        yield Row(f"{name}: silent good verdicts", quiet, "", "== 0")
        yield Row(f"{name}: advice followed, of {len(tried)}", sum(tried), "", f">= {len(tried)}")


if __name__ == "__main__":
    for chosen in sys.argv[1].split(","):
        print(chosen)
        run_set(chosen, told=True, only=sys.argv[2] if len(sys.argv) > 2 else "")
