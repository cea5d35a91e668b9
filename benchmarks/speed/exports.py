"""CPU time of exported C: one sample of a six-joint arm with friction that remembers its path."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row

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
# Instructions of one call, counted by callgrind: at rest, creeping, fast.
COUNTED = """
#include <stdlib.h>
#include <valgrind/callgrind.h>
#include "arm.h"
int main(void) {
  double q[UR10E_JOINTS], v[UR10E_JOINTS], a[UR10E_JOINTS], tau[UR10E_JOINTS];
  ur10e_controller controller;
  ur10e_controller_start(&controller);
  srand(1);
  for (int i = 0; i < STATES; i++) {
    const double top = i % 3 == 0 ? 0.0 : i % 3 == 1 ? 1e-3 : 2.0;
    for (int k = 0; k < UR10E_JOINTS; k++) {
      q[k] = 6.0 * rand() / RAND_MAX - 3.0;
      v[k] = top * (2.0 * rand() / RAND_MAX - 1.0);
      a[k] = 10.0 * rand() / RAND_MAX - 5.0;
    }
    CALLGRIND_ZERO_STATS;
    ur10e_feed_forward(&controller, q, v, a, 0, 0.002, tau);
    CALLGRIND_DUMP_STATS;
  }
  return 0;
}
"""
STATES = 600


def instruction_counts(folder: Path) -> np.ndarray:
    """Instructions of one feed-forward call at each of many states."""
    (folder / "counted.c").write_text(COUNTED)
    flags = [f"-DSTATES={STATES}", "-O2", "-std=c99", "counted.c", "arm.c", "-lm", "-o", "counted"]
    subprocess.run(["gcc", *flags], cwd=folder, check=True)
    subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=out", "./counted"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    counts = []
    for number in range(1, STATES + 1):
        text = (folder / f"out.{number}").read_text()
        counts.append(next(int(x.split()[1]) for x in text.splitlines() if x.startswith("summary")))
    return np.array(counts)


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
                counts = instruction_counts(Path(folder))
                note = f"{STATES} states at rest, creeping and fast, by callgrind, libm included"
                yield Row("C, instructions of feed-forward", float(np.median(counts)), "", "", note)
                ratio = float(counts.max() / np.median(counts))
                yield Row("C, instructions, worst over median", ratio, "", "<= 1.2", note)
