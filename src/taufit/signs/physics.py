"""Choosing among sign vectors that fit equally well: by what bodies and friction can do."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.signs.data import SearchData
from taufit.signs.quadratic import SignForm
from taufit.signs.search import SignSearch, signs_within
from taufit.signs.segments import Segmentation
from taufit.terms import DISSIPATIVE, TermInput

# Cost by which a runner-up must lose, in units of the noise variance: 5 standard deviations.
RADIUS = 25.0


def choose_signs_by_physics(
    data: SearchData, cut: Segmentation, form: SignForm, search: SignSearch
) -> tuple[Int[Array, " s"], Float[Array, " s"], Bool[Array, " s"]]:
    """Choose among near-optimal sign vectors, s and -s included, by what bodies can do.

    Kinetic energy is linear in the parameters and positive for every arm that can exist; friction
    takes power. A choice of signs whose parameters break one of these, k'theta < 0, fits worse by
    (k'theta / std)^2 once it is made to keep it: that much is added to its cost.

    Returns signs, margins, and which signs are undecided as a block.
    """
    signs, margins = search.signs.astype(np.int64), search.margins.copy()
    undecided = np.zeros(len(signs), bool)
    for b in range(search.block.max(initial=-1) + 1):
        members = np.flatnonzero(search.block == b)
        held = form.anchor is not None and form.anchor in members
        joints = np.unique(cut.joint[members[members < len(cut)]])
        level = functional_levels(data, form, joints, members)
        best = signs[members]
        if not held and broken_physics(level, -best) < broken_physics(level, best):
            best = -best
        penalty = broken_physics(level, best)
        if np.any(np.isfinite(margins[members])) or penalty > 1.0:
            best, margins[members], penalty = _weigh(
                form, members, level, best, penalty, held, margins[members]
            )
        if not held and broken_physics(level, -best) - penalty < RADIUS:
            undecided[members] = True
        signs[members] = best
    return signs, margins, undecided


def functional_levels(
    data: SearchData, form: SignForm, joints: Int[Array, " k"], members: Any = slice(None)
) -> Float[Array, "f s"]:
    """What each sign adds to the positive functionals, in their standard deviations."""
    key = tuple(joints.tolist())
    if key not in data.functionals:
        data.functionals[key] = positive_functionals(data, joints)
    maps = data.functionals[key]
    deviation = np.array([form.deviation(k) for k in maps])
    return (maps @ form.moments[:, members]) / np.maximum(deviation, 1e-300)[:, None]


def broken_physics(level: Float[Array, "k s"], signs: Int[Array, "... s"]) -> Any:
    """Extra cost of the worst broken inequality."""
    worst = np.min(np.minimum(signs @ level.T, 0.0), axis=-1, initial=0.0)
    return worst**2


def _weigh(
    form: SignForm,
    members: Int[Array, " m"],
    level: Float[Array, "k m"],
    best: Int[Array, " m"],
    penalty: float,
    held: bool,
    margins: Float[Array, " m"],
) -> tuple[Int[Array, " m"], Float[Array, " m"], float]:
    """The best of the near-optimal vectors with penalties added, and margins against it."""
    quadratic = form.quadratic[np.ix_(members, members)]
    anchor = len(members) - 1 if held else None
    table, costs, ended = signs_within(
        quadratic, min(penalty, 4.0 * RADIUS) + RADIUS, anchor=anchor
    )
    if not held:
        table, costs = np.vstack([table, -table]), np.concatenate([costs, costs])
    # A list cut short need not hold the best.
    table = np.vstack([best, table]).astype(np.int64)
    costs = np.append(best @ quadratic @ best, costs)
    total = costs + broken_physics(level, table)
    top = int(np.argmin(total))
    chosen = table[top]
    # Too many to list: what the search knows of each sign alone has to do.
    out = np.full(len(members), np.inf) if ended else margins.copy()
    extra = np.maximum(total - total[top], 0.0)
    near = np.flatnonzero(extra < RADIUS)
    mirrored = (table[near] != chosen).mean(1) == 1.0
    for k in near[~mirrored]:
        changed = table[k] != chosen
        out[changed] = np.minimum(out[changed], extra[k])
    return chosen, out, float(total[top] - costs[top])


def positive_functionals(data: SearchData, joints: Int[Array, " k"]) -> Float[Array, "f b"]:
    """Linear maps of the parameters that are positive for every arm: energies and friction powers.

    Kinetic energy needs no gravity: 1/2 v'(Y(q, 0, v) - Y(q, 0, 0)) theta, summed over recorded
    states, for these joints moving together and each alone; friction power for each alone.
    """
    samples, model = data.samples, data.model
    chosen = np.linspace(0, len(samples) - 1, min(len(samples), 60)).astype(int)
    q = samples.position[chosen]
    speed = np.zeros_like(q)
    speed[:, joints] = samples.velocity[np.ix_(chosen, joints)]
    zero = np.zeros_like(q)
    columns, layout = model.columns, model.layout
    weight = columns.links(q, zero, zero)
    out = []
    for moving in ([*joints], *([i] for i in joints)) if len(joints) > 1 else ([*joints],):
        v = np.zeros_like(q)
        v[:, moving] = speed[:, moving]
        energy = np.zeros(len(model.names))
        links = columns.links(q, zero, v) - weight
        energy[layout.links] = 0.5 * np.einsum("ni,nip->p", v, links)
        if model.has("rotor"):
            energy[layout.block_slice("rotor")] = 0.5 * np.einsum("ni,nip->p", v, columns.rotors(v))
        out.append(energy[data.rows.kept])
    # What builds up along the path takes its full power in steady motion.
    friction = model.steady().friction_columns(
        TermInput(
            speed, q, _some(data.load, chosen), temperature=_some(samples.temperature, chosen)
        )
    )
    terms = (model.nonnegative & layout.of_kind(DISSIPATIVE))[layout.drive]
    for i in joints:
        power = np.zeros(len(model.names))
        taken = np.einsum("n,np->p", speed[:, i], friction[:, i])
        power[layout.drive] = np.where(terms, taken, 0.0)
        if np.any(power[data.rows.kept]):
            out.append(power[data.rows.kept])
    return np.array(out)


def _some(values: Float[Array, "n j"] | None, chosen: Int[Array, " k"]) -> Array | None:
    return None if values is None else values[chosen]
