"""Designs over arms, seeds, criteria, mountings and kinds: none may fail, shrink or be poor.

Column-scaled condition number of every motion, worst and median. Arms beyond the bundled ones are
drawn at random (`benchmarks.unseen_arms`); they were not used to choose any setting.

    python -m benchmarks.accuracy.design_seeds FOLDER [--seconds S] [--table] [--keep] [SLICE ...]

goes on with the grid in FOLDER/designs.jsonl, one line per run, until S seconds are over; the
seeds are drawn when the file begins and kept in its first line. Slices are arms, criteria,
mountings, kinds, unseen. `--table` prints worst and median per arm of what is there, `--keep` puts
them into results.json, too, where the pages take them from.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.unseen_arms import unseen_arms

ARMS = ("ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "panda", "fr3", "iiwa7", "iiwa14", "kr5")
LIMIT = 30.0
SEARCHED = ("validation", "payload", "payload-inertia")
CRITERIA = (
    "a",
    "d",
    "cond",
    "cond_scaled",
    "product",
    "three_stage",
    "worst_case",
    "weighted_blocks",
)
MOUNTINGS = ("ground", "ceiling", "wall", "20,-35,0")
SLICES = ("arms", "unseen", "kinds", "mountings", "criteria")


@dataclass(frozen=True, slots=True)
class Case:
    """One design to ask for.

    Attributes:
        part: Slice of the grid.
        arm: A bundled name, or the number of an unseen arm.
        seed: Of the search.
        kind, criterion, mounting: As `plan` takes them.
    """

    part: str
    arm: str
    seed: int
    kind: str = "identification"
    criterion: str = "a"
    mounting: str = "ground"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        condition: Column-scaled condition number; NaN where refused or without a search.
        shrunk_to: Share of the searched motion.
        log_det: ln det W'W/N.
        cpu_seconds: Spent.
        refused: The message, where there is no motion.
    """

    condition: float
    shrunk_to: float
    log_det: float
    cpu_seconds: float
    refused: str = ""


def cases(part: str, seeds: Sequence[int]) -> list[Case]:
    """All runs of one slice: ten seeds for the defaults, three for the rest, one for unseen arms.

    Fewer seeds make a smaller grid.
    """
    if part == "arms":
        return [Case(part, arm, seed) for seed in seeds for arm in ARMS]
    few = seeds[:3]
    if part == "criteria":
        return [
            Case(part, arm, s, criterion=one) for s in few for one in CRITERIA[1:] for arm in ARMS
        ]
    if part == "mountings":
        return [
            Case(part, arm, s, mounting=one) for s in few for one in MOUNTINGS[1:] for arm in ARMS
        ]
    if part == "kinds":
        kinds = (*SEARCHED, "friction-test", "warm-up")
        return [Case(part, arm, s, kind=one) for s in few for one in kinds for arm in ARMS]
    if part == "unseen":
        return [Case(part, str(k), seeds[0]) for k in range(len(unseen_arms(seeds[0])))]
    raise SystemExit(f"slice {part!r} is not known: use {', '.join(SLICES)}.")


def run_one(case: Case) -> tuple[str, Outcome]:
    """The arm's name and one plan's figures, or the reason it was refused."""
    from taufit.core.errors import TaufitError
    from taufit.excitation import SearchEffort, plan
    from taufit.robot import read_robot

    if case.part == "unseen":
        robot = unseen_arms(case.seed)[int(case.arm)]
    else:
        robot = read_robot(case.arm, mounting=case.mounting)
    began = time.process_time()
    try:
        found = plan(
            case.kind, robot, criterion=case.criterion, effort=SearchEffort(seed=case.seed)
        )
    except TaufitError as error:
        spent = time.process_time() - began
        return robot.name, Outcome(np.nan, np.nan, np.nan, spent, str(error))
    spent, one = time.process_time() - began, found.design
    if one is None:
        return robot.name, Outcome(np.nan, 1.0, np.nan, spent)
    return robot.name, Outcome(one.condition_number_scaled, one.shrunk_to, one.log_det, spent)


def resume(folder: Path, parts: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """Go on with the grid for some seconds; all lines there are then."""
    path = folder / "designs.jsonl"
    if not path.exists():
        seeds = [int(s) for s in np.random.default_rng(secrets.randbits(63)).integers(1e6, size=10)]
        path.write_text(json.dumps({"seeds": seeds}) + "\n")
    first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
    done = {Case(**line["case"]) for line in rest}
    until = time.monotonic() + seconds
    for case in (one for part in parts for one in cases(part, first["seeds"])):
        if time.monotonic() > until:
            break
        if case in done:
            continue
        name, outcome = run_one(case)
        rest.append({"case": asdict(case), "robot": name, **asdict(outcome)})
        with path.open("a") as file:
            file.write(json.dumps(rest[-1]) + "\n")
    return rest


def _groups(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The runs of every arm; random arms of one kind together."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        name = line["robot"]
        group = " ".join(name.split()[:2]) if line["case"]["part"] == "unseen" else name
        groups.setdefault(group, []).append(line)
    return groups


def kept(lines: list[dict[str, Any]]) -> Iterator[Row]:
    """Worst and median per arm and of all."""
    note = f"{len(lines)} designs, {sum(bool(one['refused']) for one in lines)} refused"
    for group, own in {"all": lines, **_groups(lines)}.items():
        condition = [one["condition"] for one in own if np.isfinite(one["condition"])]
        if condition:
            yield Row(f"{group}: designs", len(own), "", "", note)
            yield Row(f"{group}: median", float(np.median(condition)), "", "", note)
            yield Row(f"{group}: worst", max(condition), "", "< 30", note)
    share = min(one["shrunk_to"] for one in lines if not one["refused"])
    yield Row("all: least share after the certificate", share, "", ">= 0.9", note)


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Worst and median per arm as a table of Markdown, then every run that is not good enough."""
    groups = _groups(lines)
    yield "| arm | designs | median | worst | least share | refused | CPU s, median |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for group, own in groups.items():
        condition = [one["condition"] for one in own if np.isfinite(one["condition"])]
        shrunk = min((one["shrunk_to"] for one in own if not one["refused"]), default=np.nan)
        refused = sum(bool(one["refused"]) for one in own)
        middle, worst = (np.median(condition), max(condition)) if condition else (np.nan,) * 2
        spent = np.median([one["cpu_seconds"] for one in own])
        yield (
            f"| {group} | {len(own)} | {middle:.1f} | {worst:.1f} | {shrunk:.2f} | {refused} | "
            f"{spent:.1f} |"
        )
    for line in lines:
        if line["refused"] or line["condition"] > LIMIT or line["shrunk_to"] < 0.9:
            yield json.dumps(line)


def rows() -> Iterator[Row]:
    """Fresh seeds: one of every slice but the criteria, which take long."""
    seed = secrets.randbelow(10**6)
    for part in ("arms", "kinds", "mountings", "unseen"):
        found = [run_one(case)[1] for case in cases(part, [seed])]
        done = [one.condition for one in found if np.isfinite(one.condition)]
        shrunk = [one.shrunk_to for one in found if not one.refused]
        refused = sum(bool(one.refused) for one in found)
        note = f"seed {seed}, {len(found)} designs, {refused} refused"
        yield Row(f"{part}: worst column-scaled condition number", max(done), "", "< 30", note)
        yield Row(f"{part}: least share after the certificate", min(shrunk), "", ">= 0.9", note)


def main(words: list[str]) -> None:
    """Go on with the grid, or print what it has found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("slices", nargs="*", default=SLICES)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(words)
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = resume(given.folder, given.slices, 0.0 if given.table or given.keep else given.seconds)
    if given.keep:
        from benchmarks.__main__ import entry, keep

        keep([entry("accuracy/design_grid", row) for row in kept(lines)])

    first = json.loads((given.folder / "designs.jsonl").read_text().splitlines()[0])
    total = sum(len(cases(part, first["seeds"])) for part in given.slices)
    print(*table(lines), f"{len(lines)} of {total} designs", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
