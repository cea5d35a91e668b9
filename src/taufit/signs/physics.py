"""Choice among sign vectors that fit equally well, by positive energy and passive friction."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signs.data import SearchData
from taufit.signs.quadratic_form import QuadraticForm
from taufit.signs.search import SignSearch, enumerate_signs
from taufit.signs.segments import Segmentation
from taufit.terms import DISSIPATIVE, TermInput

# Minimum cost difference to the second-best, in noise variances: 5 standard deviations.
MARGIN_LIMIT = 25.0


def choose_signs_by_physics(
    data: SearchData, segmentation: Segmentation, form: QuadraticForm, search: SignSearch
) -> tuple[Int[Array, " s"], Float[Array, " s"], Bool[Array, " s"]]:
    """Choose among near-optimal sign vectors, s and -s included, by physical consistency.

    Kinetic energy is linear in the parameters and positive for every robot; friction dissipates
    power. Signs whose parameters violate one of these, k'theta < 0, fit worse by (k'theta / std)^2
    with that constraint: this is added to their cost.

    Returns signs, margins, and which signs are undecided as a block.
    """
    signs, margins = search.signs.astype(np.int64), search.margins.copy()
    undecided = np.zeros(len(signs), bool)
    for b in range(search.block.max(initial=-1) + 1):
        members = np.flatnonzero(search.block == b)
        is_anchored = form.anchor is not None and form.anchor in members
        joints = np.unique(segmentation.joint[members[members < len(segmentation)]])
        level = functional_contributions(data, form, joints, members)
        best = signs[members]
        if not is_anchored and inconsistency_cost(level, -best) < inconsistency_cost(level, best):
            best = -best
        penalty = inconsistency_cost(level, best)
        if np.any(np.isfinite(margins[members])) or penalty > 1.0:
            best, margins[members], penalty = _choose_with_penalty(
                form, members, level, best, penalty, is_anchored, margins[members]
            )
        if not is_anchored and inconsistency_cost(level, -best) - penalty < MARGIN_LIMIT:
            undecided[members] = True
        signs[members] = best
    return signs, margins, undecided


def functional_contributions(
    data: SearchData, form: QuadraticForm, joints: Int[Array, " k"], members: Any = slice(None)
) -> Float[Array, "f s"]:
    """Contribution of each sign to the positive functionals, in their standard deviations."""
    key = tuple(joints.tolist())
    if key not in data.functionals:
        data.functionals[key] = positive_functionals(data, joints)
    maps = data.functionals[key]
    deviation = np.array([form.deviation(k) for k in maps])
    return (maps @ form.moments[:, members]) / np.maximum(deviation, 1e-300)[:, None]


def inconsistency_cost(level: Float[Array, "k s"], signs: Int[Array, "... s"]) -> Any:
    """Extra cost of the most violated inequality."""
    worst = np.min(np.minimum(signs @ level.T, 0.0), axis=-1, initial=0.0)
    return worst**2


def _choose_with_penalty(
    form: QuadraticForm,
    members: Int[Array, " m"],
    level: Float[Array, "k m"],
    best: Int[Array, " m"],
    penalty: float,
    is_anchored: bool,
    margins: Float[Array, " m"],
) -> tuple[Int[Array, " m"], Float[Array, " m"], float]:
    """Best of the near-optimal vectors with penalties added, and margins relative to it."""
    quadratic = form.quadratic[np.ix_(members, members)]
    anchor = len(members) - 1 if is_anchored else None
    table, costs, is_complete = enumerate_signs(
        quadratic, min(penalty, 4.0 * MARGIN_LIMIT) + MARGIN_LIMIT, anchor=anchor
    )
    if not is_anchored:
        table, costs = np.vstack([table, -table]), np.concatenate([costs, costs])
    # A truncated list need not contain the best.
    table = np.vstack([best, table]).astype(np.int64)
    costs = np.append(best @ quadratic @ best, costs)
    total = costs + inconsistency_cost(level, table)
    best_index = int(np.argmin(total))
    best_signs = table[best_index]
    # If there are too many to list, the margins of the search are used.
    new_margins = np.full(len(members), np.inf) if is_complete else margins.copy()
    extra = np.maximum(total - total[best_index], 0.0)
    close = np.flatnonzero(extra < MARGIN_LIMIT)
    mirrored = (table[close] != best_signs).mean(1) == 1.0
    for k in close[~mirrored]:
        changed = table[k] != best_signs
        new_margins[changed] = np.minimum(new_margins[changed], extra[k])
    return best_signs, new_margins, float(total[best_index] - costs[best_index])


def positive_functionals(data: SearchData, joints: Int[Array, " k"]) -> Float[Array, "f b"]:
    """Linear maps of the parameters that are positive for every robot: energies, friction powers.

    Kinetic energy needs no gravity: 1/2 v'(Y(q, 0, v) - Y(q, 0, 0)) theta, summed over recorded
    states, for these joints moving together and each alone; friction power for each alone.
    """
    samples, model = data.samples, data.model
    rows = np.linspace(0, len(samples) - 1, min(len(samples), 60)).astype(int)
    q = samples.position[rows]
    speed = np.zeros_like(q)
    speed[:, joints] = samples.velocity[np.ix_(rows, joints)]
    zero = np.zeros_like(q)
    columns, layout = model.columns, model.layout
    gravity = columns.links(q, zero, zero)
    functionals = []
    for moving in ([*joints], *([i] for i in joints)) if len(joints) > 1 else ([*joints],):
        v = np.zeros_like(q)
        v[:, moving] = speed[:, moving]
        energy = np.zeros(len(model.names))
        links = columns.links(q, zero, v) - gravity
        energy[layout.links] = 0.5 * np.einsum("ni,nip->p", v, links)
        if model.has("rotor"):
            energy[layout.block_slice("rotor")] = 0.5 * np.einsum("ni,nip->p", v, columns.rotors(v))
        functionals.append(energy[data.rows.parameters])
    # Pre-sliding friction dissipates its full power in steady motion.
    friction = model.steady_state().friction_columns(
        TermInput(
            speed,
            q,
            _select_rows(data.load, rows),
            temperature=_select_rows(samples.temperature, rows),
        )
    )
    terms = (model.nonnegative & layout.of_kind(DISSIPATIVE))[layout.drive]
    for i in joints:
        power = np.zeros(len(model.names))
        dissipated = np.einsum("n,np->p", speed[:, i], friction[:, i])
        power[layout.drive] = np.where(terms, dissipated, 0.0)
        if np.any(power[data.rows.parameters]):
            functionals.append(power[data.rows.parameters])
    return np.array(functionals)


def _select_rows(values: Float[Array, "n j"] | None, rows: Int[Array, " k"]) -> Array | None:
    return None if values is None else values[rows]
