"""Regressor, base parameters and least squares of 1e5 samples, against FIGAROH doing the same; and
the physically consistent fit of 1e4 samples, end to end, against its linear matrix inequalities.

FIGAROH runs in a process of its own: the interpreter in FIGAROH_PYTHON, or this one if it has
FIGAROH (extra: figaroh).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.pinocchio_arm import arrays_of
from taufit.robot import Robot

SAMPLES = 100_000
CONSISTENT = 10_000

THEIRS = """
import json, resource, sys, time, types
import numpy as np
import pinocchio
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import (
    build_regressor_basic, build_regressor_reduced, get_index_eliminate,
)
from pinocchio_arm import pinocchio_model

arm = np.load(sys.argv[1])
model = pinocchio_model(arm)
robot = types.SimpleNamespace(model=model, data=model.createData())
settings = {"has_friction": True, "has_actuator_inertia": True, "has_joint_offset": True,
            "is_joint_torques": True, "act_idxv": list(range(model.nv))}
q, v, a = arm["states"]
torque = arm["torque"].T.reshape(-1)
names = {str(k): 0.0 for k in range(14 * model.nv)}
start = time.process_time()
whole = build_regressor_basic(robot, q, v, a, settings)
gone, kept = get_index_eliminate(whole, names, 1e-6)
found = QRDecomposer().decompose(build_regressor_reduced(whole, gone), kept, tau=torque)
cpu = time.process_time() - start
rms = float(np.sqrt(np.mean((torque - found.W_b @ found.phi_b) ** 2)))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu": cpu, "peak": peak, "rank": found.rank, "rms": rms}))
"""

OURS = """
import json, resource, sys, time
import numpy as np
from taufit.regression import Batch, accumulate as accumulate
from taufit.dynamics import base_parameters
from taufit.robot import read_robot
from taufit.model.torque_model import TorqueModel

arm = np.load(sys.argv[1])
q, v, a = arm["states"]
torque = arm["torque"]
start = time.process_time()
model = TorqueModel(read_robot("ur10"))
base = base_parameters(model)
found = accumulate(model, Batch(q, v, a, torque), columns=base.columns)
values = np.linalg.solve(found.factor, found.target)
cpu = time.process_time() - start
rms = float(np.sqrt(found.cost(values) / found.count))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu": cpu, "peak": peak, "rank": len(base.columns), "rms": rms}))
"""


THEIR_LMI = """
import json, sys, time, types
import numpy as np
import pinocchio
from figaroh.identification.physical_fit import (
    build_problem, solve_direct_effort_fit,
)
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import (
    build_regressor_basic, build_regressor_reduced, get_index_eliminate,
)
from pinocchio_arm import pinocchio_model

arm = np.load(sys.argv[1])
model = pinocchio_model(arm)
robot = types.SimpleNamespace(model=model, data=model.createData())
settings = {"has_friction": True, "has_actuator_inertia": True, "has_joint_offset": True,
            "is_joint_torques": True, "act_idxv": list(range(model.nv))}
q, v, a = arm["states"]
torque = arm["torque"].T.reshape(-1)
joints = [f"joint_{k + 1}" for k in range(model.nv)]
keys = "m mx my mz Ixx Ixy Iyy Ixz Iyz Izz".split()
start = time.process_time()
whole = build_regressor_basic(robot, q, v, a, settings)
nominal = np.concatenate([body.toDynamicParameters() for body in model.inertias[1:]])
names = [f"{key}_{joint}" for joint in joints for key in keys]
names += [f"extra_{k}" for k in range(4 * model.nv)]
prior = np.concatenate([nominal, np.zeros(4 * model.nv)])
assert whole.shape[1] == len(names), whole.shape
problem = build_problem(whole, torque, names, joints, prior=prior)
found = solve_direct_effort_fit(problem, solver="cvxopt")
cpu = time.process_time() - start
start = time.process_time()
gone, kept = get_index_eliminate(whole, dict.fromkeys(names, 0.0), 1e-6)
base = QRDecomposer().decompose(build_regressor_reduced(whole, gone), kept, tau=torque)
cpu_base = time.process_time() - start
here = [pinocchio.rnea(model, robot.data, q[k], v[k], a[k]) for k in (0, 1)]
mine = (whole[:, :len(nominal)] @ nominal).reshape(model.nv, -1).T[:2]
assert np.allclose(here, mine), "columns are not where they were expected"
rms = None
if found.theta is not None:
    rms = float(np.sqrt(np.mean((problem.tau - problem.Y @ found.theta) ** 2)))
print(json.dumps({"cpu": cpu, "cpu_base": cpu_base, "rank": base.rank, "rms": rms,
                  "accepted": bool(found.accepted), "status": found.solver_status,
                  "error": found.exception}))
"""

OUR_SDP = """
import json, sys, time
import numpy as np
from taufit.regression import Batch, Information, accumulate as accumulate
from taufit.estimators import ConsistentSdp, EstimationProblem, smallest_eigenvalues
from taufit.dynamics import base_parameters
from taufit.robot import read_robot
from taufit.model.torque_model import TorqueModel

arm = np.load(sys.argv[1])
q, v, a = arm["states"]
torque = arm["torque"]
import clarabel
# The robot's description is read before the clock starts, as it is for the other side.
robot = read_robot("ur10")
start = time.process_time()
model = TorqueModel(robot)
base = base_parameters(model)
seen = accumulate(model, Batch(q, v, a, torque), columns=base.columns, fast=True)
# W theta = W[:, i] B theta: what the base columns say is all that is known of the parameters.
p = len(model.names)
factor, target = np.zeros((p, p)), np.zeros(p)
factor[: base.rank], target[: base.rank] = seen.factor @ base.mapping, seen.target
found = Information(model.names, factor, target, seen.residual, seen.count)
theta = ConsistentSdp().solve(found, EstimationProblem(model, base)).values
cpu = time.process_time() - start
rms = float(np.sqrt(found.cost(theta) / found.count))
least = float(smallest_eigenvalues(model, theta).min())
print(json.dumps({"cpu": cpu, "rms": rms, "least": least}))
"""


def _run(python: str, script: str, file: Path) -> dict[str, float]:
    here = str(Path(__file__).resolve().parents[1])
    settings = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=here)
    done = subprocess.run(
        [python, "-W", "ignore", "-c", script, str(file)],
        capture_output=True,
        text=True,
        env=settings,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def rows() -> Iterator[Row]:
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot

    python = os.environ.get("FIGAROH_PYTHON", sys.executable)
    probe = "from importlib.metadata import version; print(version('figaroh'))"
    found = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    if found.returncode:
        note = "install the extra figaroh, or set FIGAROH_PYTHON to an interpreter that has it"
        yield Row("skipped: FIGAROH is not installed", 0.0, note=note)
        return

    robot = read_robot("ur10")
    model = TorqueModel(robot)
    rng = np.random.default_rng(0)
    states = rng.uniform(-np.pi, np.pi, (3, SAMPLES, 6))
    theta = rng.uniform(0.5, 1.5, len(model.names)) * np.where(model.nominal, model.nominal, 1.0)
    torque = np.concatenate(
        [model.regressor(*states[:, k : k + 10_000]) @ theta for k in range(0, SAMPLES, 10_000)]
    )
    torque += rng.normal(size=torque.shape)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.npz"
        np.savez(file, states=states, torque=torque, **arrays_of(robot))
        ours = _run(sys.executable, OURS, file)
        theirs = _run(python, THEIRS, file)
    what = f"UR10, {SAMPLES:.0e} samples, against FIGAROH {found.stdout.strip()}"
    yield Row(
        f"{what}: CPU time",
        theirs["cpu"] / ours["cpu"],
        "x",
        ">= 30",
        f"{ours['cpu']:.2f} against {theirs['cpu']:.1f} CPU s, one thread",
    )
    yield Row(
        f"{what}: peak memory",
        theirs["peak"] / ours["peak"],
        "x",
        ">= 10",
        f"{ours['peak'] / 1024:.0f} against {theirs['peak'] / 1024:.0f} MB, whole processes",
    )
    yield Row(
        f"{what}: residual",
        ours["rms"] / theirs["rms"],
        "x",
        "<= 1.000001",
        f"base parameters {ours['rank']} and {theirs['rank']}",
    )
    yield from _consistent(python, robot, states[:, :CONSISTENT])


def _cpu(run: dict[str, float]) -> float:
    return run["cpu"]


def _consistent(python: str, robot: Robot, states: np.ndarray) -> Iterator[Row]:
    from taufit.model.torque_model import TorqueModel

    # A possible arm: the nominal one, a tenth heavier, with rotors, friction and offsets.
    model, rng = TorqueModel(robot), np.random.default_rng(1)
    links = np.arange(len(model.names)) < 10 * robot.joints
    theta = np.where(links, 1.1 * model.nominal, rng.uniform(0.5, 1.5, len(model.names)))
    torque = model.regressor(*states) @ theta
    torque += rng.normal(size=torque.shape)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.npz"
        np.savez(file, states=states, torque=torque, **arrays_of(robot))
        # The least of three runs each: what else the machine does only adds.
        ours = min((_run(sys.executable, OUR_SDP, file) for _ in range(3)), key=_cpu)
        theirs = min((_run(python, THEIR_LMI, file) for _ in range(3)), key=_cpu)
    what = f"UR10, {CONSISTENT:.0e} samples, physically consistent, against FIGAROH's LMI path"
    both = theirs["cpu"] + theirs["cpu_base"]
    yield Row(
        f"{what}: CPU time",
        both / ours["cpu"],
        "x",
        ">= 100",
        f"{ours['cpu']:.3f} against {both:.1f} CPU s from states to base parameters "
        f"({theirs['rank']:.0f}) and a consistent set",
    )
    yield Row(
        f"{what}: CPU time, its base parameters left out",
        theirs["cpu"] / ours["cpu"],
        "x",
        "",
        f"{ours['cpu']:.3f} (base parameters included) against {theirs['cpu']:.1f} CPU s",
    )
    yield Row(
        f"{what}: smallest pseudo-inertia eigenvalue",
        ours["least"],
        "",
        ">= -1e-9",
        f"rms {ours['rms']:.4f} N m; theirs {theirs['rms']} ({theirs['status']})",
    )
