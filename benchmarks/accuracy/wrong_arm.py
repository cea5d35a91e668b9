"""Recordings fitted with the descriptions of other arms: refused, or named?

Advice is followed to its end: the robot that a refusal names is fitted next, until one is accepted.
All runs of the UR10e are fitted with five other arms; one run of every other shared set with every
bundled arm of as many joints.

python -m benchmarks wrong_arm
python -m benchmarks.accuracy.wrong_arm sets                             advice of every set and arm
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
            yield [nameless(one) for one in read_recordings(path, column_map="ur10e_csv")]


def nameless(recording: Recording) -> Recording:
    """A recording that does not say of which robot it is."""
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
        drives=Drives.direct_drive(6),
        urdf=None,
    )
    return {name: read_robot(name) for name in ("ur5e", "ur3e", "kr5", "ur10")} | {"panda6": cut}


@dataclass(frozen=True)
class Outcome:
    """What became of one fit.

    Attributes:
        accepted: Whether a model would be written.
        kinds: Of the findings.
        text: What was said.
        advised: The robot that was named instead, or None.
    """

    accepted: bool
    kinds: tuple[str, ...]
    text: str
    advised: str | None = None


def outcome(robot: Robot, runs: list[Recording]) -> Outcome:
    """Fit recordings with a description."""
    from taufit.core.errors import TaufitError
    from taufit.diagnosis import ContradictionError
    from taufit.workflow import identify

    try:
        done = identify(robot, runs)
    except ContradictionError as error:
        remedies = [f.remedy for f in error.findings if f.remedy is not None]
        advised = next((one.robot for one in remedies if one.robot), None)
        return Outcome(False, tuple(f.kind for f in error.findings), str(error), advised)
    except TaufitError as error:
        return Outcome(False, (), str(error))
    kinds = tuple(f.kind for f in done.findings if f.severity != "info")
    return Outcome(done.grades.overall != "poor", kinds, "; ".join(done.grades.reasons))


def followed(
    first: Outcome,
    runs: list[Recording],
    known: dict[tuple[str, int], Outcome],
    most_steps: int = 3,
) -> str:
    """The arm that is accepted when advice is followed, or "" where it leads to none.

    Args:
        first: What the first fit came to.
        runs: That were fitted.
        known: Outcomes of bundled arms, by name and recordings; new ones are added.
        most_steps: That are taken.
    """
    from taufit.robot import read_robot

    name, now = "", first
    for _ in range(most_steps):
        if now.accepted or now.advised is None:
            break
        name = now.advised
        key = (name, id(runs))
        if key not in known:
            known[key] = outcome(read_robot(name), runs)
        now = known[key]
    return name if now.accepted else ""


def set_advice() -> Iterator[tuple[str, str, Outcome, str]]:
    """Set, bundled arm it is fitted with, outcome, and the arm at which its advice ends."""
    from benchmarks.accuracy.shared_drafts import shared_sets
    from taufit.robot import bundled_robots, read_robot
    from taufit.workflow.draft import draft_files, read_with_draft

    arms = {name: read_robot(name) for name in bundled_robots()}
    seen: set[str] = set()
    for one in shared_sets():
        folder = one.files[0].split("/")[0]
        if folder in seen or folder in ("ur10e", "so101") or not one.robot:
            continue
        seen.add(folder)
        robot = SHARED / folder / one.robot if one.robot.endswith(".urdf") else one.robot
        result = draft_files([SHARED / file for file in one.files], robot=robot)
        if result.draft is not None and result.draft.unknowns:
            page = {**result.draft.page, "rate_hz": one.rate_hz}
            result = replace(result, draft=replace(result.draft, page=page, unknowns=()))
        runs = [nameless(recording) for recording in read_with_draft(result)]
        known: dict[tuple[str, int], Outcome] = {}
        for name, arm in arms.items():
            if arm.joints == runs[0].joints:
                first = known[name, id(runs)] = outcome(arm, runs)
                yield folder, name, first, followed(first, runs, known)


def rows() -> Iterator[Row]:
    """Models of other arms that pass, and of the UR10 that do not."""
    if not RUNS.exists():
        return
    runs = list(recordings())
    count = len(runs)
    known: dict[tuple[str, int], Outcome] = {}
    for name, robot in described().items():
        found = [outcome(robot, one) for one in runs]
        passed = sum(one.accepted for one in found)
        named = sum("wrong_arm" in one.kinds for one in found)
        target = f">= {count}" if name == "ur10" else "== 0"
        note = f"wrong arm named in {named}"
        yield Row(f"UR10e as {name}: accepted, of {count}", passed, "", target, note)
        if name == "ur10":
            continue
        ends = Counter(followed(one, run, known) for one, run in zip(found, runs, strict=True))
        right = ends["ur10e"] + ends["ur10"]
        note = ", ".join(f"{arm or 'nowhere'} {n}" for arm, n in ends.most_common())
        yield Row(f"UR10e as {name}: advice ends at ur10e or ur10, of {count}", right, "",
                  f">= {count}", note)  # fmt: skip
    advised = [(one, end) for *_, one, end in set_advice() if one.advised is not None]
    refused = sum(not end for _, end in advised)
    note = f"{len(advised)} times an arm was advised"
    yield Row("other sets: advised arms that are then refused", refused, "", "== 0", note)


if __name__ == "__main__" and sys.argv[1:2] == ["sets"]:
    for folder, arm, first, end in set_advice():
        print(
            folder, arm, first.accepted, *first.kinds, first.advised, "->", end or "-", flush=True
        )
elif __name__ == "__main__":
    every = list(recordings())
    seen: dict[tuple[str, int], Outcome] = {}
    for label, robot in described().items():
        if len(sys.argv) > 1 and label not in sys.argv[1].split(","):
            continue
        for one in every:
            first = outcome(robot, one)
            end = followed(first, one, seen)
            print(label, Path(one[0].name).name, first.accepted, *first.kinds, end, flush=True)
