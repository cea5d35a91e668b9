"""Recordings of a UR10e fitted with the descriptions of other arms: refused, or named?

python -m benchmarks wrong_arm
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import Row
from benchmarks.clean_runs import SHARED
from taufit.recording import Recording
from taufit.robot import Drives, Robot

RUNS = SHARED / "ur10e"
# One file is corrupt at its source, one has no target currents, from which gains come.
_NOT_CLEAN = ("11_32_02", "11_28_22")


def recordings() -> Iterator[list[Recording]]:
    """Every shared motion of all joints of the UR10e, as a map without `robot:` reads it."""
    from taufit.recording import read_recordings

    for path in sorted((RUNS / "identification_data").glob("*.csv.gz")):
        if not any(word in path.name for word in _NOT_CLEAN):
            yield [_nameless(one) for one in read_recordings(path, map="ur10e_csv")]


def _nameless(recording: Recording) -> Recording:
    meta = {key: value for key, value in recording.meta.items() if key != "robot"}
    return replace(recording, meta=meta)


def described() -> dict[str, Robot]:
    """Arms of six joints: other ones, and the UR10, whose lengths are nearly the same."""
    from taufit.robot import read_robot

    panda = read_robot("panda")
    first = {name: getattr(panda.limits, name)[:6] for name in panda.limits.__dataclass_fields__}
    cut = replace(
        panda,
        name="panda6",
        links=panda.links[:6],
        limits=replace(panda.limits, **first),
        drives=Drives.direct(6),
        urdf=None,
    )
    return {name: read_robot(name) for name in ("ur5e", "ur3e", "kr5", "ur10")} | {"panda6": cut}


def outcome(robot: Robot, runs: list[Recording]) -> tuple[bool, list[str], str]:
    """Whether a model would be written, the kinds of findings, and what was said."""
    from taufit.errors import TaufitError
    from taufit.workflow import identify

    try:
        done = identify(robot, runs)
    except TaufitError as error:
        return False, [f.kind for f in getattr(error, "findings", ())], str(error)
    kinds = [f.kind for f in done.findings if f.severity != "info"]
    return done.grades.overall != "poor", kinds, "; ".join(done.grades.reasons)


def rows() -> Iterator[Row]:
    """Models of other arms that pass, and of the UR10 that do not."""
    if not RUNS.exists():
        return
    runs = list(recordings())
    for name, robot in described().items():
        found = [outcome(robot, one) for one in runs]
        passed = sum(one[0] for one in found)
        named = sum("wrong_arm" in one[1] for one in found)
        target = f">= {len(runs)}" if name == "ur10" else "== 0"
        note = f"wrong arm named in {named}"
        yield Row(f"UR10e as {name}: accepted, of {len(runs)}", passed, "", target, note)


if __name__ == "__main__":
    for label, robot in described().items():
        if len(sys.argv) > 1 and label not in sys.argv[1].split(","):
            continue
        for one in recordings():
            print(label, Path(one[0].name).name, *outcome(robot, one), flush=True)
