"""Trees in simulation: two UR5e on a torso of two joints, and a palletiser with parallelograms.

Friction, ripple and noise are those of `Twin.typical`. Loads are on both tips at once, drawn anew
for every run. No setting was chosen on these runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import ROOT

TRAINING, HOLDOUT, LOADED = (1, 2, 3), 4, range(50, 80)
# Rotor inertia of the joints of a UR5e of this size [kg m^2]; the bundled robot has none.
ROTORS = (0.5, 0.5, 0.4, 0.1, 0.1, 0.1)


def dual_arm():
    """Two UR5e, left and right of a torso that turns and tilts."""
    from taufit.robot import Drives, JointLimits, Link, Robot, Tip, build_tree, read_robot
    from taufit.robot.inertia import from_centre_of_mass

    def placed(x: float, y: float, z: float) -> np.ndarray:
        pose = np.eye(4)
        pose[:3, 3] = x, y, z
        return pose

    arm = read_robot("ur5e")
    links, parents = [], [-1, 0]
    for name, height, axis, mass in (("turn", 0.3, 2, 20.0), ("tilt", 0.4, 1, 15.0)):
        body = from_centre_of_mass(mass, np.array([0.0, 0.0, 0.15]), mass * 0.05 * np.eye(3))
        links.append(Link(f"torso_{name}", name, placed(0, 0, height), np.eye(6)[axis], body, 0.5))
    for side, y in (("left", 0.2), ("right", -0.2)):
        for i, link in enumerate(arm.links):
            placement = link.placement if i else placed(0.0, y, 0.45) @ link.placement
            names = {"name": f"{side}_{link.name}", "joint": f"{side}_{link.joint}"}
            links.append(replace(link, placement=placement, rotor_inertia=ROTORS[i], **names))
            parents.append(len(links) - 2 if i else 1)
    first = {"lower": (-2, -1), "upper": (2, 1), "velocity": (1.5, 1.5), "torque": (2000, 2000)}
    limits = {
        name: np.r_[two, np.tile(getattr(arm.limits, name), 2)] for name, two in first.items()
    }
    robot = Robot(
        "two UR5e",
        tuple(links),
        JointLimits(acceleration=np.full(14, np.inf), **limits),
        Drives.direct_drive(14),
    )
    tips = [Tip("left", 7, arm.tip), Tip("right", 13, arm.tip)]
    names = [link.joint for link in links]
    return build_tree(robot, parents, np.eye(14), np.zeros(14), names, tips)


def rows() -> Iterator[Row]:
    from taufit.robot import read_robot
    from taufit.sim import Twin, random_fourier
    from taufit.workflow import identify

    models = {}
    palletiser = read_robot(ROOT / "examples" / "arms" / "palletiser.yaml")
    for name, robot in (("palletiser", palletiser), ("two UR5e on a torso", dual_arm())):
        twin = Twin.typical(robot)
        *training, holdout = (
            twin.run(random_fourier(robot, seed=seed), seed=seed).recording
            for seed in (*TRAINING, HOLDOUT)
        )
        done = identify(robot, training, holdout=[holdout])
        models[name] = done.model
        note = f"{len(TRAINING)} training runs, one unseen, 10 Hz"
        yield Row(f"{name}: nrmse unseen", done.mean_holdout_nrmse, "", "", note)
    yield from _loads(dual_arm(), models["two UR5e on a torso"])


def _loads(robot, model) -> Iterator[Row]:
    from taufit.payload import identify_payload
    from taufit.robot.inertia import from_centre_of_mass
    from taufit.sim import Twin, random_fourier

    errors, inside = [], []
    for seed in LOADED:
        rng, links, masses = np.random.default_rng(seed), robot.parameters.copy(), {}
        for tip in robot.tips:
            mass = masses[tip.name] = rng.uniform(1.0, 4.0)
            centre = rng.uniform(-0.05, 0.05, 3) + [0.0, 0.0, 0.08]
            load = from_centre_of_mass(mass, centre, 1e-3 * mass * np.eye(3))
            links[10 * tip.link : 10 * tip.link + 10] += load
        twin = Twin.typical(robot.with_parameters(links))
        loaded = twin.run(random_fourier(robot, seed=seed), seed=seed).recording
        for name, mass in masses.items():
            estimate = identify_payload(model.with_tip(name), loaded).estimate
            errors.append(abs(estimate.mass - mass) / mass)
            inside.append(abs(estimate.mass - mass) <= 1.96 * estimate.mass_std)
    note = f"{len(errors)} loads of 1 to 4 kg, two at once"
    yield Row("load of one of two tips: worst error", 100 * max(errors), "%", "<= 2", note)
    yield Row("load of one of two tips: inside 95 % interval", 100 * np.mean(inside), "%", "", note)
