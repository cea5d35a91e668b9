"""What finding signs costs: the whole pipeline, the tree search beside it, the kernel's part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import Row
from benchmarks.sign_instances import boxes, instance, seven_joint_arm
from taufit.signs import search as sign_search
from taufit.signs.data import prepare_search
from taufit.signs.rounds import search_rounds
from taufit.signs.unknown_signs import fit_unsigned

SEEDS, TREE_SEEDS = 15, 5


def rows() -> Iterator[Row]:
    fit_unsigned(*_case(0, noise=0.05))
    for friction in (False, True):
        for noise in (0.05, 0.1, 0.3):
            label = f"{100 * noise:.0f} % noise, {'friction' if friction else 'no friction'}"
            ours = [
                cpu(fit_unsigned, *_case(seed, noise=noise, friction=friction))
                for seed in range(SEEDS)
            ]
            yield Row(
                f"whole pipeline, KR5, {label}",
                1e3 * float(np.median(ours)),
                "ms",
                "<= 60",
                f"median CPU of {SEEDS} seeds, worst {1e3 * max(ours):.0f} ms",
            )
            if noise > 0.1:
                continue
            tree = []
            for seed in range(TREE_SEEDS):
                case = instance(seed, noise=noise, friction=friction)
                start = time.process_time()
                fit_unsigned(case.model, case.samples, "tree", bounds=boxes(case))
                tree.append(time.process_time() - start)
            yield Row(
                f"T-PBPR time / ours, KR5, {label}",
                float(np.median(tree) / np.median(ours)),
                "x",
                ">= 20",
                f"tree search {np.median(tree):.2f} s CPU, {TREE_SEEDS} seeds",
            )
    for noise, seconds, harmonics in ((0.05, 45.0, 10), (0.2, 60.0, 14)):
        took = [
            cpu(
                fit_unsigned,
                *_case(
                    seed,
                    robot=seven_joint_arm(seed),
                    noise=noise,
                    friction=True,
                    seconds=seconds,
                    harmonics=harmonics,
                ),
            )
            for seed in range(5)
        ]
        yield Row(
            f"whole pipeline, 7 joints, {seconds:.0f} s, {100 * noise:.0f} % noise",
            max(took),
            "s",
            "<= 0.5",
            "worst CPU of 5 seeds, at least 450 segments",
        )
    case = instance(0, noise=0.2, friction=True)
    form = search_rounds(prepare_search(case.model, case.samples), 1, 1_000_000).form.quadratic
    # Many at once: clocks of processor time may tick coarsely.
    many = [form] * 50
    compiled = cpu(lambda: [sign_search.search_signs(one) for one in many]) / len(many)
    kernel, sign_search._kernel = sign_search._kernel, None
    try:
        plain = cpu(sign_search.search_signs, form)
    finally:
        sign_search._kernel = kernel
    yield Row(
        "sign search, Python / compiled",
        plain / compiled,
        "x",
        "",
        f"{len(form)} signs, 20 % noise: {1e3 * compiled:.1f} ms compiled",
    )


def _case(seed: int, **settings):  # type: ignore[no-untyped-def]
    case = instance(seed, **settings)
    return case.model, case.samples


def cpu(action: Callable[..., object], *arguments: object) -> float:
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start
