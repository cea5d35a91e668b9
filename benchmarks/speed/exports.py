"""CPU time of exported C: one sample of a six-joint arm with friction that remembers its path."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from taufit.export.c.instruction_count import count_instructions

CALLS = 300_000
MAIN = """
#include <stdio.h>
#include <time.h>
#include "arm.h"
int main(void) {
  double q[UR10E_JOINTS] = {0}, v[UR10E_JOINTS], a[UR10E_JOINTS], tau[UR10E_JOINTS], sum = 0.0;
  ur10e_state state;
  ur10e_start(&state);
  const clock_t begin = clock();
  for (int i = 0; i < CALLS; i++) {
    for (int k = 0; k < UR10E_JOINTS; k++) {
      v[k] = ((i >> (k + 5)) & 1) ? 0.5 : -0.4;
      a[k] = 0.1 * k;
      q[k] += 0.001 * v[k];
    }
    ur10e_step(&state, q, v, a, 0, 0.001, tau);
    sum += tau[0] + tau[5];
  }
  printf("%.9g ", (double)(clock() - begin) / CLOCKS_PER_SEC / CALLS * 1e6);
  const clock_t again = clock();
  for (int i = 0; i < CALLS; i++) {
    for (int k = 0; k < UR10E_JOINTS; k++) q[k] += 0.001 * v[k];
    ur10e_acceleration(q, v, tau, a);
    sum += a[0] + a[5];
  }
  printf("%.9g ", (double)(clock() - again) / CLOCKS_PER_SEC / CALLS * 1e6);
  double dq[UR10E_JOINTS * UR10E_JOINTS], dv[UR10E_JOINTS * UR10E_JOINTS];
  double da[UR10E_JOINTS * UR10E_JOINTS];
  const clock_t third = clock();
  for (int i = 0; i < CALLS; i++) {
    for (int k = 0; k < UR10E_JOINTS; k++) q[k] += 0.001 * v[k];
    ur10e_torque_gradient(q, v, a, 0, tau, dq, dv, da);
    sum += dq[0] + dv[5];
  }
  printf("%.9g %g\\n", (double)(clock() - third) / CLOCKS_PER_SEC / CALLS * 1e6, sum);
  return 0;
}
"""
# Counted in parts: callgrind keeps every dump in one file.
STATES, PARTS = 100_000, 10


def instruction_counts(model, function: str = "feed_forward") -> np.ndarray:
    """Instructions of one call at each of many states at rest, creeping and fast."""
    parts = [
        count_instructions(model, STATES // PARTS, seed, (function,))[0].counts
        for seed in range(PARTS)
    ]
    return np.concatenate(parts)


def rows() -> Iterator[Row]:
    from taufit.export import write_export
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Presliding

    robot = read_robot("ur10e")
    model = TorqueModel(robot, Presliding())
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = robot.parameters
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_export(model.with_values(values), "c", Path(folder) / "arm.c")
            (Path(folder) / "main.c").write_text(MAIN)
            flags = [f"-DCALLS={CALLS}", "-O2", "-std=c99", "main.c", "arm.c", "-lm", "-o", "main"]
            subprocess.run([compiler, *flags], cwd=folder, check=True)
            said = [
                subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True)
                for _ in range(5)
            ]
            said = [[float(x) for x in one.stdout.split()[:3]] for one in said]
            step, forward, slopes = np.min(said, 0)
            note = f"{compiler} -O2, five pre-sliding elements a joint, best of 5 x {CALLS} calls"
            yield Row(f"C, one step of six joints, {compiler}", float(step), "us", "<= 3", note)
            note = f"{compiler} -O2, composite bodies and Cholesky, best of 5 x {CALLS} calls"
            yield Row(
                f"C, acceleration, six joints, {compiler}", float(forward), "us", "<= 1.8", note
            )
            note = f"{compiler} -O2, torque and its 6 x 18 derivatives, best of 5 x {CALLS} calls"
            yield Row(f"C, gradient, six joints, {compiler}", float(slopes), "us", "<= 6", note)
            if compiler == "gcc" and shutil.which("valgrind"):
                counts = instruction_counts(model.with_values(values))
                note = f"{STATES:,} states at rest, creeping and fast, by callgrind, libm included"
                yield Row("C, instructions of feed-forward", float(np.median(counts)), "", "", note)
                ratio = float(counts.max() / np.median(counts))
                yield Row("C, instructions, worst over median", ratio, "", "<= 1.2", note)
