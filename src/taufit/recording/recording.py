"""What was measured, as it was measured: time stamps as they came, SI units, nothing filtered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taufit.core.arrays import Array, Bool, Float
from taufit.core.names import clean_name
from taufit.core.views import Shown, drawn
from taufit.recording.finding import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Recording(Shown):
    """One run of one robot.

    Attributes:
        time: Time stamps [s], as recorded (jitter and gaps included).
        position: Measured [rad or m].
        velocity: Measured [rad/s], or None.
        acceleration: Measured, or None.
        signal: The torque channel as recorded, in `signal_unit`.
        signal_unit: "N m", "A", or "" for raw counts.
        torque_source: "motor_current", "motor_torque" or "joint_torque_sensor".
        signed: Per joint, whether the torque channel carries its sign.
        gain: Joint torque per unit of `signal`, gear included, or None where unknown; a map's
            `auto` is found later, by signals.
        gain_std: Standard deviation of `gain`, or None.
        coupling: C with motor positions, referred to the joints, q_m = C q, or None for one
            motor per joint.
        commanded_position, commanded_velocity, commanded_acceleration: Or None.
        target_current, target_torque: The controller's own [A], [N m], or None.
        temperature: Of the joints [degC], or None.
        payload: Mass the robot carried [kg], or None where unknown.
        meta: Provenance: robot, joint names, mounting, file, firmware, lost samples, ...
        findings: What the reader noticed and did about it, in order.

    Example:
        >>> import numpy as np, taufit
        >>> t = np.arange(0.0, 2.0, 0.01)
        >>> q = 0.5 * np.sin(3.0 * t)[:, None]
        >>> taufit.Recording(t, position=q, signal=20.0 * np.cos(q), signal_unit="N m")
        Recording(the recording: 200 rows, 2.0 s, 1 joints)
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    signal: Float[Array, "n j"]
    velocity: Float[Array, "n j"] | None = None
    acceleration: Float[Array, "n j"] | None = None
    signal_unit: str = "N m"
    torque_source: str = "motor_torque"
    signed: Bool[Array, " j"] | None = None
    gain: Float[Array, " j"] | None = None
    gain_std: Float[Array, " j"] | None = None
    coupling: Float[Array, "j j"] | None = None
    commanded_position: Float[Array, "n j"] | None = None
    commanded_velocity: Float[Array, "n j"] | None = None
    commanded_acceleration: Float[Array, "n j"] | None = None
    target_current: Float[Array, "n j"] | None = None
    target_torque: Float[Array, "n j"] | None = None
    temperature: Float[Array, "n j"] | None = None
    payload: float | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        names = {
            key: self.meta[key]
            for key in ("robot", "joint_names")
            if self.meta.get(key) is not None
        }
        clean = {key: _clean(value) for key, value in names.items()}
        if clean != names:
            object.__setattr__(self, "meta", {**self.meta, **clean})

    @property
    def name(self) -> str:
        """What messages call it: its file, or else the name it was given."""
        return str(self.meta.get("file") or self.meta.get("name") or "the recording")

    @property
    def joints(self) -> int:
        return self.position.shape[1]

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        seconds = self.time[-1] - self.time[0] if len(self) else 0.0
        return f"Recording({self.name}: {len(self)} rows, {seconds:.1f} s, {self.joints} joints)"

    def plot(self) -> Any:
        """Motion and torque over time, with matplotlib; returns the axes."""
        return drawn("plot_recording", self)


def _clean(value: Any) -> Any:
    """Names from a file, without what would act on a terminal."""
    if isinstance(value, str):
        return clean_name(value)
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value
