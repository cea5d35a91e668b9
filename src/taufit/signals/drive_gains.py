"""Drive gains: joint torque per ampere, given, published, or read from the controller's targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding

# Relative std of published gains, which come without uncertainty.
_TABLE_STD = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class DriveGains:
    """Joint torque per unit of the recorded signal, gear included.

    Attributes:
        value: Drive gain per joint [N m/A].
        std: Standard deviation of `value`.
        source: Origin of each joint's value, for messages.
        findings: Findings about the gains for the user.
    """

    value: Float[Array, " j"]
    std: Float[Array, " j"]
    source: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def is_torque(self) -> bool:
        """Whether the signal already is joint torque (gain 1, no uncertainty)."""
        return bool(np.all(self.value == 1.0) and not np.any(self.std))

    @classmethod
    def from_values(
        cls, value: Float[Array, " j"], std: Float[Array, " j"] | None = None, source: str = "given"
    ) -> DriveGains:
        value = np.asarray(value, float)
        std = np.zeros_like(value) if std is None else np.asarray(std, float)
        return cls(value, std, (source,) * len(value))


def _table_gains(value: Sequence[float] | Float[Array, " j"], source: str) -> DriveGains:
    gains = np.array(value, float)
    return DriveGains.from_values(gains, _TABLE_STD * gains, source)


# tau = 101 Kt i for the UR3 and UR5: the table prints the motors' torque constants.
KNOWN_GAINS: dict[str, DriveGains] = {
    "ur10_xu2024": _table_gains([14.73, 14.33, 11.55, 11.25, 11.5, 11.5], "UR10, [Xu2024] Table V"),
    "ur3_raviola2021": _table_gains(
        101 * np.array([0.1249, 0.1249, 0.0934, 0.0453, 0.0453, 0.0453]),
        "UR3, [Raviola2021] Table 1 times the gear ratio 101",
    ),
    "ur5_raviola2021": _table_gains(
        101 * np.array([0.135, 0.1361, 0.1355, 0.0957, 0.0865, 0.0893]),
        "UR5, [Raviola2021] Table 1 times the gear ratio 101",
    ),
}


def known_gains(name: str) -> DriveGains:
    """Published drive gains by name, e.g. "ur10_xu2024"."""
    if name not in KNOWN_GAINS:
        raise RecordingError(
            f"no drive gains are known by the name {name!r}; there are {', '.join(KNOWN_GAINS)}."
        )
    return KNOWN_GAINS[name]


def joint_gains(
    recordings: Sequence[Recording], gains: DriveGains | Float[Array, " j"] | None
) -> tuple[list[DriveGains], tuple[Finding, ...]]:
    """Gains of each recording: the argument, those of its column map, or controller targets."""
    for recording in recordings:
        if recording.torque_source == "none":
            raise RecordingError(
                f"{recording.name} has no torque channel, only commands and positions. "
                "`taufit servo ROBOT RECORDING` fits a servo model to such recordings."
            )
    if gains is not None:
        fixed = (
            gains
            if isinstance(gains, DriveGains)
            else DriveGains.from_values(np.asarray(gains, float))
        )
        if len(fixed.value) != recordings[0].joints:
            raise RecordingError(
                f"{len(fixed.value)} drive gains were given for {recordings[0].joints} joints."
            )
        return [fixed] * len(recordings), fixed.findings
    pooled: DriveGains | None = None
    out: list[DriveGains] = []
    for recording in recordings:
        map_gain = recording.gain
        if map_gain is not None and np.all(np.isfinite(map_gain)):
            out.append(
                DriveGains.from_values(map_gain, recording.gain_std, "given in the column map")
            )
        elif map_gain is None and recording.signal_unit == "N m":
            out.append(
                DriveGains.from_values(np.ones(recording.joints), source="torque as recorded")
            )
        else:
            if pooled is None:
                from taufit.signals.controller_gains import controller_gains

                pooled = controller_gains(recordings)
            value, std = np.array(pooled.value), np.array(pooled.std)
            if map_gain is not None:
                is_given = np.isfinite(map_gain)
                value[is_given] = map_gain[is_given]
                std[is_given] = 0.0 if recording.gain_std is None else recording.gain_std[is_given]
            out.append(DriveGains(value, std, pooled.source, pooled.findings))
    return out, () if pooled is None else pooled.findings
