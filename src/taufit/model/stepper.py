"""Torque of a fitted model sample by sample, with the memory of its friction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel, compiled_torque
from taufit.terms import TermInput


class TorqueStepper:
    """Torque of the next sample of one run, like the exported C function `NAME_step`.

    Calling it with the samples of a run one by one gives `model.torque(..., step=1 / rate_hz)`.

    Args:
        model: Fitted model.
        rate_hz: Sampling rate [Hz].
    """

    def __init__(self, model: FittedModel, rate_hz: float) -> None:
        if not 0.0 < rate_hz < np.inf:
            raise TaufitError(f"the rate of a stepper must be positive [Hz], got {rate_hz}.")
        self._model, self._step = model, 1.0 / rate_hz
        self._columns = model.columns
        self._links = model.values[model.layout.links]
        self._others = model.values[model.layout.after_links]
        self._compiled = compiled_torque(model)
        self.reset()

    def __repr__(self) -> str:
        return f"TorqueStepper({self._model!r}, {1.0 / self._step:g} Hz)"

    def reset(self) -> None:
        """Begin another run, without memory of the last."""
        self._state = self._columns.start()
        self._memory = np.zeros(self._compiled.state_size or 1)

    def __call__(
        self,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        acceleration: Float[Array, " j"],
        *,
        temperature: Float[Array, " j"] | None = None,
        channels: Mapping[str, Float[Array, " j"]] | None = None,
    ) -> Float[Array, " j"]:
        """Joint torque at the next sample [N m]."""
        if not channels:
            sample = position, velocity, acceleration, temperature
            torque = self._compiled.next_torque(sample, self._step, self._memory)
            if torque is not None:
                return torque
        q, v, a = (np.asarray(x, float)[None] for x in (position, velocity, acceleration))
        rigid = self._columns.links(q, v, a) @ self._links
        inputs = TermInput(
            v,
            q,
            rigid,
            None if temperature is None else np.asarray(temperature, float)[None],
            channels={name: np.asarray(x, float)[None] for name, x in (channels or {}).items()},
            step=self._step,
        )
        drive, self._state = self._columns.advance(self._state, inputs)
        torque = rigid + self._columns.term_columns(a, drive) @ self._others
        return np.asarray(torque[0])
