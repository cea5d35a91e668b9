"""Further channels of a recording by name: temperatures, commands, targets, other sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.recording.quantity import QUANTITIES


@dataclass(frozen=True, slots=True, eq=False)
class Channels(Mapping[str, Any]):
    """Values by channel name, one column per joint, in the SI unit of the channel.

    A channel is an entry of `QUANTITIES` that is neither time, motion nor torque signal. All
    channels are passed on together, so a new sensor needs one entry there only.

    Attributes:
        arrays: Values (n, j) by name; absent channels are not listed.

    Example:
        >>> import numpy as np
        >>> from taufit.recording import Channels
        >>> channels = Channels.from_values(temperature=np.full((2, 6), 30.0), target_torque=None)
        >>> list(channels), channels.unit("temperature")
        (['temperature'], 'degC')
    """

    arrays: dict[str, Float[Array, "n j"]] = field(default_factory=dict)

    @classmethod
    def from_values(cls, **values: Float[Array, "n j"] | None) -> Channels:
        """Channels by keyword; None for a channel that was not recorded."""
        return cls().replace(**values)

    def replace(self, **changes: Float[Array, "n j"] | None) -> Channels:
        """Copy with some channels exchanged or added; None removes a channel."""
        merged = {**self.arrays, **changes}
        return Channels({name: values for name, values in merged.items() if values is not None})

    def map(self, function: Callable[[Float[Array, "n j"]], Float[Array, "m k"]]) -> Channels:
        """Copy with a function applied to the values of every channel."""
        return Channels({name: function(values) for name, values in self.arrays.items()})

    def rows(self, selection: Any) -> Channels:
        """Channels at some samples: an index, slice or mask."""
        return self.map(lambda values: values[selection])

    @staticmethod
    def unit(name: str) -> str:
        """SI unit of a channel, "" for a name that is not registered."""
        return next(iter(QUANTITIES[name].units)) if name in QUANTITIES else ""

    @staticmethod
    def concatenate(parts: list[Channels]) -> Channels:
        """Concatenate the channels that all runs have."""
        common = [name for name in parts[0] if all(name in part for part in parts)]
        return Channels({name: np.concatenate([part[name] for part in parts]) for name in common})

    def __getitem__(self, name: str) -> Float[Array, "n j"]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    # Arrays have no single truth value: equality of channels is identity.
    __eq__ = object.__eq__
    __hash__ = object.__hash__
