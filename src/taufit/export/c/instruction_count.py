"""Work of one call of the exported C: instructions counted by callgrind at random states."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.process_cleanup import temporary_folder
from taufit.export.c.names import c_name, set_prefix
from taufit.export.c.texts import c_texts
from taufit.model.fitted_model import FittedModel

_CALLS = {
    "step": "arm_step(&state, q, v, a, 0, 0.002, tau)",
    "feed_forward": "arm_feed_forward(&controller, q, v, a, 0, 0.002, tau)",
    "torque_gradient": "arm_torque_gradient(q, v, a, 0, tau, dq, dv, da)",
    "acceleration": "arm_acceleration(q, v, a, tau)",
}
# At rest, creeping and fast in turn: friction takes every branch that it has.
_MAIN = """
#include <stdlib.h>
#include <valgrind/callgrind.h>
#include "arm.h"
static double dq[ARM_JOINTS * ARM_JOINTS], dv[ARM_JOINTS * ARM_JOINTS];
static double da[ARM_JOINTS * ARM_JOINTS];
static double draw(double size) { return size * (2.0 * rand() / RAND_MAX - 1.0); }
int main(void) {
  double q[ARM_JOINTS], v[ARM_JOINTS], a[ARM_JOINTS], tau[ARM_JOINTS];
  arm_state state;
  arm_controller controller;
  arm_start(&state);
  arm_controller_start(&controller);
  srand(@SEED@);
  for (int i = 0; i < @STATES@; i++) {
    const double speed = i % 3 == 0 ? 0.0 : i % 3 == 1 ? 1e-3 : 2.0;
    for (int k = 0; k < ARM_JOINTS; k++) {
      q[k] = draw(3.0), v[k] = draw(speed), a[k] = draw(5.0), tau[k] = draw(50.0);
    }
@CALLS@
  }
  return 0;
}
"""


@dataclass(frozen=True, slots=True, eq=False)
class InstructionCount:
    """Instructions of one call of a function, those of the mathematical library included."""

    function: str
    counts: Int[Array, " n"]

    @property
    def median(self) -> int:
        return int(np.median(self.counts))

    @property
    def worst(self) -> int:
        return int(self.counts.max())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"function": self.function, "median": self.median, "worst": self.worst,
                "states": len(self.counts)}  # fmt: skip


def count_instructions(
    model: FittedModel, states: int = 150, seed: int = 1, functions: tuple[str, ...] = tuple(_CALLS)
) -> tuple[InstructionCount, ...]:
    """Compile the exported C with -O2 and count the instructions of its calls under callgrind.

    Args:
        model: Fitted model.
        states: Number of random states, a third each at rest, creeping and fast.
        seed: Seed of the states.
        functions: Names without the prefix of the robot.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or shutil.which("valgrind") is None:
        raise TaufitError(
            "Counting instructions needs a C compiler and valgrind: install them (Debian: "
            "`apt install gcc valgrind`), or leave --count-instructions out."
        )
    texts = c_texts(model, "arm")
    calls = "\n".join(
        f'    CALLGRIND_ZERO_STATS; {_CALLS[name]}; CALLGRIND_DUMP_STATS_AT("{name}");'
        for name in functions
    )
    main = set_prefix(_MAIN.replace("@CALLS@", calls), c_name(model))
    main = main.replace("@STATES@", str(states)).replace("@SEED@", str(seed))
    with temporary_folder() as folder:
        for name, text in (("arm.c", texts.source), ("arm.h", texts.header), ("main.c", main)):
            (folder / name).write_text(text, encoding="utf-8")
        # Bound at load: the first call is not charged with the linker's work.
        flags = ["-O2", "-std=c99", "-Wl,-z,now"]
        _run([compiler, *flags, "main.c", "arm.c", "-lm", "-o", "main"], folder)
        options = ("--combine-dumps=yes", "--dump-line=no", "--callgrind-out-file=counts")
        _run(["valgrind", "--tool=callgrind", *options, "./main"], folder)
        return _read_counts(folder / "counts", functions)


def _run(command: list[str], folder: Path) -> None:
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600)
    if process.returncode:
        message = (process.stderr.strip().splitlines() or ["no message"])[-1][:200]
        raise TaufitError(f"Counting instructions: {command[0]} failed ({message}).")


def _read_counts(path: Path, functions: tuple[str, ...]) -> tuple[InstructionCount, ...]:
    """Totals of all dumps of a callgrind file, by function."""
    counts: dict[str, list[int]] = {name: [] for name in functions}
    trigger = None
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if match := re.match(r"desc: Trigger: Client Request: (\w+)", line):
                trigger = match[1]
            elif line.startswith(("summary:", "totals:")) and trigger in counts:
                counts[trigger].append(int(line.split()[1]))
                trigger = None
    return tuple(InstructionCount(name, np.array(values)) for name, values in counts.items())
