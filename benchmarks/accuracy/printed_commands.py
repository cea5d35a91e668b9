"""Commands that commands print, run as printed in a shell in the user's directory.

A user's folder has recordings of several arms, spoilt in the ways of `benchmarks.traps`, and names
with blanks. Every text between backticks that begins with `taufit` and goes on after the verb is a
command; each is run once,
in the folder and in the state in which it was printed. It fails if it ends with wrong usage,
unusable input or an exception; a verdict FAIL (exit code 1) is an answer, and counted beside.

python -m benchmarks printed_commands
python -m benchmarks.accuracy.printed_commands FILE [ARM [PART OF A NAME]]     table of commands
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import Row
from benchmarks.accuracy.first_try import simulated, write
from benchmarks.traps import TRAPS, log_of

ARMS = ("ur3e", "panda")
_PRINTED = re.compile(r"`(taufit [^`]+)`")
_IS_HELP = re.compile(r"^taufit (help|.*--help)")
_DEADLINE_S = 180.0
# Commands of a user's first days, in this order; {arm} and its recordings are there.
_DAYS = (
    "inspect",
    "inspect {arm}",
    "inspect {arm} --tip nowhere",
    "inspect {arm}x",
    "inspct {arm}",
    "demo --help",
    "fit --help",
    "fit {arm}",
    "fit {arm} nothing.csv",
    "fit {arm} 'day 1.parquet' -o 'my {arm}.json'",
    "fit {arm} 'day 1.parquet' --holdout 'day 2.parquet' -o 'my {arm}.json'",
    "fit {arm} 'day 1.parquet' 'day 2.parquet' --holdout 30% -o both.json --report both.html",
    "fit {arm} 'day 1.csv' -o x.json",
    "fit {arm} 'day 1.csv' --map 'map 1.yaml' -o x.json",
    "convert 'day 1.csv' --draft 'map 1.yaml' --robot {arm}",
    "convert 'day 1.csv' --draft m.yaml",
    "convert 'day 1.csv' --map 'map 1.yaml' -o 'day 1b.parquet'",
    "convert 'day 1.parquet' --report",
    "convert 'day 1.parquet' --robot {arm} -o 'day 1.npz'",
    "convert 'day 1.npz' --report",
    "check 'my {arm}.json' 'day 2.parquet'",
    "check both.json 'day 1.parquet' --report check.html",
    "check 'my {arm}.json' 'day 2.parquet' --max-mean-nrmse 0.0001",
    "check nothing.json x.parquet",
    "check 'day 1.parquet' 'my {arm}.json'",
    "payload 'my {arm}.json' 'loaded day.parquet'",
    "payload 'my {arm}.json' 'loaded day.parquet' -o tool.json",
    "payload 'my {arm}.json'",
    "check 'my {arm}.json' 'loaded day.parquet' --payload tool.json",
    "check 'my {arm}.json' 'loaded day.parquet' --payload nowhere.json",
    "contact 'my {arm}.json' 'day 2.parquet'",
    "contact 'my {arm}.json' 'day 2.parquet' --contact-free 'day 1.parquet' -o alarms.json",
    "energy 'my {arm}.json' 'day 2.parquet'",
    "export 'my {arm}.json' -o 'the arm.urdf'",
    "export 'my {arm}.json' -o arm.step",
    "export 'my {arm}.json' --format c -o arm.c",
    "export 'day 1.parquet' -o arm.urdf",
    "report 'my {arm}.json' -o page.html",
    "design {arm} --seconds 0.2 --free-space -o 'a motion.json'",
    "design {arm} --kind friction-test --seconds 0.2 --free-space -o strokes.json",
    "simulate {arm} 'a motion.json' -o played.parquet",
    "simulate {arm} strokes.json -o strokes.parquet",
    "friction {arm} strokes.parquet -o friction.json",
    "friction {arm} 'day 1.parquet' -o f.json",
    "fit {arm} 'day 1.parquet' --friction friction.json -o with_friction.json",
    "health baseline 'my {arm}.json' 'day 1.parquet' 'day 2.parquet' -o history.json",
    "health check history.json 'day 3.parquet'",
    "health check nowhere.json 'day 3.parquet'",
    "fit {arm} unsigned.parquet -o u.json",
    "fit {arm} 'day 1.parquet' --mounting 0,90,0 -o x.json",
    "fit {other} 'day 1.parquet' -o x.json",
    "fit {arm} 'day 1.parquet' 'turned day.parquet' -o x.json",
    "fit {arm} standing.parquet -o s.json",
    "fit {arm} short.parquet -o s.json",
    "export 'my {arm}.json' -o 'my arm/arm.urdf'",
    "fit 'my arm/arm.urdf' 'day 1.parquet' -o urdf.json",
    "inspect 'my arm/arm.urdf'",
    "convert 'my arm/log of it.csv' --draft 'my arm/map.yaml'",
    "gains {arm} 'day 1.parquet'",
    "servo {arm} 'day 1.parquet' -o servo.json",
    "record 127.0.0.1 'a motion.json' --dry-run",
    "live 'my {arm}.json' nowhere.parquet",
    "reproduce nothing",
    "simulate {arm} nowhere.json",
    "fit {arm} 'day 1.parquet' --frction linear",
    "fleet .",
)
_OTHER = {"ur3e": "ur10e", "panda": "fr3"}


@dataclass(frozen=True)
class PrintedCommand:
    """A command that was printed and run.

    Attributes:
        command, origin: Its text, and the command that printed it.
        code: Its exit code.
        text: End of its output.
    """

    command: str
    origin: str
    code: int
    text: str


def run(folder: Path, command: str) -> tuple[int, str]:
    """Exit code and output of a line in a shell in a folder."""
    taufit = Path(sys.executable).parent
    try:
        done = subprocess.run(
            ["bash", "-c", f'PATH="{taufit}:$PATH"; {command}'],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return 124, "deadline"
    return done.returncode, done.stdout + done.stderr


def printed_by(folder: Path, command: str, known: set[str]) -> list[PrintedCommand]:
    """New commands printed by a command and by these in turn, each run as printed."""
    out = []
    lines = [(command, run(folder, command)[1])]
    for origin, text in lines:
        for printed in dict.fromkeys(_PRINTED.findall(text)):
            # Help names arguments in commands; a verb alone is the name of a command.
            is_name = len(printed.split()) == 2 and printed != "taufit inspect"
            if printed in known or is_name or _IS_HELP.search(origin):
                continue
            known.add(printed)
            code, words = run(folder, printed)
            out.append(PrintedCommand(printed, origin, code, words[-400:]))
            if origin == command:
                lines.append((printed, words))
    return out


def user_folder(folder: Path, arm: str) -> None:
    """Recordings of an arm as a user has them, and a URDF beside one of them."""
    from dataclasses import replace

    import numpy as np

    import taufit
    from taufit.recording.crop import crop
    from taufit.sim import CarriedPayload, Twin, random_fourier

    robot = taufit.read_robot(arm)
    twin = Twin.typical(robot)
    runs = {
        f"day {k}": twin.run(random_fourier(robot, seed=k), seed=k).recording for k in (1, 2, 3)
    }
    motion = random_fourier(robot, seed=4)
    runs["loaded day"] = twin.run(
        motion, seed=4, payload=CarriedPayload.lump(1.0, (0.0, 0.0, 0.05))
    ).recording
    day = runs["day 1"]
    runs["turned day"] = replace(runs["day 2"], signal=-runs["day 2"].signal)
    runs["unsigned"] = replace(day, signal=np.abs(day.signal))
    still = np.array(day.position)
    still[:, 2:] = still[0, 2:]
    runs["standing"] = replace(day, position=still, velocity=None)
    runs["short"] = crop(day, None, 2.5)
    for name, recording in runs.items():
        taufit.write_recording(recording, folder / f"{name}.parquet")
    log_file(folder / "day 1.csv", day)
    (folder / "my arm").mkdir()
    log_file(folder / "my arm" / "log of it.csv", day)


def log_file(path: Path, recording: object) -> None:
    """A recording as a logger's table."""
    import numpy as np

    torque = recording.signal * (1.0 if recording.gain is None else recording.gain)
    names = ["zeit"]
    blocks = [recording.time[:, None]]
    for stem, values in (("Winkel", recording.position), ("Drehmoment", torque)):
        names += [f"{stem}_A{j + 1}" for j in range(values.shape[1])]
        blocks.append(values)
    np.savetxt(path, np.hstack(blocks), "%.9g", ";", header=";".join(names), comments="")


def results(arms: Sequence[str] = ARMS, only: str = "") -> Iterator[PrintedCommand]:
    """All printed commands, run."""
    for arm in arms:
        known: set[str] = set()
        with TemporaryDirectory() as place:
            folder = Path(place)
            user_folder(folder, arm)
            for line in _DAYS:
                command = "taufit " + line.format(arm=arm, other=_OTHER[arm])
                if only in command:
                    yield from printed_by(folder, command, known)
        clean = log_of(simulated(arm, 5), arm)
        for trap in TRAPS:
            if only and only not in trap.name:
                continue
            with TemporaryDirectory() as place:
                folder = Path(place)
                log = clean.copy()
                if log.v is None and "velocity" in trap.name:
                    continue
                trap.spoil(log)
                arguments = [Path(w).name if "/" in w else w for w in write(log, folder)]
                # As a user names files, so that commands of different faults differ.
                file = f"{re.sub('[^a-z0-9]+', ' ', trap.name.lower()).strip()}.csv"
                (folder / "log.csv").rename(folder / file)
                arguments[0] = file
                command = f"taufit fit {shlex.join([log.robot, *arguments])} --holdout 30%"
                yield from printed_by(folder, command, known)


def rows() -> Iterator[Row]:
    """Numbers of commands that were printed, and that fail."""
    items = {item.command: item for item in results()}
    failed = [item for item in items.values() if item.code not in (0, 1)]
    poor = sum(item.code == 1 for item in items.values())
    yield Row("distinct printed commands run in a shell", len(items), "", ">= 150")
    yield Row("printed commands that fail as printed", len(failed), "", "== 0")
    yield Row("printed commands that end in a verdict FAIL", poor, "")


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        arms = sys.argv[2:3] or ARMS
        for item in results(arms, only="".join(sys.argv[3:4])):
            file.write(f"{item.code}\t{item.command}\t<- {item.origin}\n")
            if item.code:
                file.write(f"      {' '.join(item.text.split())[-300:]}\n")
            file.flush()
