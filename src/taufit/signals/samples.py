"""Conditioned motion and torque on a uniform grid: input of every fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.names import RenamedAttribute, renamed_keywords
from taufit.core.notebook_display import NotebookDisplay, draw
from taufit.recording.channels import Channels
from taufit.signals.storage.column_cache import ColumnCache


@dataclass(frozen=True, slots=True, eq=False)
class Samples(NotebookDisplay):
    """Conditioned samples of one or several runs: uniform grid, one low-pass.

    Joint torque [N m], rows in time order, run after run. Further regressor columns must pass the
    same
    low-pass as `velocity`, `acceleration` and `torque`; `signals.lowpass(samples, columns)` does so
    run by run. The grid contains whole runs including standstill, so that filters settle outside
    the
    rows in use, which `motion` and `keep` select.

    Attributes:
        time: Time within the recording [s].
        position, velocity, acceleration: Joint motion, filtered, SI.
        torque: Joint torque, filtered; absolute values where `signed` is False.
        friction_velocity: Velocity before the low-pass, shifted by the drive's delay. Friction
            columns
            are computed from it and then low-passed, because friction is nonlinear in velocity.
        keep: Rows to be fitted, per sample and joint (in motion, not an outlier).
        run: Index of the run of each sample, nondecreasing.
        rate_hz: Rate of the grid [Hz].
        cutoff_hz: Cut-off of the zero-phase low-pass [Hz]; infinite for none.
        noise: Standard deviation of torque noise per joint on this grid, before the low-pass [N m].
        signed: Per joint, True if torque has a sign.
        channels: Slow channels by name, such as temperatures [degC].
        names: Names of the runs (file names); segments of a run split at a gap share one.
        motion: Samples in motion, used for scores; contains `keep`. None means all.
        raw_torque: Torque on the grid before the low-pass; None if nothing was filtered.
        periodic: Whether every run is one averaged period.
        gain, gain_std: Joint torque per unit of the recorded signal and its standard deviation, per
            joint; None if the signal was a torque.
        delay_s: Delay of recorded torque behind motion [s], already compensated; one number or one
            per joint.
        reason: Explanation of the cut-off and delay.
        findings: Findings of reading and conditioning.
        column_cache: Cache of columns computed from the motion, or None.
        cached_motion: Position and velocity for which `column_cache` is valid.

    Example:
        >>> import taufit
        >>> samples = taufit.condition(taufit.read_recording("run.parquet"), cutoff_hz=10.0)
        >>> samples
        Samples(... at ... Hz, low-pass 10 Hz)
        >>> samples.torque.shape == samples.position.shape == samples.keep.shape
        True
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    friction_velocity: Float[Array, "n j"]
    keep: Bool[Array, "n j"]
    run: Int[Array, " n"]
    rate_hz: float
    cutoff_hz: float = np.inf
    noise: Float[Array, " j"] | None = None
    signed: Bool[Array, " j"] | None = None
    channels: Channels = field(default_factory=Channels)
    names: tuple[str, ...] = field(default=("run",))
    motion: Bool[Array, " n"] | None = None
    raw_torque: Float[Array, "n j"] | None = None
    periodic: bool = False
    gain: Float[Array, " j"] | None = None
    gain_std: Float[Array, " j"] | None = None
    delay_s: float | tuple[float, ...] = 0.0
    reason: str = ""
    findings: tuple[Any, ...] = ()
    column_cache: ColumnCache | None = field(default=None, repr=False)
    cached_motion: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def temperature(self) -> Float[Array, "n j"] | None:
        """Temperature of the joints [degC]; None if it was not recorded."""
        return self.channels.get("temperature")

    def with_channels(self, **channels: Float[Array, "n j"] | None) -> Samples:
        """Copy with channels replaced or added; None removes one."""
        return replace(self, channels=self.channels.replace(**channels))

    def with_column_cache(self, cache: ColumnCache | None = None) -> Samples:
        """Copy with a cache for columns computed from its motion."""
        motion = (self.position, self.friction_velocity)
        return replace(self, column_cache=cache or ColumnCache(), cached_motion=motion)

    @property
    def valid_column_cache(self) -> ColumnCache | None:
        """Column cache, if it is valid for this motion; else None."""
        same = len(self.cached_motion) == 2 and (
            self.cached_motion[0] is self.position
            and self.cached_motion[1] is self.friction_velocity
        )
        return self.column_cache if same else None

    def __repr__(self) -> str:
        return f"Samples({len(self)} at {self.rate_hz:g} Hz, low-pass {self.cutoff_hz:g} Hz)"

    def plot(self) -> Any:
        """Motion and torque over time, with matplotlib; returns the axes."""
        return draw("plot_samples", self)

    @property
    def joints(self) -> int:
        return int(self.position.shape[1])

    def __len__(self) -> int:
        return len(self.time)

    @property
    def in_motion(self) -> Bool[Array, " n"]:
        """Samples in motion; all if nothing was trimmed."""
        return np.ones(len(self), bool) if self.motion is None else self.motion

    @property
    def white_noise_share(self) -> Float[Array, " j"]:
        """White noise of torque behind the low-pass, over the standard deviation of torque.

        nan where unknown, or where torque does not vary.
        """
        torque = self.torque[self.in_motion]
        if self.noise is None or len(torque) == 0:
            return np.full(self.joints, np.nan)
        std = torque.std(axis=0)
        pass_band = min(1.0, 2.0 * self.cutoff_hz / self.rate_hz)
        return self.noise * np.sqrt(pass_band) / np.where(std > 0.0, std, np.nan)

    def run_slices(self) -> tuple[slice, ...]:
        """Rows of each run, in order."""
        edges = np.concatenate([[0], np.flatnonzero(np.diff(self.run)) + 1, [len(self)]])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(edges))

    @renamed_keywords(chosen="selection")
    def rows(self, selection: Any) -> Samples:
        """Samples at an index, slice or mask; whole runs only if they are to be filtered again."""
        values: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[selection]
            for name in _PER_SAMPLE
        }
        channels = self.channels.rows(selection)
        return replace(self, channels=channels, column_cache=None, cached_motion=(), **values)

    def head(self, rows: int = 0) -> Samples:
        """Copy of the first rows, by default none, with rate, cut-off, gains, names.

        Holds no reference to the arrays and their cached columns.
        """
        empty = self.rows(slice(0, rows))
        values: dict[str, Any] = {
            name: None if getattr(empty, name) is None else getattr(empty, name).copy()
            for name in _PER_SAMPLE
        }
        return replace(empty, channels=empty.channels.map(np.copy), **values)

    # Former names of 0.1, accepted with a warning until 0.3.
    joined = RenamedAttribute("concatenate")

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """Concatenate samples of one robot, run after run; grid and low-pass must be equal."""
        first = parts[0]
        if len(parts) == 1:
            return first
        if len({(p.joints, p.rate_hz, p.cutoff_hz, p.periodic) for p in parts}) > 1:
            raise ValueError("samples join only with equal joints, grid and low-pass")
        values: dict[str, Any] = {
            name: _stack([getattr(part, name) for part in parts], np.concatenate)
            for name in _PER_SAMPLE - {"run", "motion"}
        }
        values["motion"] = np.concatenate([part.in_motion for part in parts])
        starts = np.cumsum([0, *(len(part.names) for part in parts[:-1])])
        values["run"] = np.concatenate([p.run + s for p, s in zip(parts, starts, strict=True)])
        for name in ("names", "findings"):
            values[name] = tuple(chain.from_iterable(getattr(part, name) for part in parts))
        noise = _stack([part.noise for part in parts])
        if noise is not None:
            weights = [float(len(part)) for part in parts]
            values["noise"] = np.sqrt(weights @ noise**2 / np.sum(weights))
        values["channels"] = Channels.concatenate([part.channels for part in parts])
        return replace(first, column_cache=None, cached_motion=(), **values)

    @classmethod
    def from_arrays(
        cls,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        torque: Float[Array, "n j"],
        *,
        rate_hz: float = 100.0,
    ) -> Samples:
        """Samples from clean arrays, for simulations and tests."""
        n = len(position)
        return cls(
            time=np.arange(n) / rate_hz,
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            torque=torque,
            friction_velocity=velocity,
            keep=np.ones_like(position, dtype=bool),
            run=np.zeros(n, dtype=np.int64),
            rate_hz=rate_hz,
        )


_PER_SAMPLE = frozenset(
    {
        "time",
        "position",
        "velocity",
        "acceleration",
        "torque",
        "friction_velocity",
        "keep",
        "run",
        "motion",
        "raw_torque",
    }
)


def _stack(
    columns: Sequence[Array | None], stack: Callable[[Sequence[Array]], Array] = np.stack
) -> Array | None:
    """Stack columns; None if one is missing."""
    present = [column for column in columns if column is not None]
    return stack(present) if len(present) == len(columns) else None
