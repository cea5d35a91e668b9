"""Torque that a model expects at one moment, with its 95 % interval.

    variance = w' C w + noise(state)^2 + (s friction)^2 + (g rigid)^2 + (p payload)^2

as in `model.intervals`, with w the links' columns: the uncertainty of friction is in s. p is how
well the mass of what is carried is known. A standing joint's interval is wider by Coulomb friction.
"""

from __future__ import annotations

import numpy as np

from taufit.contact.external_torque import ExternalTorqueBlock
from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import RegressorEngine
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import GAIN_SCATTER, TYPICAL_FRICTION_SCATTER, coulomb_level
from taufit.model.noise_by_state import NoiseByState
from taufit.payload import PayloadEstimate

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None


class LivePrediction:
    """Half width of the interval about the predicted torque, step by step.

    Args:
        model: Fitted.
        noise: Its residuals by friction state.
    """

    def __init__(self, model: FittedModel, noise: NoiseByState) -> None:
        joints = model.robot.joints
        self._engine = RegressorEngine(model.robot)
        self._tip = model.layout.link(-1)
        self._every = np.arange(joints)
        by_state = model.training.residuals.by_state
        # What free recordings have shown counts as well as what training left.
        level = noise.level if by_state is None else np.maximum(by_state, noise.level)
        self._noise = np.ascontiguousarray(level, float) ** 2
        scatter = model.training.friction_scatter
        self._scatter = (
            np.full(joints, TYPICAL_FRICTION_SCATTER) if scatter is None else np.array(scatter)
        )
        self._gain = 0.0 if model.training.conditioning.gain is None else GAIN_SCATTER
        self._coulomb = np.array(coulomb_level(model), float)
        self._root = _link_root(model)
        self._payload = np.zeros(10)
        self._relative = 0.0
        self._loop = None
        if _kernel is not None:
            self._loop = _kernel.Interval(
                self._root, self._noise, self._scatter, self._coulomb, self._gain, NORMAL_95
            )

    def carry(self, found: PayloadEstimate | None) -> None:
        """What the arm carries from now on; None for nothing."""
        if found is None or found.mass <= 0.0:
            self._payload, self._relative = np.zeros(10), 0.0
        else:
            self._payload = np.array(found.parameters, float)
            self._relative = float(found.mass_std / found.mass)

    def half_width(self, felt: ExternalTorqueBlock, i: int) -> Float[Array, " j"]:
        """Of the interval about the predicted torque of one step [N m]."""
        if self._loop is None:
            return self._half_width(felt, i)
        out = np.empty(len(self._every))
        self._loop.half_width(
            self._engine.kernel,
            *(felt.position[i], felt.velocity[i], felt.acceleration[i], felt.state[i]),
            *(felt.friction[i], felt.rigid[i], felt.standing[i]),
            *(self._payload, self._relative, out),
        )
        return out

    def _half_width(self, felt: ExternalTorqueBlock, i: int) -> Float[Array, " j"]:
        """The same in NumPy."""
        at = slice(i, i + 1)
        rows = self._engine.regressor(felt.position[at], felt.velocity[at], felt.acceleration[at])
        links = rows[0]
        spread = links @ self._root
        spread *= spread
        variance = spread.sum(axis=1)
        variance += self._noise[felt.state[i], self._every]
        variance += (self._scatter * felt.friction[i]) ** 2
        if self._gain:
            variance += (self._gain * felt.rigid[i]) ** 2
        if self._relative:
            variance += (self._relative * (links[:, self._tip] @ self._payload)) ** 2
        return NORMAL_95 * np.sqrt(variance) + felt.standing[i] * self._coulomb


def _link_root(model: FittedModel) -> Float[Array, "p b"]:
    """R with R R' the covariance of the link parameters; zero for those that are no base."""
    base, layout = model.training.base, model.layout
    if base is None:
        return np.zeros((layout.links.stop, 0))
    at = np.array([layout.index(name) for name in base.names], int)
    own = at < layout.links.stop
    values, vectors = np.linalg.eigh(base.covariance[np.ix_(own, own)])
    out = np.zeros((layout.links.stop, len(values)))
    out[at[own]] = vectors * np.sqrt(np.maximum(values, 0.0))
    return out
