"""Mistakes users make, on a real and on simulated arms: named, refused, or swallowed?

Every spoilt log is a file, fitted by `taufit fit`; the remedy the command prints is then followed
by another `taufit fit`, which must be accepted and be about as good as the clean log's.

python -m benchmarks first_try                                       all sets
python -m benchmarks.accuracy.first_try FOLDER [SECONDS [SETS [PART OF A NAME]]]
                                       what has no result in FOLDER yet, for so many CPU seconds
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from benchmarks import Row
from benchmarks.traps import TRAPS, Log, Trap, log_of, page_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
REAL = SHARED / "ur10e" / "identification_data" / "ur-20_02_10-20sec_7harm.csv.gz"
SETS = ("ur10e", "ur5e", "panda", "kr5")
# A fit this much worse than the clean one must not pass as good without a word.
WORSE = 1.5


@dataclass(frozen=True)
class Outcome:
    """What became of one trap.

    Attributes:
        code: Exit code of the first `taufit fit`.
        named: Whether the right cause was named.
        nrmse: Of the model that was made, or nan.
        grade: Of that model, or "".
        kinds: Of all findings.
        text: What was said.
        remedy: What the command advises, for machines; None where the advice is words alone.
        again: Exit code of the fit that follows the advice, or None.
        again_nrmse: Of its model.
        again_text: What it said.
        steps: How many remedies were followed in turn.
    """

    code: int
    named: bool
    nrmse: float
    grade: str
    kinds: list[str]
    text: str
    remedy: dict[str, Any] | None = None
    again: int | None = None
    again_nrmse: float = float("nan")
    again_text: str = ""
    steps: int = 0

    @property
    def refused(self) -> bool:
        return self.code != 0


def base_log(name: str, seed: int = 5) -> Log:
    """The clean recording of a set."""
    from taufit.recording import read_recording

    if name == "ur10e":
        return log_of(read_recording(REAL, column_map="ur10e_csv"), name)
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


def command(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON object on stdout and the words on stderr of one `taufit` command."""
    from taufit.cli.app import main

    out, words = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(words):
        try:
            main([*arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    text = out.getvalue().strip()
    return code, json.loads(text) if text else {}, words.getvalue()


def write(log: Log, folder: Path) -> list[str]:
    """A log as a file with its column map; the arguments that fit it."""
    columns, page = page_of(log)
    names = list(columns)
    table = np.column_stack([columns[name] for name in names])
    np.savetxt(folder / "log.csv", table, "%.9g", ",", header=",".join(names), comments="")
    (folder / "map.yaml").write_text(yaml.safe_dump(page, sort_keys=False))
    mounting = [] if log.mounting is None else ["--mounting", log.mounting]
    return [str(folder / "log.csv"), "--map", str(folder / "map.yaml"), *mounting]


def fit(robot: str, arguments: Sequence[str], folder: Path, mended: str) -> tuple[int, Any, str]:
    """One `taufit fit` of the log."""
    more = ["--write-map", str(folder / mended), "-o", str(folder / "model.json"), "--json"]
    return command("fit", robot, *arguments, *more)


def outcome(trap: Trap, clean: Log, most_steps: int = 2) -> Outcome:
    """Spoil a log, fit it as a user would, see what is said, and follow it."""
    log = clean.copy()
    if log.v is None and "velocity" in trap.name:
        return Outcome(1, True, float("nan"), "", [], "no velocity to spoil")
    trap.spoil(log)
    with TemporaryDirectory() as place:
        folder = Path(place)
        robot, arguments = log.robot, write(log, folder)
        code, page, words = fit(robot, arguments, folder, "mended0.yaml")
        findings = [f for f in page.get("findings", ()) if f["severity"] != "info"]
        kinds = list(dict.fromkeys(f["kind"] for f in findings))
        named = bool(set(kinds) & trap.kinds)
        named |= code == 1 and bool(re.search(trap.words, words))
        said = words if code else "; ".join(f["message"] for f in findings)
        first = Outcome(
            code,
            named,
            page.get("mean_nrmse") or float("nan"),
            page.get("grade") or "",
            kinds,
            said[:400],
            page.get("remedy"),
        )
        steps = 0
        while page.get("remedy") and steps < most_steps:
            steps += 1
            robot, arguments = followed(page["remedy"], robot, arguments)
            code, page, words = fit(robot, arguments, folder, f"mended{steps}.yaml")
        if not steps:
            return first
        words = words if code else "; ".join(f["kind"] for f in page["findings"])
        nrmse = page.get("mean_nrmse") or float("nan")
        more = {"again": code, "again_nrmse": nrmse, "again_text": words[:400], "steps": steps}
        return Outcome(**{**asdict(first), **more})


def followed(remedy: dict[str, Any], robot: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command with a remedy's robot, options and column map."""
    path, options = arguments[0], dict(zip(arguments[1::2], arguments[2::2], strict=True))
    given = remedy.get("options", [])
    options |= dict(zip(given[::2], given[1::2], strict=True))
    if "map_file" in remedy:
        options["--map"] = remedy["map_file"]
    more = [word for pair in options.items() for word in pair]
    return remedy.get("robot") or robot, [path, *more]


def work(
    folder: Path, seconds: float = float("inf"), sets: Sequence[str] = SETS, only: str = ""
) -> None:
    """Try what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for name in sets:
        if name == "ur10e" and not REAL.exists():
            continue
        clean = base_log(name)
        nothing = Trap("clean", lambda log: None)
        for trap in (nothing, *TRAPS):
            path = folder / f"{name}-{re.sub(r'[^A-Za-z0-9]+', '_', trap.name)}.json"
            if path.exists() or only not in trap.name:
                continue
            if time.process_time() - started > seconds:
                return
            path.write_text(json.dumps(asdict(outcome(trap, clean)), indent=1) + "\n")


def results(folder: Path, name: str) -> tuple[dict[str, Outcome], float]:
    """The outcomes of a set by trap, and the clean nrmse."""
    out = {}
    for trap in (Trap("clean", lambda log: None), *TRAPS):
        path = folder / f"{name}-{re.sub(r'[^A-Za-z0-9]+', '_', trap.name)}.json"
        if path.exists():
            out[trap.name] = Outcome(**json.loads(path.read_text()))
    clean = out.pop("clean", None)
    return out, float("nan") if clean is None else clean.nrmse


def silent(name: str, one: Outcome, floor: float) -> bool:
    """A model that passes where the fit is bad or the arm is wrong, and the cause is not named."""
    wrong = "wrong arm" in name
    return not one.refused and (one.nrmse > WORSE * floor or wrong) and not one.named


def wrong_arm_passes(name: str, one: Outcome) -> bool:
    """A model of another arm that is not refused."""
    return "wrong arm" in name and not one.refused


def accepted(one: Outcome, floor: float) -> bool:
    """Whether the advice, followed, led to an accepted model about as good as the clean one."""
    return one.again == 0 and one.again_nrmse <= WORSE * floor


def rows() -> Iterator[Row]:
    """Figures of every set."""
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    traps = {trap.name: trap for trap in TRAPS}
    for name in SETS:
        found, floor = results(folder, name)
        counted = {key: one for key, one in found.items() if not traps[key].harmless}
        if not counted:
            continue
        total = len(counted)
        right = sum(one.named for one in counted.values())
        quiet = sum(silent(key, one, floor) for key, one in found.items())
        arms = sum(wrong_arm_passes(key, one) for key, one in found.items())
        tried = [one for one in found.values() if one.again is not None]
        led = sum(accepted(one, floor) for one in tried)
        words = sum(one.again is None for one in counted.values())
        note = f"nrmse of the clean run {floor:.3f}"
        yield Row(f"{name}: named with the right cause, of {total}", right, "", f">= {total - 3}",
                  note)  # fmt: skip
        yield Row(f"{name}: passed without a word, bad or wrong arm", quiet, "", "== 0")
        yield Row(f"{name}: models of a wrong arm written", arms, "", "== 0")
        yield Row(f"{name}: advice followed and accepted, of {len(tried)}", led, "",
                  f">= {len(tried)}", f"{words} more: advice in words only")  # fmt: skip


def main(words: Sequence[str]) -> None:
    """Work on a folder and print it."""
    folder = Path(words[0])
    seconds = float(words[1]) if len(words) > 1 else float("inf")
    sets = words[2].split(",") if len(words) > 2 else SETS
    work(folder, seconds, sets, words[3] if len(words) > 3 else "")
    for name in sets:
        found, floor = results(folder, name)
        for key, one in found.items():
            mark = "named  " if one.named else "refused" if one.refused else "PASSED "
            after = "" if one.again is None else f"-> {one.again} {one.again_nrmse:.3f}"
            bad = "" if one.again is None or accepted(one, floor) else f"! {one.again_text[:150]!r}"
            said = "" if one.named and not bad else f"{one.text[:150]!r}"
            print(f"{name} {mark} {key:<40} {one.nrmse:.3f} {after} {','.join(one.kinds)} {said} "
                  f"{bad}")  # fmt: skip
    for row in counts(folder):
        print(row.name, row.value, row.target, row.note)


if __name__ == "__main__":
    main(sys.argv[1:])
