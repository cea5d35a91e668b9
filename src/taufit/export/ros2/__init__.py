"""ROS 2 package of a fitted model: feed-forward controller and inverse-dynamics plug-ins.

In: a `FittedModel`. Out: a folder for the `src` directory of a colcon workspace, with the exported
C inside. Left to others: the C itself (export/c).
"""

from taufit.export.ros2.write import write_ros2

__all__ = ["write_ros2"]
