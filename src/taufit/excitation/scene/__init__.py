"""Collision scene. In: a `Robot`, planes, a clearance. Out: a `Scene`, distances.

Left to others: the search that avoids collisions and the certificate that checks them.
"""

from taufit.excitation.scene.capsule import Capsule
from taufit.excitation.scene.clearances import Clearances, closest_parameters
from taufit.excitation.scene.free_pose import find_free_pose
from taufit.excitation.scene.link_bodies import arm_length, fit_capsules
from taufit.excitation.scene.scene import Plane, Scene, collision_pairs, mounting_plane, scene_for

__all__ = [
    "Capsule",
    "Clearances",
    "Plane",
    "Scene",
    "arm_length",
    "closest_parameters",
    "collision_pairs",
    "find_free_pose",
    "fit_capsules",
    "mounting_plane",
    "scene_for",
]
