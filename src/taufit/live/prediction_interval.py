"""95 % interval of the predicted torque, sample by sample.

    variance = w' C w + noise(state)^2 + (s friction)^2 + (g rigid)^2 + (p payload)^2

as in `model.intervals`, with w the link columns: the uncertainty of friction is in s. p is the
relative standard deviation of the payload's mass. At standstill the interval is wider by Coulomb
friction.
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


class LivePredictionInterval:
    """Half width of the interval of the predicted torque, bin by bin.

    Args:
        model: Fitted model.
        noise: Residual noise by friction regime.
    """

    def __init__(self, model: FittedModel, noise: NoiseByState) -> None:
        joints = model.robot.joints
        self._engine = RegressorEngine(model.robot)
        self._tip = model.layout.link(-1)
        self._joint_index = np.arange(joints)
        by_state = model.training.residuals.by_state
        # Noise of contact-free recordings counts as well as that of the training data.
        level = noise.level if by_state is None else np.maximum(by_state, noise.level)
        self._noise = np.ascontiguousarray(level, float) ** 2
        scatter = model.training.friction_scatter
        self._scatter = (
            np.full(joints, TYPICAL_FRICTION_SCATTER) if scatter is None else np.array(scatter)
        )
        self._gain = 0.0 if model.training.conditioning.gain is None else GAIN_SCATTER
        self._coulomb = np.array(coulomb_level(model), float)
        self._covariance_root = _link_covariance_root(model)
        self._payload = np.zeros(10)
        self._mass_relative_std = 0.0
        self._compiled = None
        if _kernel is not None and self._engine.compiled:
            self._compiled = _kernel.Interval(
                self._covariance_root,
                self._noise,
                self._scatter,
                self._coulomb,
                self._gain,
                NORMAL_95,
            )

    def set_payload(self, estimate: PayloadEstimate | None) -> None:
        """Set the payload of the robot; None for none."""
        if estimate is None or estimate.mass <= 0.0:
            self._payload, self._mass_relative_std = np.zeros(10), 0.0
        else:
            self._payload = np.array(estimate.parameters, float)
            self._mass_relative_std = float(estimate.mass_std / estimate.mass)

    def half_width(self, block: ExternalTorqueBlock, i: int) -> Float[Array, " j"]:
        """Half width of the interval of one time bin [N m]."""
        if self._compiled is None:
            return self._numpy_half_width(block, i)
        out = np.empty(len(self._joint_index))
        self._compiled.half_width(
            self._engine.kernel,
            *(block.position[i], block.velocity[i], block.acceleration[i], block.state[i]),
            *(block.friction[i], block.rigid[i], block.standing[i]),
            *(self._payload, self._mass_relative_std, out),
        )
        return out

    def _numpy_half_width(self, block: ExternalTorqueBlock, i: int) -> Float[Array, " j"]:
        """NumPy equivalent of the kernel."""
        one_bin = slice(i, i + 1)
        rows = self._engine.regressor(
            block.position[one_bin], block.velocity[one_bin], block.acceleration[one_bin]
        )
        links = rows[0]
        link_std = links @ self._covariance_root
        link_std *= link_std
        variance = link_std.sum(axis=1)
        variance += self._noise[block.state[i], self._joint_index]
        variance += (self._scatter * block.friction[i]) ** 2
        if self._gain:
            variance += (self._gain * block.rigid[i]) ** 2
        if self._mass_relative_std:
            variance += (self._mass_relative_std * (links[:, self._tip] @ self._payload)) ** 2
        return NORMAL_95 * np.sqrt(variance) + block.standing[i] * self._coulomb


def _link_covariance_root(model: FittedModel) -> Float[Array, "p b"]:
    """R with R R' the covariance of the link parameters; zero for those without."""
    base, layout = model.training.base, model.layout
    if base is None:
        return np.zeros((layout.links.stop, 0))
    indices = np.array([layout.index(name) for name in base.names], int)
    is_link = indices < layout.links.stop
    values, vectors = np.linalg.eigh(base.covariance[np.ix_(is_link, is_link)])
    out = np.zeros((layout.links.stop, len(values)))
    out[indices[is_link]] = vectors * np.sqrt(np.maximum(values, 0.0))
    return out
