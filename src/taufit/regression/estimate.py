"""Fitted parameters with covariance, base parameters and settings of the fit."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import BaseParameters
from taufit.model.information_share import InformationShare
from taufit.regression.information import Information


def base_factor(base: BaseParameters, factor: Float[Array, "p p"]) -> Float[Array, "b b"]:
    """Triangular factor of the base parameters, from that of the standard parameters."""
    return np.asarray(np.linalg.qr(factor[:, base.columns], mode="r"))


def nearest_parameters(
    base: BaseParameters,
    values: Float[Array, " b"],
    guess: Float[Array, " p"],
    scale: Float[Array, " p"],
) -> Float[Array, " p"]:
    """Standard parameters with given base values, closest to `guess` in units of `scale`."""
    scaled = base.mapping * scale
    step, *_ = np.linalg.lstsq(scaled, values - base.mapping @ guess, rcond=None)
    return np.asarray(guess + scale * step)


def expression(base: BaseParameters, index: int) -> str:
    """A base parameter as a sum of standard ones, e.g. "link_1.Izz + link_2.Iyy"."""
    row = base.mapping[index]
    parts = []
    for i in np.flatnonzero(np.abs(row) > 1e-9):
        size = abs(row[i])
        factor = "" if np.isclose(size, 1.0, rtol=1e-9) else f"{size:.6g} "
        parts.append(f"{'-' if row[i] < 0 else '+'} {factor}{base.parameter_names[i]}")
    return " ".join(parts).removeprefix("+ ")


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Parameters fitted to one set of samples, with their uncertainty.

    Many sets of standard parameters give the same torque; base parameters are the combinations that
    the data determine, and only they have a covariance.

    Attributes:
        names: Names of the standard parameters, e.g. "link_3.m" or "joint_2.coulomb".
        values: Values of the standard parameters, SI.
        base: Base parameters: columns, and B with base = B theta.
        base_covariance: Covariance of the base parameters, from the residuals (coloured noise,
            correlated joints).
        torque_rms: Residual RMS per joint over the fitted rows [N m].
        information: Weighted information that the estimator used.
        count: Rows fitted.
        condition_number: Condition number of the base columns, each scaled to unit length.
        shape: The friction model's nonlinear parameters, one row per joint, or None.
        load: Parameters whose rigid-body torque loads the gears, "measured", or None where friction
            does not depend on load.
        joint_weights: Weight factor of each joint's rows.
        score_covariance: Covariance of B' W' n, of which base_covariance is made; None if unknown.
        friction_scatter: Relative standard deviation of friction from run to run, per joint.
        from_data: Information share of each link and friction term where there was a prior; else
            None.
        dropped: Terms set to zero because the data do not support them.
        posterior: Covariance of the base parameters with the prior of the links, for predictions;
            None without prior.
        tied: Confounded parameters: known in their sum only, on this motion.
        settings: Settings that the estimator derived from the data.
        warnings: Messages for the user.
    """

    names: tuple[str, ...]
    values: Float[Array, " p"]
    base: BaseParameters
    base_covariance: Float[Array, "b b"]
    torque_rms: Float[Array, " j"]
    information: Information
    count: int
    condition_number: float
    shape: Float[Array, "j s"] | None = None
    load: Literal["measured"] | Float[Array, " p"] | None = None
    joint_weights: Float[Array, " j"] | None = None
    score_covariance: Float[Array, "b b"] | None = None
    friction_scatter: Float[Array, " j"] | None = None
    from_data: InformationShare | None = None
    dropped: tuple[str, ...] = ()
    posterior: Float[Array, "b b"] | None = None
    tied: tuple[str, ...] = ()
    settings: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        from taufit.core.number_text import count_text

        torque_rms = " ".join(f"{rms:.3g}" for rms in self.torque_rms)
        return (
            f"Estimate({self.base.rank} base parameters from {self.count} rows, "
            f"condition {self.condition_number:.3g})\n"
            f"  torque_rms per joint: {torque_rms} N m\n"
            f"  {count_text(len(self.warnings), 'warning')}; "
            "see .names, .values, .base, .base_covariance"
        )

    @property
    def base_names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def base_values(self) -> Float[Array, " b"]:
        return np.asarray(self.base.mapping @ self.values)

    @property
    def base_expressions(self) -> tuple[str, ...]:
        """Each base parameter as a sum of standard ones."""
        return tuple(expression(self.base, i) for i in range(self.base.rank))

    @property
    def base_std(self) -> Float[Array, " b"]:
        return np.sqrt(np.maximum(np.diag(self.base_covariance), 0.0))

    @property
    def relative_std(self) -> Float[Array, " b"]:
        """Standard deviation over value, in percent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * self.base_std / np.abs(self.base_values))

    @property
    def std(self) -> Float[Array, " p"]:
        """Standard deviations of the standard parameters; infinite for those not identifiable
        alone.
        """
        out = np.full(len(self.names), np.inf)
        base_index = {int(column): i for i, column in enumerate(self.base.columns)}
        for column in self.base.identifiable:
            if int(column) in base_index:
                out[column] = self.base_std[base_index[int(column)]]
        out[np.isin(self.names, self.tied)] = np.inf
        return out

    @property
    def intervals(self) -> Float[Array, "b 2"]:
        """95 % intervals of the base parameters."""
        middle, half = self.base_values, NORMAL_95 * self.base_std
        return np.stack([middle - half, middle + half], -1)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Accuracy class of each standard parameter.

        "well" below 10 % relative standard deviation, "fairly" below 30 %, "poorly" above;
        "only in combination" and "no effect" where it is not identifiable alone.
        """
        out = ["no effect"] * len(self.names)
        for i in self.base.in_combination:
            out[i] = "only in combination"
        relative = dict(zip(self.base.columns.tolist(), self.relative_std, strict=True))
        for i in self.base.identifiable:
            share = relative.get(int(i), np.inf)
            out[i] = "well" if share < 10.0 else "fairly" if share < 30.0 else "poorly"
        for i, name in enumerate(self.names):
            if name in self.dropped:
                out[i] = "not supported by the data"
            if name in self.tied:
                out[i] = "only in combination"
        return tuple(out)

    def torque_std(self, regressor: Float[Array, "n j p"]) -> Float[Array, "n j"]:
        """Standard deviation of a predicted torque: parameters and residual together."""
        rows = regressor[..., self.base.columns]
        parameter_variance = np.einsum("njb,bc,njc->nj", rows, self.base_covariance, rows)
        return np.asarray(np.sqrt(np.maximum(parameter_variance, 0.0) + self.torque_rms**2))

    def torque_interval(
        self, regressor: Float[Array, "n j p"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
        """95 % interval of the measured torque at rows W."""
        middle, half = regressor @ self.values, NORMAL_95 * self.torque_std(regressor)
        return middle - half, middle + half
