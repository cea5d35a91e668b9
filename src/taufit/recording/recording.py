"""Recording: measured data with original time stamps, SI units, unfiltered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.names import clean_name
from taufit.core.notebook_display import NotebookDisplay, draw
from taufit.recording.channels import Channels
from taufit.recording.finding import Finding
from taufit.recording.quantity import MEASUREMENTS, channel_names, is_channel


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Recording(NotebookDisplay):
    """One run of one robot.

    Further keywords are channels by name (`temperature=`, `commanded_position=`, ...), available as
    attributes of the same name; None if not recorded.

    Attributes:
        time: Time stamps [s], as recorded (jitter and gaps included).
        position: Measured joint position [rad or m].
        velocity: Measured joint velocity [rad/s or m/s], or None.
        acceleration: Measured joint acceleration, or None.
        signal: Torque channel as recorded, in `signal_unit`.
        signal_unit: "N m", "A", or "" for raw counts.
        torque_source: "motor_current", "motor_torque", "joint_torque_sensor", or "none" for
            commands and positions only; `signal` is then zero.
        signed: Per joint, whether the torque channel has a sign.
        gain: Joint torque per unit of `signal`, gear included, or None if unknown; `auto` gains of
            a map are estimated by signals.
        gain_std: Standard deviation of `gain`, or None.
        coupling: C with motor positions, referred to the joints, q_m = C q, or None for one
            motor per joint.
        channels: Further channels by name: temperatures, commands, controller targets.
        payload: Payload mass [kg], or None if unknown.
        meta: Provenance: robot, joint names, mounting, file, firmware, lost samples, ...
        findings: Findings of the reader, in order.

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
    velocity: Float[Array, "n j"] | None
    acceleration: Float[Array, "n j"] | None
    signal_unit: str
    torque_source: str
    signed: Bool[Array, " j"] | None
    gain: Float[Array, " j"] | None
    gain_std: Float[Array, " j"] | None
    coupling: Float[Array, "j j"] | None
    channels: Channels
    payload: float | None
    meta: dict[str, Any]
    findings: tuple[Finding, ...]

    def __init__(  # noqa: PLR0913 - the public call has one keyword per quantity
        self,
        time: Float[Array, " n"],
        position: Float[Array, "n j"],
        signal: Float[Array, "n j"],
        velocity: Float[Array, "n j"] | None = None,
        acceleration: Float[Array, "n j"] | None = None,
        *,
        signal_unit: str = "N m",
        torque_source: str = "motor_torque",
        signed: Bool[Array, " j"] | None = None,
        gain: Float[Array, " j"] | None = None,
        gain_std: Float[Array, " j"] | None = None,
        coupling: Float[Array, "j j"] | None = None,
        channels: Channels | None = None,
        payload: float | None = None,
        meta: dict[str, Any] | None = None,
        findings: tuple[Finding, ...] = (),
        **further: Float[Array, "n j"] | None,
    ) -> None:
        for name in further:
            if not is_channel(name):
                raise TypeError(
                    f"Recording has no channel {name!r}; there are {', '.join(channel_names())}."
                )
        values = {
            "time": time,
            "position": position,
            "signal": signal,
            "velocity": velocity,
            "acceleration": acceleration,
            "signal_unit": signal_unit,
            "torque_source": torque_source,
            "signed": signed,
            "gain": gain,
            "gain_std": gain_std,
            "coupling": coupling,
            "channels": (channels or Channels()).replace(**further),
            "payload": payload,
            "meta": _with_clean_names(meta or {}),
            "findings": findings,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Float[Array, "n j"] | None:
        if is_channel(name):
            return self.channels.get(name)
        raise AttributeError(f"Recording has no attribute {name!r}")

    def quantities(self) -> dict[str, Float[Array, "n j"]]:
        """All arrays (n, j) by name: motion, signal, channels."""
        measured = {name: getattr(self, name) for name in MEASUREMENTS}
        return {k: v for k, v in {**measured, **self.channels}.items() if v is not None}

    def with_channels(self, **channels: Float[Array, "n j"] | None) -> Recording:
        """Copy with channels replaced or added; None removes one."""
        return replace(self, channels=self.channels.replace(**channels))

    def map(
        self,
        function: Callable[[Float[Array, "n j"]], Float[Array, "m k"]],
        time: Float[Array, " m"] | None = None,
    ) -> Recording:
        """Copy with a function applied to all arrays (n, j).

        Args:
            function: Function from old to new values.
            time: Time stamps of the new rows, if they differ.
        """
        stamps = self.time if time is None else time
        changed: dict[str, Any] = {
            name: function(values)
            for name in MEASUREMENTS
            if (values := getattr(self, name)) is not None
        }
        return replace(self, time=stamps, **changed, channels=self.channels.map(function))

    @property
    def name(self) -> str:
        """Name in messages: the file, or the given name."""
        return str(self.meta.get("file") or self.meta.get("name") or "the recording")

    @property
    def joints(self) -> int:
        return int(self.position.shape[1])

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        seconds = self.time[-1] - self.time[0] if len(self) else 0.0
        return f"Recording({self.name}: {len(self)} rows, {seconds:.1f} s, {self.joints} joints)"

    def plot(self) -> Any:
        """Motion and torque over time, with matplotlib; returns the axes."""
        return draw("plot_recording", self)


def _with_clean_names(meta: dict[str, Any]) -> dict[str, Any]:
    names = {k: meta[k] for k in ("robot", "joint_names") if meta.get(k) is not None}
    cleaned = {key: _clean_names(value) for key, value in names.items()}
    return meta if cleaned == names else {**meta, **cleaned}


def _clean_names(value: Any) -> Any:
    """Names from a file without terminal control characters."""
    if isinstance(value, str):
        return clean_name(value)
    if isinstance(value, (list, tuple)):
        return [_clean_names(item) for item in value]
    return value


def select_rows(recording: Recording, index: Array, **changes: Any) -> Recording:
    """Copy with some of the rows, in the given order."""
    selected = recording.map(lambda values: values[index], time=recording.time[index])
    return replace(selected, **changes)
