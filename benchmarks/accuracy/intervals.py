"""Whether stated uncertainty is honest: simulated arms whose friction differs from run to run.

Every arm has three joints, links unlike the nominal ones, friction (Coulomb, viscous) that scatters
by 2 % from run to run, torque the model does not hold (ripple with position, 5 % of Coulomb
friction) and coloured noise. It is fitted to one to four runs of a motion that repeats one to ten
times; coefficients are compared with the arm's own, torque with that of a new run of another
motion. "Spread" is that of fits to one truth over their stated standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.signal import lfilter

from benchmarks import Row
from taufit.core.statistics import NORMAL_95
from taufit.fitting import fitted_model
from taufit.fitting.fit import fit
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import predict_interval, residuals_by_state
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, read_recording
from taufit.regression.estimate import Estimate
from taufit.robot import Robot, read_robot
from taufit.robot.from_dh import from_dh
from taufit.robot.inertia import from_pseudo_inertia, pseudo_inertia
from taufit.signals import Samples
from taufit.terms.friction import Linear, TemperatureDependent

ARMS, SLOPES, SCATTERED, SAME, POOR = 200, 200, 60, 30, 100
RATE_HZ = 50.0
SCATTER = 0.02
RIPPLE = 0.05
JOINTS = 3
# Seven weeks before the others.
OLD = "ur-19_12_23_free"


def robot() -> Robot:
    """The first three joints of a UR5e."""
    whole = read_robot("ur5e")
    table = np.array([[0, 0.1625, 0, np.pi / 2], [0, 0, -0.425, 0], [0, 0, -0.3922, 0]])
    return from_dh(table, parameters=whole.parameters.reshape(-1, 10)[:JOINTS], name="three")


def truth(arm: Robot, rng: np.random.Generator, *, warm: bool = False) -> FittedModel:
    """An arm of its own: links within about 15 % of the nominal ones."""
    links = []
    for row in arm.parameters.reshape(-1, 10):
        turn = np.eye(4) + 0.07 * rng.normal(size=(4, 4))
        turn[3, :3] = 0.0
        links.append(from_pseudo_inertia(turn @ pseudo_inertia(row) @ turn.T))
    own = arm.with_parameters(np.concatenate(links))
    coulomb, viscous = rng.uniform(3.0, 8.0, JOINTS), rng.uniform(4.0, 10.0, JOINTS)
    friction = Linear(0.02)
    terms = [coulomb, viscous]
    if warm:
        terms.append(-0.01 * viscous * rng.uniform(0.5, 1.5, JOINTS))
        friction = TemperatureDependent(friction, "linear", 35.0, ("viscous",))
    values = np.concatenate(
        [own.parameters, rng.uniform(0.3, 1.0, JOINTS), np.stack(terms, -1).ravel(), np.zeros(3)]
    )
    return TorqueModel(own, friction).with_values(values)


def motion(rng: np.random.Generator, repeats: int, seconds: float = 8.0) -> tuple[np.ndarray, ...]:
    """Five harmonics, up to 1.5 rad/s, repeated."""
    t = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    q, v, a = np.zeros((3, len(t), JOINTS))
    for k in range(1, 6):
        w = 2 * np.pi * k / seconds
        x, y = rng.normal(size=(2, JOINTS))
        q += (x * np.sin(w * t[:, None]) - y * np.cos(w * t[:, None])) / w
        v += x * np.cos(w * t[:, None]) + y * np.sin(w * t[:, None])
        a += w * (y * np.cos(w * t[:, None]) - x * np.sin(w * t[:, None]))
    gain = 1.5 / np.abs(v).max(axis=0)
    return tuple(np.tile(gain * x, (repeats, 1)) for x in (q, v, a))


def run(
    own: FittedModel,
    rng: np.random.Generator,
    path: tuple[np.ndarray, ...],
    waves: np.ndarray,
    *,
    scatter: float = SCATTER,
    warmth: float | None = None,
) -> Samples:
    """One run: friction at this run's level, ripple, coloured noise."""
    q, v, a = path
    layout = own.layout
    values = np.array(own.values)
    terms = values[layout.drive].reshape(JOINTS, -1)
    terms *= 1.0 + scatter * rng.normal(size=(JOINTS, 1))
    temperature = None if warmth is None else np.full(q.shape, warmth)
    torque = own.with_values(values).torque(q, v, a, temperature=temperature)
    level = own.values[layout.drive].reshape(JOINTS, -1)[:, 0]
    torque += RIPPLE * level * np.sqrt(2.0) * np.sin(9.0 * q + waves)
    white = rng.normal(size=(len(q) + 200, JOINTS))
    noise = lfilter([np.sqrt(1 - 0.8**2)], [1.0, -0.8], white, axis=0)[200:]
    torque += 0.05 * level * noise
    samples = Samples.from_arrays(q, v, a, torque, rate_hz=RATE_HZ)
    return samples if temperature is None else samples.with_channels(temperature=temperature)


def fitted(arm: Robot, friction: object, samples: Samples) -> tuple[FittedModel, Estimate]:
    """A default fit, as a model with its record."""
    model = TorqueModel(arm, friction)  # type: ignore[arg-type]
    estimate = fit(model, samples)
    out = fitted_model(model, estimate, samples)
    known = replace(out.training.residuals, by_state=residuals_by_state(out, samples))
    return out.with_training(replace(out.training, residuals=known)), estimate


def errors(estimate: Estimate, own: FittedModel) -> np.ndarray:
    """Errors of the base parameters over their stated standard deviation."""
    true = estimate.base.mapping @ own.values
    return (estimate.base_values - true) / np.maximum(estimate.base_std, 1e-12)


def one_arm(seed: int) -> tuple[np.ndarray, float]:
    """Of one arm: which coefficients' intervals hold, and the share of torque inside."""
    rng = np.random.default_rng((seed, 14))
    arm = robot()
    own, waves = truth(arm, rng), rng.uniform(0, 6, JOINTS)
    repeats, runs = int(rng.integers(1, 11)), int(rng.integers(1, 5))
    path = motion(rng, repeats)
    samples = Samples.concatenate([run(own, rng, path, waves) for _ in range(runs)])
    model, estimate = fitted(arm, own.friction_model, samples)
    other = run(own, rng, motion(rng, 2), waves)
    held = predict_interval(model, other).inside(other.torque)
    return np.abs(errors(estimate, own)) <= NORMAL_95, float(held.mean())


def slopes(seed: int, runs: int = 9, scatter: float = SCATTER, repeats: int = 3) -> np.ndarray:
    """Of one arm warmed up over its runs: errors of temperature slopes over their stated std."""
    rng = np.random.default_rng((seed, 15))
    arm = robot()
    own, waves = truth(arm, rng, warm=True), rng.uniform(0, 6, JOINTS)
    path = motion(rng, repeats)
    warm = np.linspace(25.0, 45.0, runs)
    samples = Samples.concatenate(
        [run(own, rng, path, waves, scatter=scatter, warmth=w) for w in warm]
    )
    _, estimate = fitted(arm, own.friction_model, samples)
    names = list(estimate.base_names)
    at = [names.index(f"joint_{j + 1}.viscous_per_degree") for j in range(JOINTS)]
    return errors(estimate, own)[at]


def slopes_by_scatter() -> Iterator[Row]:
    """Temperature slopes of arms whose friction comes back well, as usual, and badly."""
    for scatter, least in ((0.003, 0.6), (0.01, 0.75), (0.03, 0.75)):
        for runs in (5, 10):
            z = np.concatenate(
                [slopes(900 + k, runs, scatter, repeats=2) for k in range(SCATTERED)]
            )
            words = f"temperature slopes, {runs} runs, scatter {100 * scatter:g} %"
            inside = 100.0 * float(np.mean(np.abs(z) <= NORMAL_95))
            note = f"{SCATTERED} arms"
            target = ">= 93" if scatter < 0.01 else "93 .. 99"
            yield Row(f"{words}: inside", inside, "%", target, note)
            size = float(np.sqrt(np.mean(z**2)))
            yield Row(f"{words}: error over stated std", size, "", f"{least} .. 1.2", note)


def strokes(
    rng: np.random.Generator, seconds: float = 20.0, one_way: bool = False
) -> tuple[np.ndarray, ...]:
    """Point-to-point motion with pauses; the last joint turns one way only if asked for."""
    poses, parts = [rng.uniform(-1.0, 1.0, JOINTS)], []
    while sum(len(part[0]) for part in parts) < seconds * RATE_HZ:
        goal = rng.uniform(-1.5, 1.5, JOINTS)
        if one_way:
            goal[-1] = poses[-1][-1] + rng.uniform(0.3, 1.2)
        way, length = goal - poses[-1], rng.uniform(1.0, 2.0)
        s = np.arange(1, round(length * RATE_HZ) + 1)[:, None] / round(length * RATE_HZ)
        parts.append(
            [
                poses[-1] + way * (10 * s**3 - 15 * s**4 + 6 * s**5),
                way * (30 * s**2 - 60 * s**3 + 30 * s**4) / length,
                way * (60 * s - 180 * s**2 + 120 * s**3) / length**2,
            ]
        )
        poses.append(goal)
        rest = np.zeros((round(rng.uniform(0.2, 0.6) * RATE_HZ), JOINTS))
        parts.append([rest + goal, rest, rest])
    return tuple(np.concatenate([part[k] for part in parts]) for k in range(3))


def poor_training(seed: int, one_way: bool) -> tuple[float, float]:
    """Of an arm trained on one run of strokes: torque of a new Fourier run inside, relative width.

    Both are of all joints, or of the joint that turned one way and now reverses.
    """
    rng = np.random.default_rng((seed, 16))
    arm = robot()
    own, waves = truth(arm, rng), rng.uniform(0, 6, JOINTS)
    model, _ = fitted(arm, own.friction_model, run(own, rng, strokes(rng, one_way=one_way), waves))
    other = run(own, rng, motion(rng, 2), waves)
    prediction = predict_interval(model, other)
    joints = slice(JOINTS - 1 if one_way else 0, JOINTS)
    rmse = np.sqrt(np.mean((other.torque - prediction.torque)[:, joints] ** 2, axis=0))
    width = prediction.half_width[:, joints].mean(axis=0) / (NORMAL_95 * rmse)
    return float(prediction.inside(other.torque)[:, joints].mean()), float(width.mean())


def poor_trainings() -> Iterator[Row]:
    """Arms trained on point-to-point motion, and with a joint that turns one way."""
    for words, one_way in (("point-to-point motion", False), ("a one-way joint, reversed", True)):
        inside, width = np.array([poor_training(700 + k, one_way) for k in range(POOR)]).T
        share = 100.0 * float(inside.mean())
        note = f"{POOR} simulated arms"
        yield Row(f"training by {words}: inside", share, "%", "92 .. 98", note)
        target = "" if one_way else "<= 1.6"
        note = "median"
        yield Row(
            f"training by {words}: half width over 1.96 rmse",
            float(np.median(width)),
            "",
            target,
            note,
        )


def spread() -> float:
    """Median over coefficients of the spread of fits to one truth over their stated std."""
    rng = np.random.default_rng(99)
    arm = robot()
    own, waves = truth(arm, rng), rng.uniform(0, 6, JOINTS)
    values, std = [], []
    for _ in range(SAME):
        samples = run(own, rng, motion(rng, 6), waves)
        _, estimate = fitted(arm, own.friction_model, samples)
        values.append(estimate.base_values)
        std.append(estimate.base_std)
    return float(np.median(np.std(values, axis=0) / np.sqrt(np.mean(np.square(std), axis=0))))


def rows() -> Iterator[Row]:
    found = [one_arm(seed) for seed in range(ARMS)]
    note = f"{ARMS} arms, 1-4 runs of a motion repeated 1-10 times"
    share = 100.0 * float(np.mean([hit.mean() for hit, _ in found]))
    yield Row("coefficients inside their 95 % interval", share, "%", ">= 93", note)
    yield Row("coefficients inside, at most", share, "%", "<= 97", note)
    share = 100.0 * float(np.mean([held for _, held in found]))
    yield Row("torque of a new run inside its 95 % interval", share, "%", ">= 93", note)
    yield Row("torque inside, at most", share, "%", "<= 97", note)
    z = np.abs([slopes(seed) for seed in range(SLOPES)])
    share = 100.0 * float(np.mean(z <= NORMAL_95))
    note = f"{SLOPES} arms, nine runs each"
    yield Row("temperature slopes inside", share, "%", ">= 93", note)
    yield Row("temperature slopes inside, at most", share, "%", "<= 97", note)
    yield from slopes_by_scatter()
    note = f"{SAME} fits of one truth, each a motion of its own repeated six times"
    value = spread()
    yield Row("spread over stated standard deviation", value, "", ">= 0.8", note)
    yield Row("spread over stated, at most", value, "", "<= 1.2", note)
    yield from poor_trainings()
    yield from real()


def real() -> Iterator[Row]:
    """UR10e: torque of the other shared runs inside the interval of a model of one run."""
    from benchmarks.accuracy.real_robots import DATA, NINE, TRAIN

    if not (DATA / "ur10e" / "identification_data").is_dir():
        return
    inside: dict[tuple[str, str], float] = {}
    older: list[float] = []
    for kind, trainings in _trainings().items():
        widths = []
        for trained, runs in trainings.items():
            for name, (share, width) in _intervals_of_others(trained, runs).items():
                if name not in NINE:
                    older += [share] if kind == "exciting" else []
                    continue
                inside[trained, name] = share
                widths.append(width)
        shares = np.array([inside[key] for key in inside if key[0] in trainings])
        note = f"UR10e, models of {len(trainings)}, {len(shares)} pairs with other runs, 5 Hz"
        words = f"runs by models of {kind} runs"
        yield Row(f"{words} inside, mean", float(shares.mean()), "%", ">= 92", note)
        yield Row(f"{words}: half width over 1.96 rmse", float(np.mean(widths)), "", "<= 1.6", note)
    every = float(np.mean(list(inside.values())))
    note = f"UR10e, {len(inside)} pairs, models of exciting, slow and one-joint runs, 5 Hz"
    yield Row("runs by models of every kind inside, mean", every, "%", "94 .. 97", note)
    note = f"UR10e, {len(older)} pairs; friction was a fifth to a third higher then, 5 Hz"
    words = "slow runs of 2019 by models of exciting runs of 2020 inside, mean"
    yield Row(words, float(np.mean(older)), "%", "", note)
    for name in NINE:
        if name != TRAIN:
            target = ">= 90" if name == OLD else ">= 93"
            note = "UR10e, model of 30sec_12harm, 5 Hz; wanted at most 98"
            yield Row(f"{name} inside", inside[TRAIN, name], "%", target, note)
    nine = {key: share for key, share in inside.items() if key[0] in NINE}
    note = "UR10e, each of nine runs by a model of each other one, 5 Hz"
    shares = np.array(list(nine.values()))
    least = min(nine, key=nine.__getitem__)
    yield Row("runs by models of other runs inside, mean", float(shares.mean()), "%", ">= 93", note)
    worst = f"{note}: {least[1]} by a model of {least[0]}; the most is {shares.max():.1f} %"
    yield Row("runs by models of other runs inside, least", float(shares.min()), "%", "", worst)


def _ur10e_runs(pattern: str) -> dict[str, Recording]:
    """Shared recordings of the UR10e by name, without the load."""
    from benchmarks.accuracy.real_robots import DATA, MAPS

    return {
        path.name.removesuffix(".csv.gz"): read_recording(path, column_map=MAPS / "ur10e_csv.yaml")
        for path in sorted((DATA / "ur10e").glob(f"{pattern}.csv.gz"))
    }


def _trainings() -> dict[str, dict[str, list[Recording]]]:
    """Recordings to fit by kind of motion: exciting, slow (2019), one joint at a time."""
    from benchmarks.accuracy.real_robots import NINE

    every = _ur10e_runs("identification_data/*")
    return {
        "exciting": {name: [every[name]] for name in NINE},
        "slow": {name: [every[name]] for name in _slow_runs(every)},
        "one-joint": {"jointwise": list(_ur10e_runs("jointwise_motion/*").values())},
    }


def _slow_runs(names: Iterable[str]) -> list[str]:
    """Slow runs of 2019; the first two have no controller targets, hence no drive gains."""
    return [name for name in names if name.startswith(("ur-19_09_27-15", "ur-19_10"))]


def _intervals_of_others(
    trained: str, recordings: list[Recording]
) -> dict[str, tuple[float, float]]:
    """Torque of nine and slow runs inside the interval [%], and half width over 1.96 rmse."""
    from benchmarks.accuracy.real_robots import DATA, NINE
    from taufit.workflow import identify

    every = _ur10e_runs("identification_data/ur-*")
    arm = read_robot(DATA / "ur10e" / "ur10e.urdf")
    others = {name: [every[name]] for name in (*NINE, *_slow_runs(every)) if name != trained}
    result = identify(arm, recordings, holdout=others, cutoff_hz=5.0)
    out = {}
    for score, samples in zip(result.holdout_scores, result.holdout_samples, strict=True):
        half_width = predict_interval(result.model, samples).half_width[samples.in_motion]
        assert score.mean_inside is not None
        width = np.mean(half_width.mean(axis=0) / (NORMAL_95 * score.rmse))
        out[score.file] = 100.0 * score.mean_inside, float(width)
    return out
