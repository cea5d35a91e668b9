"""Commands that commands print, run as printed in a shell in the user's directory.

A user's folder has recordings of several arms, spoilt in the ways of `benchmarks.traps`, and names
with blanks. Every text between backticks that begins with `taufit` and goes on after the verb is a
command; each is run once,
in the folder and in the state in which it was printed. It fails if it ends with wrong usage,
unusable input or an exception; a verdict FAIL (exit code 1) is an answer, and counted beside.
A shell splits the words; the command runs in a copy of this process, which has its imports.

python -m benchmarks printed_commands
python -m benchmarks.accuracy.printed_commands FILE [ARM [PART OF A NAME]]     table of commands
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from benchmarks import Row
from benchmarks.accuracy.first_try import simulated, write
from benchmarks.traps import TRAPS, log_of
from taufit.recording import Recording

# Arms whose days are played in full, arms with the first steps only, a tree and a servo arm.
ARMS = ("ur3e", "panda")
MORE_ARMS = ("kr5", "iiwa7", "ur10", "openarm")
EXAMPLES = Path(__file__).parents[2] / "examples" / "arms"
_PRINTED = re.compile(r"`(taufit [^`]+)`")
_IS_HELP = re.compile(r"^taufit (help|.*--help)")
_DEADLINE_S = 180.0
_TRACEBACK = 70
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
    "export 'my {arm}.json' -o arm.xml",
    "export 'my {arm}.json' -o arm.sdf",
    "export 'my {arm}.json' -o arm.json",
    "export 'my {arm}.json' -o arm",
    "export 'my {arm}.json' --format c -o arm.c --mounting 0,90,0 --check 'day 2.parquet'",
    "export 'my {arm}.json' --format fmi -o arm.fmu",
    "export nothing.json -o arm.urdf",
    "report 'my {arm}.json' 'day 2.parquet' -o page2.html",
    "report 'day 2.parquet' -o page2.html",
    "payload 'my {arm}.json' 'day 2.parquet'",
    "payload 'my {arm}.json' 'loaded day.parquet' --method static",
    "payload 'my {arm}.json' 'loaded day.parquet' --method printed",
    "payload 'my {arm}.json' short.parquet",
    "payload 'my {arm}.json' 'turned day.parquet'",
    "contact 'my {arm}.json' 'loaded day.parquet'",
    "contact 'my {arm}.json' nowhere.parquet",
    "energy 'my {arm}.json' 'a motion.json'",
    "check 'my {arm}.json' 'turned day.parquet'",
    "check 'my {arm}.json' 'loaded day.parquet'",
    "check 'my {arm}.json' 'day 1.csv'",
    "fit {arm} 'day 1.parquet' --friction nothing -o x.json",
    "fit {arm} 'day 1.parquet' --holdout 200% -o x.json",
    "fit {arm} 'day 1.parquet' --from 500 -o x.json",
    "fit {arm} 'day 1.parquet' --to 0.1 -o x.json",
    "fit {arm} 'day 1.parquet' --cutoff-hz 5000 -o x.json",
    "fit {arm} 'day 1.parquet' --tip nowhere -o x.json",
    "fit {arm} 'day 1.parquet' --mounting wall -o x.json",
    "fit {arm} 'day 1.parquet' --delay-s auto --holdout 30% -o delay.json",
    "fit {arm} 'day 1.parquet' -o x.txt",
    "fit 'day 1.parquet' {arm} -o x.json",
    "fit {arm} 'day *.parquet' --holdout 30% -o all.json",
    "fit {arm} 'turned day.parquet' -o turned.json",
    "fit {arm} 'cut off.csv' -o x.json",
    "fit {arm} text.csv -o x.json",
    "convert text.csv --draft 'map of text.yaml'",
    "convert 'two clocks.csv' --draft 'map of clocks.yaml' --robot {arm}",
    "convert 'no time.csv' --draft 'map of rows.yaml' --robot {arm}",
    "convert 'degrees.csv' --draft 'map of degrees.yaml' --robot {arm}",
    "convert 'positions.csv' torques.csv --draft 'map of both.yaml' --robot {arm}",
    "convert 'positions.csv' --draft 'map of one.yaml' --robot {arm}",
    "convert 'day 1.csv' --draft 'map 1.yaml'",
    "convert nothing.csv --draft 'map 2.yaml'",
    "convert 'day 1.parquet' --draft 'map 2.yaml'",
    "convert 'day 1.parquet' -o 'day 1.mat'",
    "convert 'unsigned.parquet' --report",
    "convert 'turned day.parquet' --robot {arm} --report",
    "design {arm} --kind payload --seconds 0.2 --free-space -o weigh.json",
    "design {arm} --kind warm-up --free-space -o warm.json",
    "design {arm} --kind validation --seconds 0.2 --free-space -o validation.json",
    "design {arm} --kind payload-inertia --seconds 0.2 --free-space -o inertia.json",
    "design {arm} --kind friction-test --minutes 2 --seconds 0.2 --free-space -o quick.json",
    "simulate {arm} warm.json -o warm.parquet",
    "simulate {arm} validation.json -o validation.parquet",
    "simulate {arm} weigh.json -o weighed.parquet --payload 1,0,0,0.05",
    "simulate {arm} quick.json -o quick.parquet --rate-hz 100",
    "friction {arm} quick.parquet -o quick.friction.json",
    "simulate {arm} fourier -o 'many.parquet' --runs 8",
    "simulate {arm} --preset list",
    "simulate {arm} --preset nothing -o x.parquet",
    "health baseline 'my {arm}.json' 'many-*.parquet' -o 'healthy days.json'",
    "health check 'healthy days.json'",
    "health check 'healthy days.json' 'loaded day.parquet'",
    "fleet robots --robot {arm} -o 'the fleet'",
    "fleet robots -o other",
    "gains {arm} 'loaded day.parquet' --mass 1.0",
    "live 'my {arm}.json' 'loaded day.parquet' --speed 0 --seconds 3",
    "weigh 127.0.0.1 'my {arm}.json' --ports rtde=9 --yes",
    "weigh nowhere 'my {arm}.json'",
    "record franka:127.0.0.1 -o r.parquet --seconds 1",
    "reproduce kr6",
    "demo --robot nothing",
    "open nothing.csv",
    "help fit",
    "inspect {arm} --mounting ceiling",
    "inspect 'day 1.parquet'",
    "inspect 'my {arm}.json'",
)
# First steps with other arms.
_FIRST_STEPS = (
    "inspect {arm}",
    "design {arm} --seconds 0.2 --free-space -o 'a motion.json'",
    "design {arm} --kind payload --seconds 0.2 --free-space -o weigh.json",
    "simulate {arm} 'a motion.json' -o played.parquet",
    "convert 'day 1.csv' --draft 'map 1.yaml' --robot {arm}",
    "convert 'day 1.parquet' --robot {arm} -o 'day 1.npz'",
    "fit {arm} 'day 1.csv' --map 'map 1.yaml' -o x.json",
    "fit {arm} 'day 1.parquet' --holdout 'day 2.parquet' --friction linear -o 'my {arm}.json'",
    "check 'my {arm}.json' 'day 2.parquet'",
    "payload 'my {arm}.json' 'loaded day.parquet' -o tool.json",
    "check 'my {arm}.json' 'loaded day.parquet' --payload tool.json",
    "health baseline 'my {arm}.json' 'day 1.parquet' -o history.json",
    "fit {arm} 'turned day.parquet' --friction linear -o turned.json",
    "fit {arm} unsigned.parquet -o u.json",
)
# A tree, and an arm of servos without torque.
_SPECIAL = {
    "palletiser": (
        "inspect arm.yaml",
        "simulate arm.yaml fourier -o run.parquet",
        "simulate arm.yaml fourier --seed 2 -o run2.parquet",
        "design arm.yaml --seconds 0.2 --free-space -o m.json",
        "fit arm.yaml run.parquet --holdout run2.parquet --friction linear -o model.json",
        "check model.json run2.parquet",
        "export model.json -o arm.urdf",
        "export model.json -o arm.c",
        "payload model.json run2.parquet",
        "contact model.json run2.parquet",
        "report model.json -o page.html",
    ),
    "so100": (
        "inspect so100",
        "design so100 --seconds 0.2 --free-space -o m.json",
        "fit so100 servo.parquet -o x.json",
        "servo so100 servo.parquet -o servo.json",
        "servo so100 servo.parquet --holdout 30% -o servo.json",
        "check servo.json servo.parquet",
        "export servo.json -o arm.urdf",
        "payload servo.json servo.parquet",
        "gains so100 servo.parquet",
    ),
}
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
    """Exit code and output of a line of a shell, `taufit ...`, in a folder."""
    split = ["bash", "-c", f"printf '%s\\0' {command}"]
    done = subprocess.run(split, cwd=folder, capture_output=True, text=True, check=True)
    words = done.stdout.split("\0")[1:-1]
    with TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            _run_in_child(folder, words, output.fileno())
        end = time.monotonic() + _DEADLINE_S
        while time.monotonic() < end:
            process, status = os.waitpid(child, os.WNOHANG)
            if process:
                output.seek(0)
                return os.waitstatus_to_exitcode(status), output.read()
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return 124, "deadline"


def _run_in_child(folder: Path, words: list[str], output: int) -> None:
    """Run the command line in this process and end it."""
    from taufit.cli import main

    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    code: Any = _TRACEBACK
    try:
        main(words)
        code = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


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
    odd_logs(folder, day)
    for number in (1, 2):
        place = folder / "robots" / f"robot {number}"
        place.mkdir(parents=True)
        taufit.write_recording(runs[f"day {number}"], place / "monday.parquet")


def odd_logs(folder: Path, day: Recording) -> None:
    """Logs as they come: cut, without numbers, without time, in degrees, in two files."""
    import numpy as np

    text = (folder / "day 1.csv").read_text()
    (folder / "cut off.csv").write_text(text[: len(text) // 3 + 7])
    (folder / "text.csv").write_text("time;state\n" + "1;running\n" * 50)
    torque = day.signal * (1.0 if day.gain is None else day.gain)
    joints = range(1, day.joints + 1)
    blocks = {
        "time": (("time",), day.time[:, None]),
        "clock": (("clock_ms",), 1e3 * day.time[:, None]),
        "position": (tuple(f"q{j}" for j in joints), day.position),
        "degrees": (tuple(f"q{j}" for j in joints), np.degrees(day.position)),
        "torque": (tuple(f"tau{j}" for j in joints), torque),
    }
    for name, parts in (
        ("two clocks", ("time", "clock", "position", "torque")),
        ("no time", ("position", "torque")),
        ("degrees", ("time", "degrees", "torque")),
        ("positions", ("time", "position")),
        ("torques", ("time", "torque")),
    ):
        header = ",".join(label for part in parts for label in blocks[part][0])
        table = np.hstack([blocks[part][1] for part in parts])
        np.savetxt(folder / f"{name}.csv", table, "%.9g", ",", header=header, comments="")


def special_folder(folder: Path, name: str) -> None:
    """Files of a tree or of an arm of servos."""
    import numpy as np

    import taufit
    from benchmarks.simulated_servos import simulated_arm

    if name == "palletiser":
        shutil.copyfile(EXAMPLES / "palletiser.yaml", folder / "arm.yaml")
        return
    runs = (simulated_arm(seed).training[0] for seed in range(50))
    joints = taufit.read_robot(name).joints
    run = next(run for run in runs if run.joints == joints)
    taufit.write_recording(run, folder / "servo.parquet")
    assert np.isfinite(run.position).all()


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
    for arm in (*arms, *(MORE_ARMS if len(arms) > 1 else ())):
        known: set[str] = set()
        with TemporaryDirectory() as place:
            folder = Path(place)
            user_folder(folder, arm)
            for line in _DAYS if arm in _OTHER else _FIRST_STEPS:
                command = "taufit " + line.format(arm=arm, other=_OTHER.get(arm))
                if only in command:
                    yield from printed_by(folder, command, known)
        if arm not in ARMS[:1]:
            continue
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

    for name, lines in _SPECIAL.items() if len(arms) > 1 else ():
        with TemporaryDirectory() as place:
            special_folder(Path(place), name)
            known = set()
            for line in lines:
                if only in line:
                    yield from printed_by(Path(place), f"taufit {line}", known)


def form(command: str) -> str:
    """Verb and options of a command, without its values."""
    return " ".join([*command.split()[1:2], *sorted(re.findall(r" (--?[a-z][a-z-]*)", command))])


def rows() -> Iterator[Row]:
    """Numbers of commands that were printed, and that fail."""
    items = {item.command: item for item in results()}
    failed = [item for item in items.values() if item.code not in (0, 1)]
    poor = sum(item.code == 1 for item in items.values())
    forms = len({form(command) for command in items})
    note = f"{forms} differ in verb or options"
    yield Row("distinct printed commands run in a shell", len(items), "", ">= 150", note)
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
