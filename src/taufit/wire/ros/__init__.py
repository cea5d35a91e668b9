"""ROS 2 topics. In: a topic name. Out: received joint states; joint trajectories sent.

Not here: nodes, services, parameters.
"""

from taufit.wire.ros.joint_states import Ros2JointStates
from taufit.wire.ros.middleware import JointState, Trajectory, robot_description
from taufit.wire.ros.player import Ros2Player

__all__ = ["JointState", "Ros2JointStates", "Ros2Player", "Trajectory", "robot_description"]
