"""Trees and bound joints: a parallelogram palletiser, and two arms on one torso that both carry."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import taufit
from taufit.dynamics import link_poses
from taufit.robot import Drives, JointLimits, Link, Robot, Tip, build_tree
from taufit.robot.inertia import from_centre_of_mass
from taufit.sim import Twin, random_fourier

# A palletiser: four motors, nine links. Its parallelograms close wherever it stands.
palletiser = taufit.read_robot(Path(__file__).parent / "arms" / "palletiser.yaml")
poses = link_poses(palletiser, np.random.default_rng(0).uniform(-0.5, 1.0, (100, 4)))
rod, forearm = (palletiser.link_names.index(name) for name in ("rod", "forearm"))
gap = poses[:, rod] @ [0, 0, 0.9, 1] - poses[:, forearm] @ [-0.25, 0, 0, 1]
print(
    f"{palletiser}, {palletiser.bodies} links; the rod misses the forearm by {abs(gap).max():.0e} m"
)
twin = Twin.typical(palletiser)
runs = [twin.run(random_fourier(palletiser, seed=seed)).recording for seed in (1, 2, 3)]
done = taufit.identify(palletiser, runs[:2], holdout=runs[2:])
print(f"palletiser: {100 * done.mean_holdout_nrmse:.1f} % of unseen torque unexplained")

# A torso with two arms: the first three joints of a UR5e, left and right.
arm, links, parents = taufit.read_robot("ur5e"), [], [-1]
torso = from_centre_of_mass(20.0, np.array([0.0, 0.0, 0.2]), np.diag([1.0, 1.0, 0.5]))
axis = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
links.append(Link("torso", "waist", np.eye(4), axis, torso, 0.5))
for side, y in (("left", 0.2), ("right", -0.2)):
    shoulder = np.eye(4)
    shoulder[:3, 3] = 0.0, y, 0.4
    for i, link in enumerate(arm.links[:3]):
        placement = shoulder @ link.placement if i == 0 else link.placement
        names = {"name": f"{side}_{link.name}", "joint": f"{side}_{link.joint}"}
        links.append(replace(link, placement=placement, rotor_inertia=0.3, **names))
        parents.append(0 if i == 0 else len(links) - 2)
limits = {
    name: np.r_[first, np.tile(getattr(arm.limits, name)[:3], 2)]
    for name, first in (("lower", -2), ("upper", 2), ("velocity", 1.5), ("torque", 500))
}
limits["acceleration"] = np.full(7, np.inf)
robot = Robot("two arms", tuple(links), JointLimits(**limits), Drives.direct_drive(7))
hands = [Tip(side, link, np.eye(4)) for side, link in (("left", 3), ("right", 6))]
two_arms = build_tree(robot, parents, np.eye(7), np.zeros(7), [link.joint for link in links], hands)
free = [
    Twin.typical(two_arms).run(random_fourier(two_arms, seed=seed)).recording for seed in (1, 2)
]
model = taufit.identify(two_arms, free).model

# Both hands carry: each load is weighed by the joints that move its hand alone.
loads = {"left": 1.5, "right": 3.0}
values = two_arms.parameters.copy()
for hand in hands:
    body = from_centre_of_mass(loads[hand.name], np.array([0.3, 0.0, 0.1]), 0.01 * np.eye(3))
    values[10 * hand.link : 10 * hand.link + 10] += body
carrying = Twin.typical(two_arms.with_parameters(values))
loaded = carrying.run(random_fourier(two_arms, seed=9)).recording
for name, mass in loads.items():
    estimate = taufit.identify_payload(model.with_tip(name), loaded).estimate
    print(f"{name}: {estimate.mass:.2f} kg +- {1.96 * estimate.mass_std:.2f} of {mass} kg")
