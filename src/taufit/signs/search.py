"""Optimal sign vector with proof: min s'Qs over s in {-1, 1}^S.

With Q = R'R the cost is a sum over rows, |R s|^2, and row k depends on the signs k, k+1, ... only;
so a depth-first search from the last row up prunes as soon as the partial cost exceeds that of the
best vector (sphere decoding). An exhausted search is a proof. Variables are eliminated smallest
Schur diagonal first: the least informative one is decided last.

If that search grows too long, Q is shifted by the dual of the semidefinite relaxation,

    s'Qs = sum(lambda) + s'(Q - diag(lambda)) s,      Q - diag(lambda) >= 0,

which keeps the order of the vectors and raises every partial cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass

try:
    from taufit import _kernel
except ImportError:  # no compiled kernel in this installation
    _kernel = None

Leaf = Callable[[float, Float[Array, " s"]], float]


@dataclass(frozen=True, slots=True, eq=False)
class SignSearch:
    """Best sign vector of one quadratic form, with certificate.

    Attributes:
        signs: Minimiser.
        cost: Minimum of s'Qs.
        lower_bound: Proven lower bound of s'Qs.
        margins: Per sign, extra cost of the cheapest vector with that sign reversed; infinite if
            above `radius`.
        radius: Largest margin searched.
        certified: Whether `signs` is proven optimal. If not, margins are zero; if so, a margin
            that could not be determined is zero.
        block: Index of the group of dependent signs; a block without an anchor has one free sign.
        nodes: Number of partial sign vectors visited.
    """

    signs: Int[Array, " s"]
    cost: float
    lower_bound: float
    margins: Float[Array, " s"]
    radius: float
    certified: bool
    block: Int[Array, " s"]
    nodes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Triangle:
    """s'Qs = constant + |R s[order]|^2."""

    order: Int[Array, " s"]
    factor: Float[Array, "s s"]
    constant: float = 0.0


def search_signs(
    quadratic: Float[Array, "s s"],
    *,
    anchor: int | None = None,
    radius: float = 25.0,
    node_cap: int = 1_000_000,
) -> SignSearch:
    """Solve min s'Qs exactly, block by block.

    Args:
        quadratic: Q, positive semidefinite.
        anchor: Index of a variable whose sign is +1; without one, s and -s are equivalent.
        radius: Margins up to this cost above the optimum are found exactly.
        node_cap: Partial vectors to visit before the shifted form is used, and again there.
    """
    size = len(quadratic)
    block = independent_blocks(quadratic)
    signs = np.ones(size, np.int8)
    margins = np.full(size, np.inf)
    cost, lower_bound, nodes, certified = 0.0, 0.0, 0, True
    for b in range(block.max(initial=-1) + 1):
        members = np.flatnonzero(block == b)
        local = np.flatnonzero(members == anchor) if anchor is not None else np.empty(0, int)
        solution = _search_block(
            quadratic[np.ix_(members, members)],
            int(local[0]) if len(local) else None,
            radius,
            node_cap,
        )
        signs[members], margins[members] = solution.signs, solution.margins
        cost, lower_bound, nodes = (
            cost + solution.cost,
            lower_bound + solution.lower_bound,
            nodes + solution.nodes,
        )
        certified = certified and solution.certified
    return SignSearch(signs, cost, lower_bound, margins, radius, certified, block, nodes)


def independent_blocks(quadratic: Float[Array, "s s"], tolerance: float = 1e-9) -> Int[Array, " s"]:
    """Connected components of Q: signs in different components are independent."""
    if len(quadratic) == 0:
        return np.zeros(0, np.int64)
    scale = np.sqrt(np.maximum(np.diag(quadratic), 0.0))
    linked = np.abs(quadratic) > tolerance * np.outer(scale, scale)
    # Breadth first; the signs of a robot nearly always depend on each other: two steps.
    block = np.full(len(linked), -1, np.int64)
    number = 0
    while np.any(block < 0):
        reached = np.zeros(len(linked), bool)
        front = np.zeros(len(linked), bool)
        front[np.argmax(block < 0)] = True
        while np.any(front):
            reached |= front
            front = np.any(linked[front], axis=0) & ~reached
        block[reached] = number
        number += 1
    return block


def _search_block(
    quadratic: Float[Array, "s s"], anchor: int | None, radius: float, node_cap: int
) -> SignSearch:
    size = len(quadratic)
    no_blocks = np.zeros(size, np.int64)
    if size == 1:
        value = float(quadratic[0, 0])
        return SignSearch(
            np.ones(1, np.int8), value, value, np.full(1, np.inf), radius, True, no_blocks, 1
        )
    # Rounding may leave Q slightly indefinite.
    regular = quadratic + 1e-9 * np.diag(np.diag(quadratic))
    # Without an anchor signs are relative to the most informative segment.
    has_no_anchor, anchor = anchor is None, _reference(regular, anchor)
    triangle = triangle_of(regular, anchor)
    fixed = _fix_first_sign(triangle, anchor)
    best, best_cost, nodes, complete = sphere_decode(triangle.factor, fixed, np.inf, node_cap)
    lower_bound = best_cost if complete else 0.0
    if not complete:
        shifted = factor_shifted(regular, anchor)
        start_signs = _start(regular, shifted, anchor)
        start_cost = float(start_signs @ regular @ start_signs)
        if start_cost < best_cost or not np.any(best):
            best, best_cost = start_signs[triangle.order].astype(np.int8), start_cost
        signs_so_far = np.empty(size, np.int8)
        signs_so_far[triangle.order] = best
        triangle, fixed = shifted, _fix_first_sign(shifted, anchor)
        best = signs_so_far[triangle.order]
        if fixed[-1] * best[-1] < 0:
            best = (-best).astype(np.int8)
        bound = (best_cost - triangle.constant) * (1 + 1e-12) + 1e-12 * abs(best_cost)
        better, better_cost, more_nodes, complete = sphere_decode(
            triangle.factor, fixed, bound, node_cap
        )
        nodes += more_nodes
        if np.any(better):
            best, best_cost = better, better_cost + triangle.constant
        lower_bound = best_cost if complete else triangle.constant
    margin = np.zeros(size)
    if complete:
        weights = np.diag(quadratic)[triangle.order] if has_no_anchor else np.empty(0)
        inner = best_cost - triangle.constant
        margin, more_nodes = bounded_margins(
            triangle.factor, fixed, best, weights, inner, radius, node_cap
        )
        nodes += more_nodes
    signs, margins = np.empty(size, np.int8), np.empty(size)
    signs[triangle.order], margins[triangle.order] = best, margin
    cost = float(signs @ quadratic @ signs)
    return SignSearch(
        signs, cost, min(lower_bound, cost), margins, radius, complete, no_blocks, nodes
    )


def _reference(quadratic: Float[Array, "s s"], anchor: int | None) -> int:
    return int(np.argmax(np.diag(quadratic))) if anchor is None else anchor


def _fix_first_sign(triangle: _Triangle, anchor: int) -> Int[Array, " s"]:
    """Fix the first sign: the anchor is +1, and without one s and -s are equivalent."""
    fixed = np.zeros(len(triangle.order), np.int8)
    fixed[-1] = 1
    assert triangle.order[-1] == anchor
    return fixed


def triangle_of(quadratic: Float[Array, "s s"], anchor: int) -> _Triangle:
    """Q[order][:, order] = R'R, smallest Schur diagonal eliminated first, the anchor last."""
    factor = _kernel.sign_factor if _kernel else factor_in_python
    order, upper = factor(np.ascontiguousarray(quadratic, float), int(anchor))
    return _Triangle(order.astype(np.int64), upper)


def sphere_decode(
    factor: Float[Array, "s s"], fixed: Int[Array, " s"], bound: float, cap: int
) -> tuple[Int[Array, " s"], float, int, bool]:
    """Cheapest s with |R s|^2 < bound, its cost, nodes visited, and whether the search completed.

    The signs are zeros if nothing is cheaper than the bound.
    """
    return (_kernel.sign_decode if _kernel else decode_in_python)(factor, fixed, bound, cap)


def bounded_margins(
    factor: Float[Array, "s s"],
    fixed: Int[Array, " s"],
    best: Int[Array, " s"],
    weights: Float[Array, " w"],
    least: float,
    radius: float,
    cap: int,
) -> tuple[Float[Array, " s"], int]:
    """Extra cost of reversing each sign, as far as it is below `radius`.

    First by listing all vectors within the radius; if there are too many, sign by sign.
    """
    bound = least + max(radius, 1e-12 * least)
    walk = _kernel.sign_margins if _kernel else margins_in_python
    margins, _, nodes, complete = walk(factor, fixed, best, weights, least, bound, cap, 20_000)
    if complete:
        return margins, nodes
    for i in np.flatnonzero(np.isinf(margins) & (fixed == 0)):
        reverse = fixed.copy()
        reverse[i] = -best[i]
        signs, cost, more_nodes, is_complete = sphere_decode(
            factor, reverse, bound, max(cap // 50, 1000)
        )
        nodes += more_nodes
        if np.any(signs) or not is_complete:
            margins[i] = max(cost - least, 0.0) if np.any(signs) else 0.0
    return margins, nodes


def enumerate_signs(
    quadratic: Float[Array, "s s"],
    radius: float,
    *,
    anchor: int | None = None,
    maximum_count: int = 4096,
    node_cap: int = 1_000_000,
) -> tuple[Int[Array, "k s"], Float[Array, " k"], bool]:
    """Sign vectors within `radius` of the optimum, cheapest first, and whether these are all.

    Only one of s and -s is listed if there is no anchor.
    """
    regular = quadratic + 1e-9 * np.diag(np.diag(quadratic))
    anchor = _reference(regular, anchor)
    triangle = triangle_of(regular, anchor)
    fixed = _fix_first_sign(triangle, anchor)
    _, best_cost, _, complete = sphere_decode(triangle.factor, fixed, np.inf, node_cap)
    listing = _kernel.sign_list if _kernel else list_sign_vectors
    vectors, costs, _, is_complete = listing(
        triangle.factor, fixed, best_cost + radius, node_cap, maximum_count
    )
    order = np.argsort(costs, kind="stable")
    table = np.empty_like(vectors)
    table[:, triangle.order] = vectors[order]
    exact = np.einsum("ki,ij,kj->k", table, quadratic, table, optimize=True)
    return table, exact, complete and is_complete


def sign_candidates(
    quadratic: Float[Array, "s s"],
    *,
    anchor: int | None = None,
    first_radius: float = 25.0,
    maximum_count: int = 4096,
) -> Iterator[tuple[float, Int[Array, " s"]]]:
    """Sign vectors in order of increasing s'Qs; both s and -s if there is no anchor.

    Ends after about `maximum_count` vectors, or if finding more would take too long.
    """
    radius, count = first_radius, 0
    while count < maximum_count:
        table, costs, complete = enumerate_signs(
            quadratic, radius, anchor=anchor, maximum_count=maximum_count, node_cap=3_000_000
        )
        # The order of a truncated list is not reliable.
        if not complete:
            return
        for cost, signs in zip(costs[count:], table[count:], strict=True):
            yield float(cost), signs
            if anchor is None:
                yield float(cost), -signs
        count = len(costs)
        if count >= 2 ** (len(quadratic) - 1):
            return
        radius *= 2.0


def factor_shifted(quadratic: Float[Array, "s s"], anchor: int) -> _Triangle:
    """Factor of Q - diag(lambda), lambda from the semidefinite relaxation.

    min <Q, X> over X >= 0 with unit diagonal is solved by coordinate descent on X = VV'; its dual
    diagonal, lowered until Q - diag(lambda) >= 0, gives the bound sum(lambda).
    """
    size = len(quadratic)
    rank = int(np.ceil(np.sqrt(2 * size))) + 1
    start = np.random.default_rng(0).normal(size=(size, rank))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    mix = _kernel.sign_mix if _kernel else relax_sign_vectors
    _, norms = mix(np.ascontiguousarray(quadratic), start, 400, 1e-9)
    dual = np.diag(quadratic) - norms
    shifted = quadratic - np.diag(dual)
    slack = np.linalg.eigvalsh(shifted)[0]
    lift = max(0.0, -slack) + 1e-10 * np.trace(quadratic) / size
    triangle = triangle_of(shifted + lift * np.eye(size), anchor)
    return _Triangle(triangle.order, triangle.factor, float(np.sum(dual) - lift * size))


def _start(quadratic: Float[Array, "s s"], shifted: _Triangle, anchor: int) -> Float[Array, " s"]:
    """Good initial sign vector for pruning: first leaf of the shifted form, then single flips."""
    fixed = _fix_first_sign(shifted, anchor)
    first_leaf, _, _, _ = sphere_decode(shifted.factor, fixed, np.inf, 4 * len(fixed))
    signs = np.ones(len(fixed))
    signs[shifted.order] = np.where(first_leaf == 0, 1, first_leaf)
    may_flip = np.arange(len(fixed)) != anchor
    product = quadratic @ signs
    for _ in range(20 * len(fixed)):
        # Flipping i changes the cost by -4 s_i (Q s)_i + 4 Q_ii.
        change = -signs * product + np.diag(quadratic)
        i = int(np.argmin(np.where(may_flip, change, np.inf)))
        if change[i] >= -1e-12 * abs(quadratic[i, i]):
            break
        product -= 2.0 * signs[i] * quadratic[:, i]
        signs[i] = -signs[i]
    return signs


# Python versions of the kernel's functions.


def factor_in_python(
    quadratic: Float[Array, "s s"], last: int
) -> tuple[Int[Array, " s"], Float[Array, "s s"]]:
    """NumPy version of the kernel's `sign_factor`."""
    work = np.array(quadratic, float)
    size = len(work)
    order = np.arange(size)
    minimum_pivot = max(np.diag(work).max(initial=0.0), 1e-300) * 1e-15
    for k in range(size):
        choice = np.where(order[k:] == last, np.inf, np.diag(work)[k:])
        p = k + int(np.argmin(choice))
        swap = np.arange(size)
        swap[[k, p]] = p, k
        work, order = work[np.ix_(swap, swap)], order[swap]
        pivot = np.sqrt(max(work[k, k], minimum_pivot))
        row = work[k, k + 1 :] / pivot
        work[k, k], work[k, k + 1 :] = pivot, row
        work[k + 1 :, k + 1 :] -= np.outer(row, row)
        # Rows above are already part of R: the swap of their columns is right, and the mirrored
        # entries below the diagonal are ignored.
        work[k + 1 :, k] = row
    return order, np.triu(work)


def _walk(
    factor: Float[Array, "s s"], fixed: Int[Array, " s"], bound: float, cap: int, leaf: Leaf
) -> tuple[int, bool]:
    size = len(fixed)
    if size == 0:
        return 0, True
    centre, partial_cost, signs = np.zeros(size), np.zeros(size + 1), np.zeros(size)
    untried = np.zeros(size, int)
    nodes, k, descends = 0, size - 1, True
    while True:
        if descends:
            centre[k] = factor[k, k + 1 :] @ signs[k + 1 :]
            untried[k] = int(fixed[k] == 0)
            signs[k] = fixed[k] if fixed[k] else (-1.0 if centre[k] > 0.0 else 1.0)
        else:
            while untried[k] == 0:
                k += 1
                if k == size:
                    return nodes, True
            signs[k], untried[k] = -signs[k], 0
        nodes += 1
        if nodes > cap:
            return nodes, False
        cost = partial_cost[k + 1] + (factor[k, k] * signs[k] + centre[k]) ** 2
        if cost >= bound:
            untried[k], descends = 0, False
            continue
        partial_cost[k] = cost
        if k == 0:
            bound = leaf(float(cost), signs)
            if bound < 0.0:
                return nodes, False
            descends = False
        else:
            k, descends = k - 1, True


def decode_in_python(
    factor: Float[Array, "s s"], fixed: Int[Array, " s"], bound: float, cap: int
) -> tuple[Int[Array, " s"], float, int, bool]:
    """NumPy version of the kernel's `sign_decode`."""
    best, best_cost = np.zeros(len(fixed), np.int8), bound

    def leaf(cost: float, signs: Float[Array, " s"]) -> float:
        nonlocal best, best_cost
        best, best_cost = signs.astype(np.int8), cost
        return cost

    nodes, complete = _walk(factor, fixed, bound, cap, leaf)
    return best, best_cost, nodes, complete


def margins_in_python(
    factor: Float[Array, "s s"],
    fixed: Int[Array, " s"],
    best: Int[Array, " s"],
    weights: Float[Array, " s"],
    least: float,
    bound: float,
    cap: int,
    maximum_count: int,
) -> tuple[Float[Array, " s"], int, int, bool]:
    """NumPy version of the kernel's `sign_margins`."""
    margin = np.full(len(fixed), np.inf)
    count = 0

    def leaf(cost: float, signs: Float[Array, " s"]) -> float:
        nonlocal count
        changed: Bool[Array, " s"] = signs * best < 0.0
        if len(weights) and weights[changed].sum() > 0.5 * weights.sum():
            changed = ~changed
        margin[changed] = np.minimum(margin[changed], cost - least)
        count += 1
        return -1.0 if count >= maximum_count else bound

    nodes, complete = _walk(factor, fixed, bound, cap, leaf)
    return margin, count, nodes, complete


def list_sign_vectors(
    factor: Float[Array, "s s"], fixed: Int[Array, " s"], bound: float, cap: int, maximum_count: int
) -> tuple[Int[Array, "k s"], Float[Array, " k"], int, bool]:
    """NumPy version of the kernel's `sign_list`."""
    vectors: list[Int[Array, " s"]] = []
    costs: list[float] = []

    def leaf(cost: float, signs: Float[Array, " s"]) -> float:
        if len(costs) >= maximum_count:
            return -1.0
        costs.append(cost)
        vectors.append(signs.astype(np.int8))
        return bound

    nodes, complete = _walk(factor, fixed, bound, cap, leaf)
    table = np.array(vectors, np.int8).reshape(len(vectors), len(fixed))
    return table, np.array(costs), nodes, complete


def relax_sign_vectors(
    quadratic: Float[Array, "s s"], start: Float[Array, "s d"], sweeps: int, tolerance: float
) -> tuple[Float[Array, "s d"], Float[Array, " s"]]:
    """NumPy version of the kernel's `sign_mix`."""
    vectors, norms = start.copy(), np.zeros(len(start))
    hollow = quadratic - np.diag(np.diag(quadratic))
    for _ in range(sweeps):
        gain = 0.0
        for i in range(len(start)):
            pull = hollow[i] @ vectors
            norms[i] = np.linalg.norm(pull)
            gain += norms[i] + pull @ vectors[i]
            if norms[i] > 0.0:
                vectors[i] = -pull / norms[i]
        if gain <= tolerance * max(norms.sum(), 1e-300):
            break
    return vectors, norms
