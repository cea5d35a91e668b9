"""URDFs grown by a grammar: trees, loops, limits and names nobody means, each well-formed XML."""

from __future__ import annotations

from html import escape

import numpy as np

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "ball", "", "x")
_NAMES = (
    "", " ", "a b", "\u202eevil", "é", "名", "x" * 300, "a/b", "../x", "joint_1", "base",
    "<", "&", '"', "{}", "%s", "None", "0", "-1", "nan", "joint 1\u2028",
)  # fmt: skip
_NUMBERS = ("0", "-1", "1e-320", "1e9", "1e308", "nan", "inf", "", "x", "0x1", "1e999", "- 1")


def _pick(rng: np.random.Generator, things: tuple[str, ...]) -> str:
    return things[int(rng.integers(len(things)))]


def _number(rng: np.random.Generator, low: float, high: float, odd: float) -> str:
    return _pick(rng, _NUMBERS) if rng.random() < odd else f"{rng.uniform(low, high):.5g}"


def _triple(rng: np.random.Generator, low: float, high: float, odd: float) -> str:
    count = 3 if rng.random() > odd else int(rng.integers(0, 6))
    return " ".join(_number(rng, low, high, odd) for _ in range(count))


def _link(rng: np.random.Generator, name: str, odd: float) -> str:
    if rng.random() < 0.1:
        return f'<link name="{name}"/>'
    mass = "0" if rng.random() < 0.05 else _number(rng, 0.1, 8.0, odd)
    diagonal = [_number(rng, 1e-3, 0.2, odd) for _ in range(3)]
    mixed = [_number(rng, -1e-3, 1e-3, odd) for _ in range(3)]
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    entries = " ".join(f'{k}="{v}"' for k, v in zip(names, diagonal + mixed, strict=True))
    return (
        f'<link name="{name}"><inertial><origin xyz="{_triple(rng, -0.3, 0.3, odd)}" '
        f'rpy="{_triple(rng, -3, 3, odd)}"/><mass value="{mass}"/><inertia {entries}/></inertial>'
        "</link>"
    )


def _joint(rng: np.random.Generator, name: str, parent: str, child: str, odd: float) -> str:
    kind = _pick(rng, _KINDS) if rng.random() < odd else _KINDS[int(rng.integers(4))]
    axis = "0 0 0" if rng.random() < 0.3 * odd else _triple(rng, -1, 1, odd)
    low, high = rng.uniform(-3, 0), rng.uniform(0, 3)
    if rng.random() < odd:
        low, high = high, low
    limit = (
        f'<limit lower="{low:.3g}" upper="{high:.3g}" velocity="{_number(rng, 0.1, 4, odd)}" '
        f'effort="{_number(rng, 1, 300, odd)}"/>'
    )
    mimic = f'<mimic joint="{name}" multiplier="2"/>' if rng.random() < odd else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_triple(rng, -0.5, 0.5, odd)}" rpy="{_triple(rng, -3, 3, odd)}"/>'
        f'<axis xyz="{axis}"/>{limit if rng.random() > odd else ""}{mimic}</joint>'
    )


def grown(rng: np.random.Generator) -> str:
    """A robot of 1 to 40 joints; the odd things in it are between none and many."""
    odd = float(rng.choice([0.0, 0.01, 0.05, 0.3]))
    count = int(rng.integers(1, 12)) if rng.random() < 0.9 else int(rng.integers(12, 41))
    links = ["base"] + [f"l{k}" for k in range(1, count + 1)]
    names = [f"j{k}" for k in range(1, count + 1)]
    for group in (links, names):
        while rng.random() < odd:
            group[int(rng.integers(len(group)))] = escape(_pick(rng, _NAMES))
    parts = [_link(rng, name, odd) for name in links]
    branched = rng.random() < 0.3
    for k, name in enumerate(names):
        parent = links[int(rng.integers(k + 1))] if branched else links[k]
        parts.append(_joint(rng, name, parent, links[k + 1], odd))
    while rng.random() < odd:  # a loop, a second parent, a joint to itself, a link nobody has
        ends = [links[int(rng.integers(len(links)))] for _ in range(2)]
        child = "nothing" if rng.random() < 0.2 else ends[1]
        parts.append(_joint(rng, f"x{len(parts)}", ends[0], child, odd))
    order = list(range(len(parts)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return f'<robot name="grown">{"".join(parts[i] for i in order)}</robot>'
