"""Contact injection into contact-free recordings, to measure detection rate and delay.

A force f at a point of the robot reduces the motor torque by J' f, so -J' f is added to the
recorded torque. In motion a closed loop does the same (a simulated robot agrees within 2 %); at
standstill friction would carry part of it, so contacts are injected in motion only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.contact.contact import Contact
from taufit.contact.contact_detector import ContactDetector
from taufit.contact.force import point_jacobian
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import forward_kinematics
from taufit.model.fitted_model import FittedModel
from taufit.model.noise_by_state import NoiseByState
from taufit.payload.stream import Stream, stream
from taufit.recording import Recording
from taufit.robot import Robot

# Speed of the fastest joint above which the robot moves [rad/s or m/s].
_MOTION_SPEED = 0.05
# Longest delay of a detection [s].
_MAX_DELAY_S = 0.5


@dataclass(frozen=True, slots=True)
class ContactKind:
    """Kind of injected contact.

    Attributes:
        force: Peak force [N].
        seconds: Duration [s].
        shape: "pulse" (half sine) or "step".
        link: Link at whose far end it acts, 1 for the first; 0 for the tool.
    """

    force: float = 20.0
    seconds: float = 0.1
    shape: str = "pulse"
    link: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Injection:
    """An injected contact: start [s], peak force, and joint torque of that force."""

    time: float
    force: Float[Array, " 3"]
    torque: Float[Array, " j"]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Detection of one kind of injected contact.

    Attributes:
        kind: Kind of contact.
        count: Number of contacts.
        share: Fraction detected.
        median, late: Median and 90 % quantile of the detection delay [s].
    """

    kind: ContactKind
    count: int
    share: float
    median: float
    late: float

    def __str__(self) -> str:
        k = self.kind
        place = "the tool" if k.link == 0 else f"the end of link {k.link}"
        return (
            f"{k.force:g} N for {1e3 * k.seconds:.0f} ms ({k.shape}) at {place}: "
            f"{100 * self.share:.0f} % of {self.count} found, median after {1e3 * self.median:.0f} "
            "ms"
        )


def inject_contacts(
    model: FittedModel,
    source: Stream,
    kind: ContactKind,
    rng: np.random.Generator,
    *,
    gap: float = 2.5,
    first_time: float = 1.5,
) -> tuple[Stream, list[Injection]]:
    """Inject contacts in random directions at random times of the motion.

    Args:
        model: Model of the robot.
        source: Stream without contact.
        kind: Kind of contact.
        rng: Random generator of times and directions.
        gap: Shortest time between two contacts [s].
        first_time: Time before the first contact [s].
    """
    robot, time = model.robot, source.time
    torque, out = source.torque.copy(), []
    moving = np.abs(source.velocity).max(axis=1) > _MOTION_SPEED
    start = first_time + rng.uniform(0.0, gap)
    while start < time[-1] - 0.8:
        window = (time >= start) & (time < start + 0.3)
        if window.any() and moving[window].mean() > 0.9:
            force = rng.normal(size=3)
            force *= kind.force / np.linalg.norm(force)
            shape = _force_profile(kind, time - start)
            rows = np.flatnonzero(shape)
            # The force is constant in base axes while the robot moves.
            load = (
                _jacobian_transposes(robot, source.position[rows], (kind.link or robot.joints) - 1)
                @ force
            )
            torque[rows] -= shape[rows, None] * load
            out.append(Injection(float(start), force, load[0]))
        start += gap + rng.uniform(0.0, 1.0)
    return replace(source, torque=torque), out


def _jacobian_transposes(
    robot: Robot, position: Float[Array, "n j"], link: int
) -> Float[Array, "n j 3"]:
    """J' of the far end of a link, for each sample."""
    poses = forward_kinematics(robot, position)
    return np.array([point_jacobian(robot, pose, link, pose[link + 1, :3, 3]).T for pose in poses])


def _force_profile(kind: ContactKind, elapsed: Float[Array, " n"]) -> Float[Array, " n"]:
    is_active = (elapsed >= 0.0) & (elapsed < kind.seconds)
    wave = np.sin(np.pi * np.clip(elapsed / kind.seconds, 0.0, 1.0))
    return is_active * (wave if kind.shape == "pulse" else 1.0)


def detection_delay(contacts: Sequence[Contact], injection: Injection) -> float:
    """Detection delay of an injected contact [s]; nan if missed, or during another contact."""
    t = injection.time
    if any(c.detection_time < t and (c.end_time is None or c.end_time > t) for c in contacts):
        return float("nan")
    delays = [c.detection_time - t for c in contacts if t <= c.detection_time <= t + _MAX_DELAY_S]
    return min(delays, default=float("nan"))


def sensitivity(
    model: FittedModel,
    recordings: Sequence[Recording | Stream],
    kind: ContactKind | None = None,
    *,
    noise: NoiseByState | None = None,
    settings: ContactSettings | None = None,
    count: int = 50,
    seed: int = 0,
) -> Sensitivity:
    """Measure the detection of contacts injected into contact-free recordings.

    Args:
        model: Model of the robot.
        recordings: Recordings without contact.
        kind: Kind of contact; default 20 N for 100 ms at the tool.
        noise: Noise by friction regime; default that of the model.
        settings: Settings of contact detection.
        count: Smallest number of contacts, if the recordings contain motion.
        seed: Seed of times and directions.
    """
    kind = kind or ContactKind()
    rng = np.random.default_rng(seed)
    sources = [
        recording if isinstance(recording, Stream) else stream(model, recording)
        for recording in recordings
    ]
    delays: list[float] = []
    for _ in range(20):
        for source in sources:
            with_contacts, injections = inject_contacts(model, source, kind, rng)
            if not injections:
                continue
            detector = ContactDetector(model, noise, settings=settings)
            for sample in with_contacts.samples():
                detector.update_clean(*sample)
            delays += [detection_delay(detector.contacts, recording) for recording in injections]
            if len(delays) >= count:
                break
        if len(delays) >= count or not delays:
            break
    return _summarise(kind, np.array(delays))


def _summarise(kind: ContactKind, delays: Array) -> Sensitivity:
    detected = delays[np.isfinite(delays)]
    if len(detected) == 0:
        return Sensitivity(kind, len(delays), 0.0, float("nan"), float("nan"))
    late_delay = float(np.quantile(detected, 0.9))
    return Sensitivity(
        kind, len(delays), len(detected) / len(delays), float(np.median(detected)), late_delay
    )
