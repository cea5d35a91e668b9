"""The compiled functions called with shapes, types and values that do not fit together.

Every call must return or raise an exception of Python; run under `make sanitize`, any read or
write beyond an array ends the process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.fuzz.binding_classes import class_calls


def _array(rng: np.random.Generator, dtype: Any = float) -> Any:
    """An array of up to three axes, sometimes of another type, order or not an array at all."""
    kind = rng.random()
    if kind < 0.03:
        return [None, 3, "x", [], [[1.0]], np.zeros((2, 2, 2, 2))][rng.integers(6)]
    shape = tuple(int(n) for n in rng.integers(0, 7, size=rng.integers(1, 4)))
    if rng.random() < 0.5:
        # Most calls should get past the number of axes.
        shape = (shape * 2)[:2] if rng.random() < 0.6 else shape[:1]
    values = rng.normal(size=shape)
    if dtype is not float:
        values = np.sign(values)
    if rng.random() < 0.1 and values.size:
        values.flat[0] = (np.nan, np.inf, 1e308, -np.inf)[rng.integers(4)]
    with np.errstate(invalid="ignore", over="ignore"):
        out = values.astype(
            dtype if rng.random() < 0.9 else (np.float32, np.int64)[rng.integers(2)]
        )
    return np.asfortranarray(out) if rng.random() < 0.1 else out


def _square(rng: np.random.Generator, n: int) -> Any:
    return _array(rng) if rng.random() < 0.3 else rng.normal(size=(n, n))


def _signs(rng: np.random.Generator, n: int) -> Any:
    if rng.random() < 0.3:
        return _array(rng, np.int8)
    return rng.integers(-1, 2, size=n).astype(np.int8)


def _calls(kernel: Any) -> dict[str, Callable[[np.random.Generator], Any]]:  # noqa: C901
    def size(rng: np.random.Generator) -> int:
        return int(rng.integers(0, 7))

    def sign_factor(rng: np.random.Generator) -> Any:
        return kernel.sign_factor(_square(rng, size(rng)), int(rng.integers(-3, 9)))

    def sign_decode(rng: np.random.Generator) -> Any:
        n = size(rng)
        return kernel.sign_decode(_square(rng, n), _signs(rng, n), float(rng.normal()), 1000)

    def sign_list(rng: np.random.Generator) -> Any:
        n = size(rng)
        return kernel.sign_list(_square(rng, n), _signs(rng, n), 10.0, 1000, int(rng.integers(9)))

    def sign_margins(rng: np.random.Generator) -> Any:
        n = size(rng)
        weights = _array(rng) if rng.random() < 0.3 else rng.random(n)
        signs = (_signs(rng, n), _signs(rng, n))
        return kernel.sign_margins(_square(rng, n), *signs, weights, 0.1, 10.0, 1000, 50)

    def sign_mix(rng: np.random.Generator) -> Any:
        n = size(rng)
        start = _array(rng) if rng.random() < 0.5 else rng.normal(size=(n, 3))
        return kernel.sign_mix(_square(rng, n), start, 5, 1e-6)

    def anything(name: str, most: int) -> Callable[[np.random.Generator], Any]:
        def call(rng: np.random.Generator) -> Any:
            given = [
                _array(rng) if rng.random() < 0.85 else int(rng.integers(-3, 9))
                for _ in range(int(rng.integers(1, most)))
            ]
            return getattr(kernel, name)(*given)

        return call

    def mostly(*given: Any) -> Callable[[np.random.Generator], list[Any]]:
        """Arguments of the right shapes, one of them wrong in every second call."""

        def pick(rng: np.random.Generator) -> list[Any]:
            out = [rng.normal(size=x) if isinstance(x, tuple) else x for x in given]
            if rng.random() < 0.5:
                out[rng.integers(len(out))] = _array(rng)
            return out

        return pick

    def recursive_filter(rng: np.random.Generator) -> Any:
        n, j, p = size(rng), size(rng), size(rng) + 1
        return kernel.recursive_filter(*mostly((p,), (p,), (n, j), (n, j), (n, p - 1))(rng))

    def dahl_scan(rng: np.random.Generator) -> Any:
        n, k = size(rng), size(rng)
        return kernel.dahl_scan(*mostly((n,), (k,), 0.1, (k,), (n, k))(rng))

    def most_probable_body(rng: np.random.Generator) -> Any:
        ten, square = (10,), (10, 10)
        numbers = (1000.0, 0.3, 0.3)
        given = mostly(square, ten, (3,), *numbers, ten, ten, ten, square)(rng)
        return kernel.most_probable_body(*given)

    def without_own(rng: np.random.Generator) -> Any:
        shared, own = 10 + int(rng.integers(3)), size(rng)
        k = shared + own
        rows = rng.integers(0, k, size=k) if rng.random() < 0.8 else rng.integers(-2, k + 9, size=k)
        given = mostly(
            (k + 1, k + 1), (k, k), (k,), rows, shared, (10,), 1.0, int(rng.integers(0, k)),
            (k, k), (k,), (own, shared + 2),
        )(rng)  # fmt: skip
        return kernel.without_own(*given)

    def decimate_rows(rng: np.random.Generator) -> Any:
        n, j, k, factor = size(rng) * 20, size(rng), size(rng) * 10 + 1, int(rng.integers(-2, 9))
        rows = max(0, -(-n // factor)) if factor else 0
        given = [rng.normal(size=(n, j)), rng.normal(size=k), factor, np.zeros((rows, j))]
        if rng.random() < 0.4:
            given[(0, 1, 3)[rng.integers(3)]] = _array(rng)
        return kernel.decimate_rows(*given)

    named = {
        "sign_factor": sign_factor, "sign_decode": sign_decode, "sign_list": sign_list,
        "sign_margins": sign_margins, "sign_mix": sign_mix, "recursive_filter": recursive_filter,
        "decimate_rows": decimate_rows,
        "dahl_scan": dahl_scan, "most_probable_body": most_probable_body,
        "without_own": without_own, **class_calls(kernel, _array),
    }  # fmt: skip
    # Those of the twin take addresses of MuJoCo's own memory: their callers own that contract.
    for name, value in vars(kernel).items():
        wild = callable(value) and not isinstance(value, type) and not name.startswith("_")
        if wild and not name.startswith("twin"):
            named.setdefault(name, anything(name, 8))
    return named


def fuzz_binding(kernel: Any, cases: int, seed: int) -> dict[str, dict[str, int]]:
    """Outcomes by function; an exception that is no ordinary refusal is raised again."""
    calls = _calls(kernel)
    counts: dict[str, dict[str, int]] = {name: {} for name in calls}
    for i in range(cases):
        name = list(calls)[i % len(calls)]
        rng = np.random.default_rng([seed, i])
        try:
            calls[name](rng)
            outcome = "returned"
        except (TypeError, ValueError, RuntimeError, ArithmeticError) as error:
            outcome = type(error).__name__
        counts[name][outcome] = counts[name].get(outcome, 0) + 1
    return counts


def main() -> None:
    from taufit import _kernel

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, of in fuzz_binding(_kernel, given.cases, given.seed).items():
        print(f"{name:<22}" + ", ".join(f"{k} {n}" for k, n in sorted(of.items())))


if __name__ == "__main__":
    main()
