"""What conditioning makes of a motion and a torque that are known exactly, and of real logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import Row
from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording, read_recording
from taufit.robot import read_robot
from taufit.signals import DIFFERENTIATIONS, condition, controller_gains

SEEDS = 20
ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT.parent / "shared" / "data" / "ur10e"


def _motion(seed: int, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Six harmonics of 0.1 Hz per joint; its position, velocity and acceleration."""
    rng = np.random.default_rng(seed)
    k = np.arange(1, 7)
    a, b = rng.normal(size=(2, 6, 6)) / k
    size = 0.9 / np.sqrt((a**2 + b**2).sum(1, keepdims=True))
    w = 0.2 * np.pi * k
    s, c = np.sin(time[:, None, None] * w), np.cos(time[:, None, None] * w)
    a, b = a * size, b * size
    return (a * s + b * c).sum(2), ((a * c - b * s) * w).sum(2), -((a * s + b * c) * w**2).sum(2)


def _recorded(
    robot, seed: int, *, delay: float, noise: float, speed_noise: float
) -> tuple[Recording, np.ndarray]:
    rng = np.random.default_rng(seed + 1000)
    stamps = np.arange(2400) / 100.0 + rng.uniform(-0.002, 0.002, 2400)

    def torque(time: np.ndarray) -> np.ndarray:
        q, v, a = _motion(seed, time)
        return inverse_dynamics(robot, q, v, a) + 4.0 * np.tanh(v / 0.005) + 3.0 * v

    q, v, _ = _motion(seed, stamps)
    signal = torque(stamps - delay) + noise * rng.normal(size=q.shape)
    velocity = v + speed_noise * rng.normal(size=q.shape)
    return Recording(time=stamps, position=q, velocity=velocity, signal=signal), stamps


def _relative(got: np.ndarray, true: np.ndarray, rows: np.ndarray) -> float:
    return float(np.max(np.sqrt(np.mean((got - true)[rows] ** 2, 0)) / np.std(true[rows], 0)))


def rows() -> Iterator[Row]:
    robot = read_robot("ur10")
    clean, stamps = _recorded(robot, 0, delay=0.0, noise=0.0, speed_noise=0.0)
    for name in DIFFERENTIATIONS:
        samples = condition(clean, differentiation=name)
        _, _, a = _motion(0, samples.time + stamps[0])
        inner = samples.in_motion & (np.abs(samples.time - 12.0) < 11.0)
        yield Row(
            f"acceleration error, {name}",
            100 * _relative(samples.acceleration, a, inner),
            "%",
            "" if name == "fourier" else "<= 0.1",
            "jittered stamps, no noise, 10 Hz; worst joint, relative to its std"
            + ("; its mirrored ends are in motion here" if name == "fourier" else ""),
        )

    delays, noises = [], []
    for seed in range(SEEDS):
        recording, _ = _recorded(robot, seed, delay=0.012, noise=0.5, speed_noise=2e-3)
        samples = condition(recording, delay_s="auto")
        delays.append(1e3 * abs(samples.delay_s - 0.012))
        noises.append(np.abs(samples.noise / 0.5 - 1).max())
    note = f"{SEEDS} motions, 0.5 N m torque and 2 mrad/s velocity noise, 2 ms jitter"
    yield Row("delay of 12 ms, worst error", float(max(delays)), "ms", "<= 1", note)
    yield Row("delay of 12 ms, median error", float(np.median(delays)), "ms", "", note)
    yield Row(
        "noise estimate, worst error of any joint", float(100 * max(noises)), "%", "<= 10", note
    )

    worst = 0.0
    for seed in range(4):
        for noise, speed_noise in ((1.0, 4e-3), (3.0, 1e-2)):
            recording, stamps = _recorded(
                robot, seed, delay=0.0, noise=noise, speed_noise=speed_noise
            )

            def error(cutoff: float | str, seed=seed, recording=recording, stamps=stamps) -> float:
                samples = condition(recording, cutoff_hz=cutoff)
                q, v, a = _motion(seed, samples.time + stamps[0])
                tau = inverse_dynamics(robot, q, v, a) + 4.0 * np.tanh(v / 0.005) + 3.0 * v
                inner = samples.in_motion & (np.abs(samples.time - 12.0) < 11.0)
                pairs = ((samples.acceleration, a), (samples.torque, tau))
                return float(
                    np.sqrt(sum(np.mean((x - y)[inner] ** 2 / np.var(y, 0)) for x, y in pairs))
                )

            best = min(error(f) for f in np.geomspace(1.5, 25.0, 20))
            worst = max(worst, error("auto") / best)
    yield Row(
        "automatic cut-off, error over the best cut-off's",
        worst,
        "x",
        "<= 1.1",
        "acceleration and torque together; 8 recordings, worst",
    )

    if LOGS.is_dir():
        log = read_recording(
            LOGS / "identification_data" / "ur-20_02_10-30sec_12harm.csv.gz",
            column_map=ROOT / "examples" / "columns" / "ur10e_csv.yaml",
        )
        gains = controller_gains(log)
        expected = np.array([11.976, 11.976, 9.839, 10.763, 10.763])
        yield Row(
            "automatic gains of a UR10e log, worst of joints 1-5",
            100 * float(np.max(np.abs(gains.value[:5] / expected - 1))),
            "%",
            "<= 0.1",
            "; ".join(f.message for f in gains.findings),
        )
