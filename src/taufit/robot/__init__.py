"""Robot descriptions. In: a URDF, a DH table, screw axes or a bundled name. Out: a `Robot`.

Not here: kinematics and dynamics (dynamics).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.robot.checks import description_warnings as description_warnings
    from taufit.robot.compensator import Compensator as Compensator
    from taufit.robot.from_dh import from_dh as from_dh
    from taufit.robot.from_screws import from_screws as from_screws
    from taufit.robot.from_urdf import from_urdf as from_urdf
    from taufit.robot.from_yaml import from_yaml as from_yaml
    from taufit.robot.inertia import pseudo_inertia as pseudo_inertia
    from taufit.robot.read import (
        bundled_robots as bundled_robots,
        read_robot as read_robot,
        write_robot as write_robot,
    )
    from taufit.robot.robot import (
        Drives as Drives,
        JointLimits as JointLimits,
        Link as Link,
        Robot as Robot,
    )
    from taufit.robot.to_yaml import to_yaml as to_yaml
    from taufit.robot.tree import Tip as Tip, TreeRobot as TreeRobot, build_tree as build_tree

lazy_package(__name__)
