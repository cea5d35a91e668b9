"""Contact force estimation from a change of external joint torque, under a stated assumption.

A pure force f at a point of link k gives tau = J' f with J the linear Jacobian of the point, and
zero at joints behind k. Given the change d with covariance V,

    f = (J V^-1 J' + 1/sigma^2)^-1 J V^-1 d,

with its covariance. The point of contact is not measured: the tool and the far end of each link are
compared by likelihood, and the best is reported. Unobservable directions are reported.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import engine
from taufit.robot import Robot

# Lever arms shorter than this do not load a joint [m].
_MIN_LEVER = 0.01
# Cosine of the largest angle to a base axis for which a direction is named after it.
_AXIS_COSINE = np.cos(np.radians(15.0))
# Prior log odds of the tool against other points.
_TOOL_LOG_ODDS = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Force:
    """Contact force in base axes.

    Attributes:
        value: Force [N].
        covariance: Covariance [N^2].
        link: Link it acts on, 1 for the first.
        point: Assumed point of contact, in base axes [m].
        assumption: Description of the assumption.
        unobservable: Unit vectors of unobservable directions.
        misfit: Chi-square of the residual under the assumption.
        vertical_misfit: Increase of chi-square for a vertical force.
    """

    value: Float[Array, " 3"]
    covariance: Float[Array, "3 3"]
    link: int
    point: Float[Array, " 3"]
    assumption: str
    unobservable: tuple[tuple[float, float, float], ...]
    misfit: float
    vertical_misfit: float

    @property
    def interval(self) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """95 % interval of each component [N]."""
        half = NORMAL_95 * np.sqrt(np.diag(self.covariance))
        return self.value - half, self.value + half

    @property
    def size(self) -> float:
        """Magnitude [N]."""
        return float(np.linalg.norm(self.value))

    @property
    def size_interval(self) -> tuple[float, float]:
        """95 % interval of the magnitude [N]."""
        if self.size > 0.0:
            along = self.value / self.size
            variance = float(along @ self.covariance @ along)
        else:
            variance = float(np.linalg.eigvalsh(self.covariance)[-1])
        half = NORMAL_95 * float(np.sqrt(max(variance, 0.0)))
        return max(self.size - half, 0.0), self.size + half


def link_points(robot: Robot, poses: Float[Array, "k 4 4"], tool: Array) -> Float[Array, "j 3"]:
    """Far end of every link: origin of the next joint, and the tool on the last one."""
    ends = poses[1:, :3, 3].copy()
    ends[-1] = poses[-1, :3, 3] + poses[-1, :3, :3] @ np.asarray(tool, float)
    return ends[: robot.joints]


def point_jacobian(
    robot: Robot, poses: Float[Array, "k 4 4"], link: int, point: Float[Array, " 3"]
) -> Float[Array, "3 j"]:
    """Linear Jacobian of a point of a link (0 for the first), in base axes."""
    out = np.zeros((3, robot.joints))
    out[:, : link + 1] = _levers(robot, poses, np.asarray(point, float)[None])[0][:, : link + 1]
    return out


def _levers(
    robot: Robot, poses: Float[Array, "k 4 4"], points: Float[Array, "n 3"]
) -> Float[Array, "n 3 j"]:
    """Linear Jacobians of points that move with all joints, in base axes."""
    robot.require_serial("a force at a link")
    joints, screws = robot.joints, robot.screws
    rotation, origin = poses[:joints, :3, :3], poses[:joints, :3, 3]
    rotation_axis = (rotation @ screws[:, :3, None])[..., 0]
    translation_axis = (rotation @ screws[:, 3:, None])[..., 0]
    x, y, z = np.moveaxis(points[:, None] - origin, -1, 0)
    a, b, c = rotation_axis.T
    return np.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=1) + translation_axis.T


def find_force(
    robot: Robot,
    position: Float[Array, " j"],
    change: Float[Array, " j"],
    variance: Float[Array, " j"] | Float[Array, "j j"],
    *,
    tool: tuple[float, float, float] = (0.0, 0.0, 0.0),
    force_std: float = 60.0,
    unobservable_std: float = 100.0,
) -> Force:
    """Estimate the force that best explains a torque change, at the tool or the end of a link.

    Args:
        robot: Robot.
        position: Joint positions.
        change: Change of external joint torque [N m].
        variance: Variance or covariance of `change` [(N m)^2].
        tool: Point of the tool in the tip frame [m].
        force_std: Prior standard deviation of each component [N].
        unobservable_std: Standard deviation above which a direction is unobservable [N].
    """
    poses = engine(robot).forward_kinematics(np.asarray(position, float)[None])[0]
    ends = link_points(robot, poses, np.asarray(tool, float))
    change = np.asarray(change, float)
    variance = np.asarray(variance, float)
    covariance = np.diag(variance) if variance.ndim == 1 else variance
    # A link moves with the joints before it.
    levers = _levers(robot, poses, ends) * np.tri(robot.joints)[:, None]
    log_likelihood = _likelihood(levers, change, covariance, force_std)
    log_likelihood[-1] += _TOOL_LOG_ODDS
    # A force on an axis that all joints share loads none: it explains no change.
    log_likelihood[np.abs(levers).max(axis=(1, 2)) < _MIN_LEVER] = -np.inf
    best = int(log_likelihood.argmax())
    last = best == robot.joints - 1
    place = "at the tool" if last else f"at the far end of link {best + 1}"
    jacobian = levers[best]
    weighted = np.linalg.solve(covariance, jacobian.T).T
    information = weighted @ jacobian.T
    force_covariance = np.linalg.inv(information + np.eye(3) / force_std**2)
    value = force_covariance @ weighted @ change

    def misfit(force: Array) -> float:
        residual = change - jacobian.T @ force
        return float(residual @ np.linalg.solve(covariance, residual))

    gravity_direction = np.asarray(robot.gravity, float)
    gravity_direction = gravity_direction / max(float(np.linalg.norm(gravity_direction)), 1e-12)
    vertical_force = float(gravity_direction @ weighted @ change) / max(
        float(gravity_direction @ information @ gravity_direction), 1e-12
    )
    eigenvalues, axes = np.linalg.eigh(information)
    unobservable = tuple(
        (float(axis[0]), float(axis[1]), float(axis[2]))
        for eigenvalue, axis in zip(eigenvalues, axes.T, strict=True)
        if eigenvalue < unobservable_std**-2
    )
    return Force(
        value,
        force_covariance,
        best + 1,
        ends[best],
        f"a pure force {place}",
        unobservable,
        misfit(value),
        misfit(vertical_force * gravity_direction) - misfit(value),
    )


def _likelihood(
    levers: Float[Array, "n 3 j"],
    change: Float[Array, " j"],
    covariance: Float[Array, "j j"],
    force_std: float,
) -> Float[Array, " n"]:
    """ln p(change) for a force with this prior at each point."""
    total_covariance = covariance + force_std**2 * np.swapaxes(levers, 1, 2) @ levers
    _, log_determinant = np.linalg.slogdet(total_covariance)
    weighted = np.linalg.solve(
        total_covariance, np.broadcast_to(change[:, None], (len(levers), len(change), 1))
    )
    out: Array = -0.5 * (weighted[..., 0] @ change + log_determinant)
    return out


def candidate_links(
    robot: Robot, position: Float[Array, " j"], joint_evidence: Float[Array, " j"]
) -> tuple[int, tuple[int, ...]]:
    """Last loaded joint, and candidate links of the contact, 1 for the first.

    Links behind the last loaded joint are candidates if the force passes through their axes, as at
    the centre of a flange.

    Args:
        robot: Robot.
        position: Joint positions.
        joint_evidence: Evidence of a change at each joint.
    """
    robot.require_serial("the place of a contact")
    cumulative = np.cumsum(joint_evidence)
    last = int(cumulative.argmax())
    links = [k + 1 for k in range(last, robot.joints) if cumulative[k] > cumulative[last] - 6.0]
    poses = engine(robot).forward_kinematics(np.asarray(position, float)[None])[0]
    tip = poses[-1, :3, 3]
    levers = np.linalg.norm(_levers(robot, poses, tip[None])[0], axis=0)
    for k in range(last + 1, robot.joints):
        if levers[k] < _MIN_LEVER and k in links and k + 1 not in links:
            links.append(k + 1)
    return last + 1, tuple(sorted(links))


def direction_names(directions: tuple[tuple[float, float, float], ...]) -> tuple[str, ...]:
    """Names of directions: the closest base axis, or the components."""
    out = []
    for axis in directions:
        k = int(np.argmax(np.abs(axis)))
        if abs(axis[k]) >= _AXIS_COSINE:
            out.append("xyz"[k])
        else:
            out.append(f"({axis[0]:.2f}, {axis[1]:.2f}, {axis[2]:.2f})")
    return tuple(out)
