"""Designed motions: condition numbers, feasibility, speed against finite differences, information.

Metric of every condition number: true sign of velocity, unscaled SI columns unless said, leftmost
base columns from base to tip, 2000 samples over one period.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import Row

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"


def rows() -> Iterator[Row]:
    yield from _printed()
    yield from _conditions()
    yield from _finite_differences()
    yield from _criteria()
    yield from _mounting()
    yield from _cell()
    yield from _seeds()


def _free(robot):
    from taufit.excitation import default_limits

    return replace(default_limits(robot), torque=np.full(robot.joints, np.inf))


def printed_motion():
    """The trajectory printed in paper U, or None without the tables beside the checkout."""
    from taufit.excitation import Fourier

    path = REFERENCE / "ur10_online_payload.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text())["trajectory"]
    offset = np.array([0, -np.pi / 2, 0, -np.pi / 2, 0, 0])
    return Fourier(offset, np.array(data["a"]), np.array(data["b"]), 0.1)


def _printed() -> Iterator[Row]:
    from taufit.dynamics.base_parameters import base_parameters
    from taufit.excitation import FourierBasis, design, limits_of_motion
    from taufit.excitation.criteria import condition_number
    from taufit.excitation.objective import MotionInformation
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Linear

    motion = printed_motion()
    if motion is None:
        return
    robot = read_robot("ur10")
    model = TorqueModel(robot, Linear(), rotor_inertia=False)
    columns = np.asarray(base_parameters(model, rule="leftmost").columns)
    information = MotionInformation(model, columns, np.ones(6))
    moments = (np.arange(2000) + 0.5) / 200
    theirs, _ = information.matrix(*motion.at(moments))
    yield Row("UR10 printed motion of paper U: condition number", condition_number(theirs))
    limits = limits_of_motion(motion)
    results = [
        design(robot, criterion="cond", limits=limits, seconds=5.0, seed=seed) for seed in range(3)
    ]
    yield Row(
        "UR10 same envelope: condition number, worst of 3 seeds",
        max(r.condition_number for r in results),
        "",
        "<= 73",
        f"{max(r.cpu_seconds for r in results):.1f} CPU s at most",
    )
    # Noise as paper U's Table II, per joint: the standard deviations a 10 s motion leaves.
    noise = np.array([3.7817, 4.1789, 3.0339, 1.7334, 1.067, 0.9896])
    weighted = MotionInformation(model, columns, 1 / noise)
    before = np.sqrt(np.diag(np.linalg.inv(weighted.matrix(*motion.at(moments))[0])))
    ours = design(
        robot,
        criterion="d",
        basis=FourierBasis(8, 0.1),
        limits=limits,
        weights=1 / noise,
        seconds=10.0,
    )
    after = np.sqrt(np.diag(np.linalg.inv(weighted.matrix(*ours.motion.at(moments))[0])))
    yield Row(
        "median standard deviation, printed / designed",
        float(np.median(before / after)),
        "x",
        ">= 1.5",
        "criterion d, 8 harmonics, 10 CPU s; same envelope, same 10 s, noise of Table II",
    )


def _conditions() -> Iterator[Row]:
    from taufit.excitation import FourierBasis, design
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Polynomial

    ur10, panda = read_robot("ur10"), read_robot("panda")
    five = TorqueModel(panda, Polynomial(), rotor_inertia=False)
    cases = (
        ("UR10 full range, p = 54: cond", ur10, None, 0.1, "cond", 3.0, "< 45"),
        ("Panda linear friction, p = 64: cond", panda, None, 0.05, "cond", 3.0, "< 40"),
        (
            "Panda five friction columns, p = 78: scaled",
            panda,
            five,
            0.05,
            "cond_scaled",
            6.0,
            "< 65",
        ),
    )
    for name, robot, model, frequency, criterion, seconds, target in cases:
        results = [
            design(
                robot,
                model=model,
                criterion=criterion,
                basis=FourierBasis(5, frequency),
                limits=_free(robot),
                seconds=seconds,
                seed=seed,
            )
            for seed in range(3)
        ]
        figure = [
            r.condition_number_scaled if criterion == "cond_scaled" else r.condition_number
            for r in results
        ]
        spent = max(r.cpu_seconds for r in results)
        yield Row(name, max(figure), "", target, f"worst of 3 seeds, {spent:.1f} CPU s at most")


def _finite_differences() -> Iterator[Row]:
    """Time to cond < 50 against SLSQP with finite differences through a Pinocchio loop."""
    try:
        import pinocchio as pin
    except ImportError:
        return
    from scipy.optimize import minimize

    from taufit.dynamics.base_parameters import base_parameters
    from taufit.excitation import FourierBasis, design
    from taufit.export import to_urdf
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Linear

    robot = read_robot("ur10")
    model = TorqueModel(robot, Linear(), rotor_inertia=False)
    limits = _free(robot)
    columns = np.asarray(base_parameters(model, rule="leftmost").columns)
    other = pin.buildModelFromXML(
        to_urdf(model.with_values(np.r_[robot.parameters, np.zeros(18)]))[0]
    )
    data = other.createData()
    basis = FourierBasis(5, 0.1)
    grid = basis.matrices((np.arange(100) + 0.5) / 10)
    bound = basis.matrices(np.linspace(0, 10, 50))
    size = basis.size
    full = np.r_[limits.upper, limits.velocity, limits.acceleration]
    best = [np.inf]

    def value(x):
        moved = np.einsum("dnm,jm->dnj", grid[:3], x.reshape(6, size))
        blocks = []
        for q, v, a in zip(*moved, strict=True):
            links = pin.computeJointTorqueRegressor(other, data, q, v, a)
            signs = np.diag(np.tanh(v / 0.05))
            rest = np.stack([signs, np.diag(v)], -1).reshape(6, 12)
            blocks.append(np.hstack([links, rest, np.eye(6)])[:, columns])
        values = np.linalg.svd(np.vstack(blocks), compute_uv=False)
        cond = values[0] / values[-1]
        if np.all(room(x) > -1e-6):
            best[0] = min(best[0], cond)
        if best[0] < 50 or time.process_time() - began > 60:
            raise StopIteration
        return np.log(cond)

    def room(x):
        moved = np.einsum("dnm,jm->dnj", bound[:3], x.reshape(6, size))
        return (1 - np.abs(np.concatenate(list(moved), 1)) / full).ravel()

    ratios = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        start = rng.normal(size=6 * size) * 0.3
        best[0] = np.inf
        began = time.process_time()
        with suppress(StopIteration):
            minimize(
                value,
                start,
                method="SLSQP",
                constraints={"type": "ineq", "fun": room},
                options={"maxiter": 500},
            )
        theirs = time.process_time() - began
        began = time.process_time()
        design(robot, criterion="cond", limits=limits, seconds=10.0, seed=seed, target=48.0)
        ratios.append(theirs / (time.process_time() - began))
    yield Row(
        "UR10, time to cond < 50: SLSQP + differences + Pinocchio / ours",
        float(np.median(ratios)),
        "x",
        ">= 10",
        f"2 seeds: {', '.join(f'{r:.0f}' for r in ratios)}; ours with set-up and certificate",
    )


def _criteria() -> Iterator[Row]:
    """Paper F's criteria side by side: its ranking, and ours beside it."""
    from taufit.excitation import FourierBasis, design
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Polynomial

    panda = read_robot("panda")
    model = TorqueModel(panda, Polynomial(), rotor_inertia=False)
    for criterion in ("product", "three_stage", "cond", "d", "a"):
        results = [
            design(
                panda,
                model=model,
                criterion=criterion,
                basis=FourierBasis(5, 0.05),
                limits=_free(panda),
                seconds=3.0,
                seed=seed,
            )
            for seed in range(3)
        ]
        half = [_time_to(r) for r in results]
        yield Row(
            f"Panda p = 78, criterion {criterion}: cond (mean of 3)",
            float(np.mean([r.condition_number for r in results])),
            "",
            "",
            f"ln det {np.mean([r.log_det for r in results]):.0f}, "
            f"99 % of its gain after {np.mean(half):.2f} CPU s",
        )


def _time_to(result) -> float:
    """When 99 % of the first descent's improvement had been reached."""
    times, values = zip(*result.history, strict=True)
    goal = values[-1] + 0.01 * abs(values[0] - values[-1])
    return next(t for t, v in zip(times, values, strict=True) if v <= goal)


def _mounting() -> Iterator[Row]:
    """The same ground motion seen from other mountings, and the symmetry that explains it."""
    from taufit.dynamics.base_parameters import base_parameters
    from taufit.excitation import Fourier, design
    from taufit.excitation.criteria import condition_number
    from taufit.excitation.objective import MotionInformation
    from taufit.model.torque_model import TorqueModel
    from taufit.robot import read_robot
    from taufit.terms.friction import Linear

    ground = read_robot("ur5")
    moments = (np.arange(2000) + 0.5) / 200
    result = design(ground, criterion="cond", limits=_free(ground), seconds=3.0)

    def cond(robot, motion):
        model = TorqueModel(robot, Linear(), rotor_inertia=False, offset=False)
        columns = np.asarray(base_parameters(model, rule="leftmost").columns)
        matrix, _ = MotionInformation(model, columns, np.ones(6)).matrix(*motion.at(moments))
        return condition_number(matrix)

    for name in ("ground", "ceiling", "wall"):
        yield Row(
            f"UR5, one motion designed on the ground, {name}: cond",
            cond(ground.with_mounting(name), result.motion),
        )
    m = result.motion
    flip = np.array([-1.0, 1, 1, 1, 1, 1])
    mirrored = Fourier(
        flip * m.offset + np.array([0, np.pi, 0, 0, 0, 0]),
        flip[:, None] * m.sine,
        flip[:, None] * m.cosine,
        m.frequency_hz,
        m.form,
    )
    ratio = cond(ground.with_mounting("ceiling"), mirrored) / cond(ground, m)
    yield Row(
        "UR5, ceiling with (-q1, q2 + pi): cond over the ground's",
        ratio,
        "x",
        "<= 1.0000001",
        "the symmetry of arms whose first axes meet at right angles",
    )


def _cell() -> Iterator[Row]:
    """20 designs between a table and a wall, distances by MuJoCo on 2000 points."""
    try:
        import mujoco
    except ImportError:
        return
    from taufit.dynamics import forward_kinematics
    from taufit.excitation import Plane, design, mounting_plane, scene_for
    from taufit.robot import read_robot

    contacts, least = 0, np.inf
    for seed in range(20):
        robot = read_robot(("ur3", "ur5", "ur10", "kr5")[seed % 4])
        wall = Plane("wall", np.array([1.0, 0.0, 0.0]), -0.5)
        scene = scene_for(robot, planes=(mounting_plane(robot), wall), clearance=0.02)
        motion = design(robot, scene=scene, seconds=1.0, seed=seed).motion
        spec = mujoco.MjSpec()
        for i, capsule in enumerate(scene.capsules):
            body = spec.worldbody.add_body(name=f"b{i}", mocap=True)
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                fromto=[*capsule.start, *capsule.end],
                size=[capsule.radius, 0, 0],
            )
        boxes = (([-10.5, 0, 0], [10, 20, 20]), ([0, 0, -10], [20, 20, 10]))
        for centre, half in boxes:
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=centre, size=half)
        model = spec.compile()
        data = mujoco.MjData(model)
        moving = [i for i, c in enumerate(scene.capsules) if c.link > 0]
        first = [i for i, c in enumerate(scene.capsules) if c.link == 0]
        # World geoms come first in MuJoCo's order: the wall is 0, the table 1.
        pairs = [(a + 2, b + 2) for a, b in scene.pairs]
        pairs += [(box, i + 2) for i in moving for box in (0, 1)] + [(0, i + 2) for i in first]
        q, _, _ = motion.at(np.linspace(0, motion.duration, 2000))
        poses = forward_kinematics(robot, q)
        poses[:, -1] = np.eye(4)
        for pose in poses:
            for i, capsule in enumerate(scene.capsules):
                data.mocap_pos[i] = pose[capsule.link][:3, 3]
                quat = np.zeros(4)
                mujoco.mju_mat2Quat(quat, pose[capsule.link][:3, :3].ravel())
                data.mocap_quat[i] = quat
            mujoco.mj_kinematics(model, data)
            gap = min(mujoco.mj_geomDistance(model, data, a, b, 0.5, None) for a, b in pairs)
            contacts += gap <= 0
            least = min(least, gap)
    yield Row(
        "contacts in 20 designs between a table and a wall, 2000 points",
        contacts,
        "",
        "== 0",
        f"distances by MuJoCo; least {1000 * least:.0f} mm, 20 mm asked for",
    )


def _seeds() -> Iterator[Row]:
    from taufit.core.errors import TaufitError
    from taufit.excitation import default_limits, design, mounting_plane, scene_for
    from taufit.robot import read_robot

    for arm in ("ur3", "ur5", "ur10", "kr5", "panda"):
        robot = read_robot(arm)
        limits = default_limits(robot)
        scene = scene_for(robot, planes=(mounting_plane(robot),))
        good = 0
        for seed in range(100):
            try:
                motion = design(robot, scene=scene, seconds=0.15, seed=seed).motion
            except TaufitError:
                continue
            q, v, a = motion.at(np.linspace(0, motion.duration, 5000))
            good += bool(
                np.all((q >= limits.lower - 1e-9) & (q <= limits.upper + 1e-9))
                and np.all(np.abs(v) <= limits.velocity + 1e-9)
                and np.all(np.abs(a) <= limits.acceleration + 1e-9)
            )
        yield Row(
            f"{arm}: feasible of 100 seeds on 5000 points",
            good,
            "",
            "== 100",
            "with table and self-collision, 0.15 CPU s of search each",
        )
