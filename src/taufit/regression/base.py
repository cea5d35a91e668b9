"""Which combinations of a torque model's parameters motion can show, as estimators use them."""

from __future__ import annotations

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics import BaseParameters, base_of_regressor
from taufit.dynamics.base_parameters import random_states, readable_order
from taufit.model.torque_model import TorqueModel


def base_of(model: TorqueModel, *, dropped: tuple[str, ...] = (), seed: int = 0) -> BaseParameters:
    """The base parameters of a model, found at random states, loads, temperatures and paths.

    Columns are kept from base to tip, so a base parameter is named after the first parameter of
    its combination. Parameters in `dropped` are held at zero and show nothing.
    """
    return base_of_regressor(
        typical_rows(model, dropped=dropped, seed=seed),
        names=model.names,
        rule="leftmost",
        order=readable_order(model.names, model.robot.joints),
    )


def typical_rows(
    model: TorqueModel, *, dropped: tuple[str, ...] = (), seed: int = 0
) -> Float[Array, "r p"]:
    """W at random states of a lively motion."""
    joints, names = model.robot.joints, model.names
    n = max(40, -(-4 * len(names) // joints))
    q, v, a = random_states(model.robot, n, seed)
    rng = np.random.default_rng((seed, 1))
    rows = model.regressor(
        q,
        v,
        a,
        load=30.0 * rng.normal(size=q.shape),
        temperature=rng.uniform(15.0, 55.0, q.shape),
        travel=rng.uniform(-0.5, 0.5, q.shape) ** 3,
    )
    rows[..., np.isin(names, dropped)] = 0.0
    return rows.reshape(-1, len(names))


def base_factor(base: BaseParameters, factor: Float[Array, "p p"]) -> Float[Array, "b b"]:
    """The triangle of the base parameters, from that of the standard ones."""
    return np.asarray(np.linalg.qr(factor[:, base.columns], mode="r"))


def nearest(
    base: BaseParameters,
    values: Float[Array, " b"],
    guess: Float[Array, " p"],
    scale: Float[Array, " p"],
) -> Float[Array, " p"]:
    """The parameters with these base values that are nearest to a guess, in units of scale."""
    scaled = base.mapping * scale
    step, *_ = np.linalg.lstsq(scaled, values - base.mapping @ guess, rcond=None)
    return guess + scale * step


def expression(base: BaseParameters, index: int) -> str:
    """A base parameter as a sum of standard ones, e.g. "link_1.Izz + link_2.Iyy"."""
    row = base.mapping[index]
    parts = []
    for i in np.flatnonzero(np.abs(row) > 1e-9):
        size = abs(row[i])
        factor = "" if np.isclose(size, 1.0, rtol=1e-9) else f"{size:.6g} "
        parts.append(f"{'-' if row[i] < 0 else '+'} {factor}{base.parameter_names[i]}")
    return " ".join(parts).removeprefix("+ ")
