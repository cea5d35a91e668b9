"""Robot: a chain of links, each moved by one screw, with mounting and drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RobotError
from taufit.core.names import clean_name, printable
from taufit.core.notebook_display import NotebookDisplay
from taufit.core.parameters import PER_LINK, LinkLayout
from taufit.robot.mounting import MOUNTINGS, gravity_in_base

if TYPE_CHECKING:
    from taufit.robot.compensator import Compensator


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """Moving link and the joint that moves it.

    The pose of this link's frame in the previous link's frame is M exp([S] q).

    Attributes:
        name: Name of the link.
        joint: Name of the joint that moves it.
        placement: Homogeneous matrix M, the pose at q = 0.
        screw: Screw S = (omega; v), constant in this link's frame. omega is a unit vector for a
            revolute joint; it is zero and v a unit vector for a prismatic one.
        parameters: Nominal m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in this link's frame; zeros
            if unknown.
        rotor_inertia: Rotor inertia reflected to the joint [kg m^2 or kg].
    """

    name: str
    joint: str
    placement: Float[Array, "4 4"]
    screw: Float[Array, " 6"]
    parameters: Float[Array, " 10"] = field(default_factory=lambda: np.zeros(PER_LINK))
    rotor_inertia: float = 0.0

    def __post_init__(self) -> None:
        for kind, name in (("link", self.name), ("joint", self.joint)):
            if name != clean_name(name):
                raise RobotError(
                    f"the name of {kind} {printable(name[:60])!r} has control characters or more "
                    "than 200 letters: rename it."
                )

    @property
    def is_prismatic(self) -> bool:
        return not np.any(self.screw[:3])


@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """Joint limits in SI units; infinite if unknown."""

    lower: Float[Array, " j"]
    upper: Float[Array, " j"]
    velocity: Float[Array, " j"]
    acceleration: Float[Array, " j"]
    torque: Float[Array, " j"]

    @classmethod
    def unlimited(cls, joints: int) -> JointLimits:
        inf = np.full(joints, np.inf)
        return cls(-inf, inf, inf, inf, inf)


@dataclass(frozen=True, slots=True, eq=False)
class Drives:
    """Drives: relation of the recorded signal to joint torque.

    Attributes:
        gain: Joint torque per unit of the recorded signal [N m/A, or 1 for torque].
        gain_std: Standard deviation of `gain`; zero if exact.
        gear_ratio: Motor turns per joint turn (sign included).
        torque_constant: Motor torque per ampere [N m/A]; nan if unknown.
        side: "motor" if the signal is taken before the gear (current, motor torque) and contains
            the drive's friction, "link" after it (joint torque sensor).
        coupling: Matrix C with motor positions, referred to the joints, q_m = C q; joint torque is
            tau = C' tau_m. Identity for one motor per joint.
        friction_places: Matrix R of further places of friction, at most one per joint, that move by
            R q; rows of zeros where a joint has none. None without such places.
    """

    gain: Float[Array, " j"]
    gain_std: Float[Array, " j"]
    gear_ratio: Float[Array, " j"]
    torque_constant: Float[Array, " j"]
    side: str
    coupling: Float[Array, "j j"]
    friction_places: Float[Array, "j j"] | None = None

    @property
    def place_rows(self) -> tuple[tuple[float, ...], ...]:
        """Rows of `friction_places`; empty without."""
        matrix = self.friction_places
        return () if matrix is None else tuple(tuple(row) for row in matrix.tolist())

    @classmethod
    def direct_drive(cls, joints: int, side: str = "motor") -> Drives:
        """Drives with torque recorded at the joint, one motor per joint."""
        ones = np.ones(joints)
        return cls(ones, 0 * ones, ones, np.full(joints, np.nan), side, np.eye(joints))


@dataclass(frozen=True, slots=True, eq=False)
class Robot(NotebookDisplay):
    """Serial robot.

    Attributes:
        name: Name of the robot.
        links: Links from the base to the tip, one joint each.
        limits: Joint limits.
        drives: Drives of the joints.
        mounting: Roll, pitch, yaw of the base [rad].
        tip: Flange pose in the last link's frame.
        lengths: Named lengths of the description, for expressions.
        length_slopes: Derivatives of each link's placement (3 coordinates) and screw (6) by each
            length; empty without named lengths.
        source: Origin of the values.
        urdf: Text of the URDF it was read from, if any; exports edit it.
        joint_zeros: Joint zero offsets added to recorded positions [rad or m], contained in the
            placements. Empty if none.
        compensators: Gravity compensators, at most one per joint.

    Example:
        >>> import taufit
        >>> robot = taufit.read_robot("ur3e")
        >>> robot, robot.joint_names[0], robot.gravity.round(2).tolist()
        (Robot(ur3e: 6 joints), 'shoulder_pan_joint', [0.0, 0.0, -9.81])
        >>> robot.with_mounting("ceiling").gravity.round(2).tolist()
        [0.0, 0.0, 9.81]
    """

    name: str
    links: tuple[Link, ...]
    limits: JointLimits
    drives: Drives
    mounting: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tip: Float[Array, "4 4"] = field(default_factory=lambda: np.eye(4))
    lengths: tuple[tuple[str, float], ...] = ()
    source: str = ""
    urdf: str | None = None
    length_slopes: Float[Array, "l k 9"] = field(default_factory=lambda: np.zeros((0, 0, 9)))
    joint_zeros: tuple[float, ...] = ()
    compensators: tuple[Compensator, ...] = ()

    def __post_init__(self) -> None:
        # Names from files are displayed in many places: remove control characters.
        object.__setattr__(self, "name", clean_name(self.name))
        object.__setattr__(self, "source", clean_name(self.source, 2000))

    def __repr__(self) -> str:
        return f"Robot({self.name}: {self.joints} joints)"

    @property
    def joints(self) -> int:
        """Number of recorded joints; a tree may have more links (`bodies`)."""
        return len(self.links)

    @property
    def bodies(self) -> int:
        """Number of moving links."""
        return len(self.links)

    @property
    def is_tree(self) -> bool:
        """Whether links branch or joints are bound to others (`TreeRobot`)."""
        return False

    def require_serial(self, task: str) -> None:
        """Raise for a tree, which `task` does not cover."""

    @property
    def is_prismatic(self) -> Bool[Array, " j"]:
        """Mask of joints that slide."""
        return np.array([self.links[b].is_prismatic for b in self.carriers])

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(link.joint for link in self.links)

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links)

    @property
    def gravity(self) -> Float[Array, " 3"]:
        """Gravitational acceleration in the base frame [m/s^2]."""
        return gravity_in_base(self.mounting)

    @property
    def placements(self) -> Float[Array, "j 4 4"]:
        return np.stack([link.placement for link in self.links])

    @property
    def screws(self) -> Float[Array, "j 6"]:
        return np.stack([link.screw for link in self.links])

    @property
    def parameters(self) -> Float[Array, " p"]:
        """Nominal inertial parameters, link after link (10 j)."""
        return np.concatenate([link.parameters for link in self.links])

    @property
    def carriers(self) -> Sequence[int]:
        """Link that has the rotor inertia and unit of each joint."""
        return range(self.joints)

    @property
    def rotor_inertias(self) -> Float[Array, " j"]:
        return np.array([self.links[b].rotor_inertia for b in self.carriers])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the inertial parameters: link_1.m, link_1.hx, ..."""
        return self.layout.names

    @property
    def other_tip_joints(self) -> Bool[Array, " j"]:
        """Mask of joints that move a tip other than the one in use."""
        return np.zeros(self.joints, bool)

    @property
    def tip_robots(self) -> tuple[Robot, ...]:
        """Robot for every tip that may carry a load, with that tip in use."""
        return (self,)

    def with_tip(self, name: str) -> Robot:
        """Copy that uses one of several tips (`TreeRobot`)."""
        raise RobotError(f"{self.name} has one tip: leave {name!r} out.")

    @property
    def parents(self) -> Sequence[int]:
        """Parent of every link, from 0; -1 is the base."""
        return range(-1, self.joints - 1)

    @property
    def binding(self) -> Float[Array, "b j"]:
        """Matrix C: the joint of link b is at q_b = sum_j C[b, j] q_j + o_b."""
        return np.eye(self.joints)

    @property
    def binding_offset(self) -> Float[Array, " b"]:
        """Offsets o [rad or m]."""
        return np.zeros(self.joints)

    @property
    def support(self) -> Bool[Array, "b j"]:
        """Mask: whether a recorded joint moves a link."""
        return np.tri(self.joints, dtype=bool)

    def bind(self, motion: Float[Array, "*n j"]) -> Float[Array, "*n b"]:
        """Velocity, or change of position, of every link's joint from that of the recorded ones."""
        return motion

    def bind_torque(self, torque: Float[Array, "*n b"]) -> Float[Array, "*n j"]:
        """Torque of the recorded joints, C' tau, from that of every link's joint."""
        return torque

    def path(self, link: int) -> list[int]:
        """Links from the base to a link."""
        return list(range(link + 1))

    @property
    def layout(self) -> LinkLayout:
        """Layout of the inertial parameters; torque models begin with the same."""
        return LinkLayout(self.joints)

    def with_mounting(self, mounting: Sequence[float] | str) -> Robot:
        """Copy with another mounting."""
        if isinstance(mounting, str):
            from taufit.robot.mounting import parse_mounting

            mounting = parse_mounting(mounting)
        roll, pitch, yaw = (float(angle) for angle in mounting)
        if self.mounting == (roll, pitch, yaw):
            return self
        return replace(self, mounting=(roll, pitch, yaw))

    def with_parameters(self, parameters: Float[Array, " p"] | Float[Array, "b 10"]) -> Robot:
        """Copy with other inertial parameters (10 j, link after link)."""
        rows = np.asarray(parameters, float).reshape(self.bodies, PER_LINK)
        links = tuple(
            replace(link, parameters=row.copy()) for link, row in zip(self.links, rows, strict=True)
        )
        return replace(self, links=links)

    def with_rotor_inertias(self, rotors: Float[Array, " j"]) -> Robot:
        """Copy with other rotor inertias [kg m^2 or kg]."""
        links = list(self.links)
        for b, rotor in zip(self.carriers, rotors, strict=True):
            links[b] = replace(links[b], rotor_inertia=float(rotor))
        return replace(self, links=tuple(links))

    def with_joint_zeros(self, zeros: Sequence[float] | Float[Array, " j"]) -> Robot:
        """Copy with other joint zero offsets: joint position = recorded + zero.

        Limits refer to recorded positions.

        Args:
            zeros: Offset per joint [rad or m], replacing the existing ones.
        """
        from taufit.robot.geometry import change_joint_zeros

        return change_joint_zeros(self, zeros)

    def with_lengths(self, values: Mapping[str, float]) -> Robot:
        """Copy with some of its named lengths changed [m]."""
        from taufit.robot.geometry import change_lengths

        return change_lengths(self, values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; inverse of `from_dict`."""
        places, compensators = self.drives.friction_places, list(map(asdict, self.compensators))
        return {
            "name": self.name,
            "links": [
                {
                    "name": link.name,
                    "joint": link.joint,
                    "placement": link.placement.tolist(),
                    "screw": link.screw.tolist(),
                    "parameters": link.parameters.tolist(),
                    "rotor_inertia": link.rotor_inertia,
                }
                for link in self.links
            ],
            "limits": {
                name: _finite(getattr(self.limits, name))
                for name in ("lower", "upper", "velocity", "acceleration", "torque")
            },
            "drives": {
                "gain": self.drives.gain.tolist(),
                "gain_std": self.drives.gain_std.tolist(),
                "gear_ratio": self.drives.gear_ratio.tolist(),
                "torque_constant": _finite(self.drives.torque_constant),
                "side": self.drives.side,
                "coupling": self.drives.coupling.tolist(),
                **({} if places is None else {"friction_places": places.tolist()}),
            },
            "mounting": list(self.mounting),
            "tip": self.tip.tolist(),
            "lengths": [list(pair) for pair in self.lengths],
            "length_slopes": self.length_slopes.tolist(),
            "source": self.source,
            "urdf": self.urdf,
            **({"compensators": compensators} if compensators else {}),
            **({"joint_zeros": list(self.joint_zeros)} if self.joint_zeros else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Robot:
        """Inverse of `to_dict`."""
        from taufit.robot.from_dict import robot_from_dict

        return robot_from_dict(data)


def _finite(values: Float[Array, " j"]) -> list[float | None]:
    """List with null for values that are not finite, which JSON lacks."""
    return [float(x) if np.isfinite(x) else None for x in values]


__all__ = ["MOUNTINGS", "Drives", "JointLimits", "Link", "Robot"]
