"""Excitation trajectories. In: a `Robot`, limits, a criterion. Out: a `Motion`.

Left to others: playing it (live, sim) and fitting its recording (estimation).
"""

from taufit.core.names import renamed_names
from taufit.excitation.basis import FourierBasis, SplineBasis
from taufit.excitation.criteria import CRITERIA
from taufit.excitation.design import Design, default_limits, design
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.motion_file import MOTIONS, read_motion, write_motion
from taufit.excitation.motion_kinds import limits_of_motion, warm_up
from taufit.excitation.payload_inertia import InertiaGoal, InertiaPlan
from taufit.excitation.plan import KINDS, Plan, SearchEffort, plan
from taufit.excitation.robot_programs import to_csv, to_joint_trajectory, to_urscript
from taufit.excitation.sampled_motion import SampledMotion
from taufit.excitation.scene import Capsule, Plane, Scene, mounting_plane, scene_for
from taufit.excitation.spline import Spline
from taufit.excitation.stroke_motion import LineStrokes, Strokes
from taufit.excitation.strokes import FrictionTest, SpeedPlan, friction_strokes, friction_test

__all__ = [
    "CRITERIA",
    "KINDS",
    "MOTIONS",
    "Capsule",
    "Design",
    "Fourier",
    "FourierBasis",
    "FrictionTest",
    "InertiaGoal",
    "InertiaPlan",
    "LineStrokes",
    "Motion",
    "Plan",
    "Plane",
    "SampledMotion",
    "Scene",
    "SearchEffort",
    "SpeedPlan",
    "Spline",
    "SplineBasis",
    "Strokes",
    "default_limits",
    "design",
    "friction_strokes",
    "friction_test",
    "limits_of_motion",
    "mounting_plane",
    "plan",
    "read_motion",
    "scene_for",
    "to_csv",
    "to_joint_trajectory",
    "to_urscript",
    "warm_up",
    "write_motion",
]

# Former names of 0.1, accepted with a warning until 0.3.
__getattr__ = renamed_names(__name__, Effort="SearchEffort", Sampled="SampledMotion")
