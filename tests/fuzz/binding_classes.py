"""The kernel's classes, made of and called with arrays that may not fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[np.random.Generator], Any]
Wild = Callable[[np.random.Generator], Any]


def class_calls(kernel: Any, wild: Wild) -> dict[str, Call]:  # noqa: C901
    """By name: make an object, mostly of fitting parts, and call it, mostly with fitting ones.

    Args:
        kernel: The compiled module.
        wild: Any array, or what is none.
    """

    def hurt(rng: np.random.Generator, given: list[Any], often: float = 0.4) -> list[Any]:
        """One of the arguments is wrong this often."""
        if rng.random() < often:
            given[rng.integers(len(given))] = wild(rng)
        return given

    def engine(joints: int) -> Any:
        placements, screws = np.tile(np.eye(4), (joints, 1, 1)), np.zeros((joints, 6))
        screws[:, 2] = 1.0
        return kernel.Engine(placements, screws, np.zeros(3), np.ones((joints, 10)))

    def joints_of(rng: np.random.Generator) -> int:
        return int(rng.integers(1, 5))

    def change_test(rng: np.random.Generator) -> Any:
        j, ring = joints_of(rng), int(rng.integers(3, 9))
        windows = rng.integers(1, ring, size=3) if rng.random() < 0.8 else rng.integers(-2, 99, 2)
        parts = [rng.random(j), rng.random(7), windows, rng.random((4, j))]
        parts += [rng.random((ring, 7, j)), rng.random((ring, j, j))]
        test = kernel.ChangeTest(*hurt(rng, parts))
        cell = [rng.random((6, j)), rng.random((j, j)), rng.random(j) > 0.5, int(rng.integers(99))]
        return test.advance(*hurt(rng, cell))

    def states_of(rng: np.random.Generator, j: int) -> Any:
        return rng.integers(0, 5, size=j) if rng.random() < 0.8 else rng.integers(-9, 99, size=j)

    def cell_noise(rng: np.random.Generator) -> Any:
        j = joints_of(rng)
        parts = [rng.random((6, 5, j)), rng.random(j), rng.random(j), rng.random((j, j)), 0.02]
        noise = kernel.CellNoise(*hurt(rng, parts))
        given = [engine(joints_of(rng) if rng.random() < 0.2 else j), rng.random(j), rng.random(j)]
        given += [states_of(rng, j), rng.random(j), np.empty((6, j)), np.empty((j, j))]
        return noise.fill(*hurt(rng, given))

    def external_torque(rng: np.random.Generator) -> Any:
        j, n = joints_of(rng), int(rng.integers(0, 4))
        registers = 5 * j + 4
        reach = (0, registers) if rng.random() < 0.8 else (-3, registers + 9)
        operations = rng.integers(*reach, size=(6, 5)).astype(np.int32)
        operations[:, 0] = rng.integers(0, 25, size=6)
        parts: list[Any] = [operations, rng.random(registers)]
        parts += [rng.integers(*reach, size=j).astype(np.int32)]
        parts += [rng.integers(*reach, size=(2, 2)).astype(np.int32)]
        parts += [rng.integers(0, j, size=4).astype(np.int32), rng.random(9)]
        # Accelerations over a few cells, of as many as are remembered or more.
        fixed, remembered = rng.random((10, j)), int(rng.integers(1, 9))
        fixed[4] = rng.integers(1, 4, size=j)
        parts += [rng.random((7, j)), rng.random(3), fixed, rng.random((2 + remembered, j))]
        parts += [rng.random(4) * (1.0, 1e9, 1.0)[rng.integers(3)], rng.random((5, j))]
        parts += [rng.random((5, j)), 0.01, 0.2]
        felt = kernel.ExternalTorque(*hurt(rng, parts))
        given = [engine(j), rng.random((n + 1, (3 + int(rng.integers(2))) * j))]
        given += [np.empty((10, n, j)), np.empty((n, j)), np.empty((n, j), np.int64)]
        given += [np.empty((3, n, j), bool)]
        return felt.advance(*hurt(rng, given))

    def intake(rng: np.random.Generator) -> Any:
        c = 3 * joints_of(rng)
        screen = kernel.Screen(*hurt(rng, [rng.random(c), 0.1], 0.1))
        screen.hold(*hurt(rng, [rng.random(c)], 0.1))
        screen.look(*hurt(rng, [rng.random(c)], 0.1))
        guard = kernel.SpikeGuard(*hurt(rng, [rng.random(c), 6.0, 0.5, 0.5, 50.0, 8.0], 0.1))
        for k in range(3):
            guard.accept(float(k), rng.random(c))
        guard.suspicious(*hurt(rng, [3.0, rng.random(c)], 0.1))
        return guard.is_spike(*hurt(rng, [3.0, rng.random(c), 4.0, rng.random(c)], 0.1))

    def interval(rng: np.random.Generator) -> Any:
        j, b = joints_of(rng), int(rng.integers(0, 5))
        parts = [
            rng.random((10 * j, b)),
            rng.random((5, j)),
            rng.random(j),
            rng.random(j),
            0.1,
            2.0,
        ]
        one = kernel.Interval(*hurt(rng, parts))
        given = [engine(j), *rng.random((3, j)), states_of(rng, j), *rng.random((2, j))]
        given += [rng.random(j) > 0.5, rng.random(10), 0.1, np.empty(j)]
        return one.half_width(*hurt(rng, given))

    def poses(rng: np.random.Generator) -> Any:
        j, n = joints_of(rng), int(rng.integers(0, 4))
        return engine(j).poses(*hurt(rng, [rng.random((n, j)), np.empty((n, j, 4, 4))]))

    return {
        "ChangeTest": change_test, "CellNoise": cell_noise, "ExternalTorque": external_torque,
        "Screen": intake, "Interval": interval, "Engine.poses": poses,
    }  # fmt: skip
