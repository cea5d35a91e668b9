"""`taufit record` while somebody else acts: on the virtual controller, without sockets or a clock.

The command runs as it is; only its lines are replaced by calls, so that hundreds of tries take
minutes and every control step of the arm is looked at: limits, touching by flat bodies, and whether
anything of ours moves the arm from a pose that was not shown.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import typer

from benchmarks.flat_bodies import FlatArm
from taufit.cli import record as record_verb
from taufit.cli.parts.playback import PlayOptions
from taufit.core.errors import TaufitError
from taufit.excitation import write_motion
from taufit.robot import read_robot
from taufit.sim import Twin, random_fourier, typical_rotor
from taufit.virtual.controllers import UrController
from taufit.virtual.controllers.dh_table import dh_table
from taufit.virtual.urscript import ScriptError
from taufit.wire.source import SampleBlock, SourceDescription
from taufit.wire.ur import FIELDS, STATUS
from taufit.wire.ur_state import DhTable

ARM = "ur5e"
CENTRE = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])
# Of commanded speed over its limit, and of the arm behind its servo.
_SPEED, _SERVO = 1.01, 1.05
# Poses this far from what was shown are others [rad].
_SHOWN = 0.03


class Cell:
    """One virtual arm, its only user and a second client.

    Args:
        seed: Of everything that happens.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.robot = typical_rotor(read_robot(ARM))
        home = tuple(CENTRE + self.rng.uniform(-0.3, 0.3, 6))
        self.controller = UrController(
            Twin(self.robot), version=(3, 15, 0, 0), seed=seed, home=home
        )
        self.flat = FlatArm(ARM)
        self.faults: list[str] = []
        self.shown: np.ndarray | None = None
        self.uploaded = False
        self.unshown: np.ndarray | None = None
        self.remote = "true"
        self.plan: list[tuple[int, Callable[[UrController], object]]] = []
        self.rows: list[dict[str, Any]] = []
        self.gaps: list[Any] = []
        self.duplicated, self.messages = 0, list[str]()

    # What happens in every control step.

    def tick(self, count: int) -> None:
        """Let time pass."""
        limits = self.robot.limits
        for _ in range(count):
            steps = self.controller.steps
            for due, act in [x for x in self.plan if x[0] <= steps]:
                with contextlib.suppress(ScriptError):
                    act(self.controller)
                self.plan.remove((due, act))
            sample = self.controller.tick()
            self.rows.append({name: self.controller.output_value(name) for name in _asked(self)})
            fast = float((np.abs(self.controller.target_speed) / limits.velocity).max())
            moved = float((np.abs(sample.velocity) / limits.velocity).max())
            if fast > _SPEED and self.controller._servo[0] == 0.0:
                self._fault(f"commanded {fast:.2f} of a speed limit")
            if moved > _SERVO:
                self._fault(f"moved at {moved:.2f} of a speed limit")
            if np.any(sample.position > limits.upper) or np.any(sample.position < limits.lower):
                self._fault("left its range")
            if steps % 25 == 0 and self.flat.gaps(sample.position)[0] < 0.0:
                self._fault("touched")
            if self.unshown is not None and self._ours_moves():
                self._fault("was moved by us from a pose that was not shown")

    def _ours_moves(self) -> bool:
        running = self.controller.program is not None and self.uploaded
        return running and self.controller.integers[24] in (2, 3)

    def _fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    # The lines of the command.

    def connect(self) -> SourceDescription:
        names = tuple(FIELDS)
        meta = {"controller": "Universal Robots", "controller_version": "3.15.0.0"}
        return SourceDescription(6, names, "current", "motor_current", 125.0, meta)

    def read(self, seconds: float) -> SampleBlock | None:
        if seconds > 0.0:
            self.tick(10)
        if not self.rows:
            return None
        rows, self.rows = self.rows, []
        time = np.array([row["timestamp"] for row in rows])
        values = {field: np.array([row[name] for row in rows]) for field, name in FIELDS.items()}
        status = {
            name: np.array([row[name] for row in rows], float) for name in STATUS if name in rows[0]
        }
        return SampleBlock(time, values, status)

    def close(self) -> None:
        pass

    def receive_program(self, data: bytes) -> None:
        """What the secondary port is sent."""
        text = data.decode()
        ours = "taufit_excitation" in text
        if ours and self.rng.random() < 0.3:
            # The other client is a moment faster than we.
            with contextlib.suppress(ScriptError):
                self.controller.play(_move(self.controller, self.rng))
            self.tick(int(self.rng.integers(1, 120)))
        with contextlib.suppress(ScriptError):
            self.controller.play(text)
        if ours:
            self.uploaded = True
            away = np.inf if self.shown is None else np.abs(self.controller.target - self.shown)
            self.unshown = None if np.max(away) < _SHOWN else self.controller.target.copy()

    def confirm(self, *_: object, **__: object) -> bool:
        """The person thinks; the second client acts."""
        act = self.rng.choice(len(_DURING_QUESTION))
        _DURING_QUESTION[act](self)
        self.tick(int(self.rng.integers(5, 150)))
        after = _DURING_RUN[self.rng.choice(len(_DURING_RUN))]
        self.plan.append((self.controller.steps + int(self.rng.integers(1, 900)), after(self)))
        return True

    def show(self, planned: object, clearance: object, here: np.ndarray, notes: object) -> None:
        self.shown = np.array(here)


def _asked(cell: Cell) -> list[str]:
    known = cell.controller.types
    return [name for name in ("timestamp", *FIELDS.values(), *STATUS) if name in known]


def _move(controller: UrController, rng: np.random.Generator) -> str:
    """Somebody's program: the base or the flange turned, which touches nothing."""
    goal = controller.target.copy()
    joint = int(rng.choice([0, 5]))
    goal[joint] = np.clip(goal[joint] + rng.choice([-1, 1]) * rng.uniform(0.004, 0.8), -3.0, 3.0)
    row = ", ".join(f"{x:.9f}" for x in goal)
    return f"def other():\n  movej([{row}], a=2, v={rng.uniform(0.2, 1.5):.3f})\nend\n"


def _play(cell: Cell) -> None:
    cell.controller.play(_move(cell.controller, cell.rng))


def _slider(cell: Cell) -> None:
    cell.controller.inputs.update(speed_slider_mask=1, speed_slider_fraction=0.5)


_DURING_QUESTION: list[Callable[[Cell], object]] = [
    *[lambda cell: None] * 8,
    _play,
    _play,
    _slider,
    lambda cell: cell.controller.protective_stop("a person"),
    lambda cell: cell.controller.set_power(False),
    lambda cell: setattr(cell, "remote", "false"),
]
_DURING_RUN: list[Callable[[Cell], Callable[[UrController], object]]] = [
    lambda cell: lambda c: None,
    lambda cell: lambda c: c.play(_move(c, cell.rng)),
    lambda cell: lambda c: c.play("this is no program"),
    lambda cell: lambda c: c.stop(),
    lambda cell: lambda c: c.pause(True),
    lambda cell: lambda c: c.protective_stop("a person"),
    lambda cell: lambda c: c.inputs.update(speed_slider_mask=1, speed_slider_fraction=0.4),
    lambda cell: lambda c: c.set_power(False),
]


def _motion(cell: Cell, folder: Path) -> tuple[Path, bool]:
    """A motion file, and whether it may be played at all."""
    rng = cell.rng
    motion = random_fourier(
        cell.robot,
        seed=int(rng.integers(1 << 30)),
        frequency_hz=0.5,
        centre=CENTRE,
        reach=float(rng.uniform(0.1, 0.4)),
    )
    kind = int(rng.integers(16))
    name = ARM
    if kind == 0:
        motion = replace(motion, sine=30 * motion.sine, cosine=30 * motion.cosine)
    if kind == 1:
        motion = replace(motion, offset=motion.offset + np.array([0, 0, 1.7, 0, 0, 0]))
    if kind == 2:
        name = str(rng.choice(["ur10", "ur3e", "ur5"]))
    if kind == 3:
        motion = replace(motion, periods=0.7)
    write_motion(motion, folder / "m.json", robot=name)
    return folder / "m.json", kind > 3


class Terminal(io.StringIO):
    """Somebody sits there."""

    def isatty(self) -> bool:
        return True


def _lines(cell: Cell) -> list[Any]:
    """Calls in place of the command's lines and of the person."""
    table = DhTable(*dh_table(cell.robot), calibrated=True)

    class Line:
        name = "a line"

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def send(self, data: bytes) -> None:
            cell.receive_program(data)

        def close(self) -> None:
            pass

    def about(*_: object) -> dict[str, str]:
        return {"robot_model": "UR5", "serial_number": "1", "remote_control": cell.remote}

    return [
        mock.patch("taufit.wire.source_address.open_source", lambda *a, **k: cell),
        mock.patch("taufit.wire.ur_player.TcpConnection", Line),
        mock.patch("taufit.wire.ur_player.exchange_lines", lambda *a, **k: cell.controller.stop()),
        mock.patch("taufit.wire.ur_player.controller_info", about),
        mock.patch("taufit.wire.ur_player.read_dh_table", lambda *a, **k: table),
        mock.patch("taufit.wire.ur_player.time.sleep", lambda s: cell.tick(int(s / 0.008))),
        mock.patch("taufit.cli.record.show_planned_motion", cell.show),
        mock.patch("typer.confirm", cell.confirm),
        mock.patch("sys.stdin", Terminal()),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ]


def one_try(seed: int) -> tuple[str, list[str]]:
    """How a try ended ("played", "stopped" or "refused"), and what was wrong with it."""
    cell = Cell(seed)
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        path, allowed = _motion(cell, Path(place))
        for patch in _lines(cell):
            stack.enter_context(patch)
        ended = "played"
        try:
            record_verb.command(
                "127.0.0.1",
                PlayOptions(slow=float(cell.rng.choice([0.0, 0.5]))),
                record_verb.SourceOptions(),
                motion=path,
                output=Path(place) / "r.parquet",
            )
        except TaufitError:
            ended = "stopped" if cell.uploaded else "refused"
        except (SystemExit, typer.Exit):
            ended = "stopped"
        cell.tick(300)
        if not allowed and cell.uploaded:
            cell._fault("an unsafe motion or one of another arm was sent")
        if cell.controller.program is not None and cell._ours_moves():
            cell._fault("still moving when the command had ended")
    return ended, [f"seed {seed}: the arm {text}" for text in cell.faults]


def tries(seeds: range) -> tuple[Counter[str], list[str]]:
    """Counts of endings, and all faults."""
    count: Counter[str] = Counter()
    faults: list[str] = []
    for seed in seeds:
        ended, wrong = one_try(seed)
        count[ended] += 1
        faults += wrong
    return count, faults


def report(count: int = 500) -> Iterator[str]:
    """Lines for the table of robustness."""
    endings, faults = tries(range(count))
    yield f"{count} tries with a second client: {dict(endings)}, {len(faults)} faults"
    yield from faults
