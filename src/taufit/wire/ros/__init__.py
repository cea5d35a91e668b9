"""ROS 2 topics. In: a topic's name. Out: joint states as they come; joint trajectories sent.

Left to others: nodes, services, parameters.
"""

from taufit.wire.ros.joint_states import Ros2JointStates
from taufit.wire.ros.middleware import JointState, Trajectory, robot_description
from taufit.wire.ros.player import Ros2Player

__all__ = ["JointState", "Ros2JointStates", "Ros2Player", "Trajectory", "robot_description"]
