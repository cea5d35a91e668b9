"""Recordings with nothing wrong: bundled arms and arms nobody has seen, each run a different one.

Every run has its own truth: links that differ from the description by up to 20 %, friction between
a fifth and five times the usual, and every third one a tool that nobody mentioned. The five random
arms are what descriptions of users look like at their oddest: one to three horizontal axes with
friction above gravity, slides, a SCARA, a crane of 50 m, seven joints at random angles.

A loaded run carries a body that nobody mentioned, off the flange's axis, on arms whose last link is
described, is next to nothing, or is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from taufit.core.errors import InfeasibleError
from taufit.recording import Recording
from taufit.robot import JointLimits, Robot, bundled_robots, from_dh, read_robot
from taufit.robot.inertia import from_centre_of_mass

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def _arm(
    rng: np.random.Generator,
    name: str,
    table: np.ndarray,
    slides: tuple[bool, ...],
    size: float,
    mass: float,
) -> Robot:
    """An arm of a DH table with bodies of about its lengths; masses fall towards the tip."""
    joints = len(table)
    bodies = []
    for k in range(joints):
        m = mass * 0.6**k * rng.uniform(0.6, 1.4)
        extent = size * rng.uniform(0.1, 0.5)
        centre = rng.uniform(-0.5, 0.5, 3) * extent
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        spread = m * (extent * rng.uniform(0.2, 0.5, 3)) ** 2
        tensor = axes @ np.diag(spread.sum() - spread) @ axes.T
        bodies.append(from_centre_of_mass(m, centre, tensor))
    slow = np.array(slides)
    reach = np.where(slow, 0.4 * size, 2.6)
    limits = JointLimits(
        lower=-reach,
        upper=reach,
        velocity=np.where(slow, 0.5 * size, 2.0) / max(1.0, np.sqrt(size)),
        acceleration=np.where(slow, 2.0 * size, 8.0) / max(1.0, size),
        torque=np.full(joints, np.inf),
    )
    return from_dh(
        table, convention="modified", prismatic=slides, parameters=np.array(bodies), name=name,
        limits=limits,
    )  # fmt: skip


def horizontal(rng: np.random.Generator) -> Robot:
    """One to three parallel horizontal axes."""
    joints = int(rng.integers(1, 4))
    table = np.zeros((joints, 4))
    table[0, 3] = np.pi / 2
    table[1:, 2] = rng.uniform(0.2, 0.6, joints - 1)
    return _arm(rng, "horizontal", table, (False,) * joints, 0.6, 8.0)


def gantry(rng: np.random.Generator) -> Robot:
    """Three slides at right angles and a wrist."""
    table = np.zeros((4, 4))
    table[:3, 3] = [np.pi / 2, np.pi / 2, np.pi / 2]
    table[3, 3] = rng.choice([0.0, np.pi / 2])
    return _arm(rng, "gantry", table, (True, True, True, False), 1.5, 40.0)


def scara(rng: np.random.Generator) -> Robot:
    """Two vertical axes, a slide and a wrist."""
    table = np.zeros((4, 4))
    table[1:3, 2] = rng.uniform(0.2, 0.5, 2)
    return _arm(rng, "scara", table, (False, False, True, False), 0.6, 10.0)


def crane(rng: np.random.Generator) -> Robot:
    """Slewing, luffing, a jib that slides, together 50 m."""
    table = np.zeros((3, 4))
    table[1] = [0.0, 3.0, rng.uniform(0.5, 2.0), np.pi / 2]
    table[2] = [0.0, 25.0, 0.0, np.pi / 2]
    return _arm(rng, "crane", table, (False, False, True), 25.0, 8000.0)


def seven(rng: np.random.Generator) -> Robot:
    """Seven joints at random angles."""
    table = rng.uniform(-0.3, 0.3, (7, 4))
    table[:, 0] = rng.uniform(-3.0, 3.0, 7)
    table[:, 3] = rng.choice([-np.pi / 2, np.pi / 2, 0.5, -1.0], 7)
    return _arm(rng, "seven", table, (False,) * 7, 0.5, 9.0)


RANDOM: dict[str, Callable[[np.random.Generator], Robot]] = {
    "horizontal": horizontal,
    "gantry": gantry,
    "scara": scara,
    "crane": crane,
    "seven": seven,
}
ARMS = (*bundled_robots(), *RANDOM)
# Descriptions as users have them: with nothing, or next to nothing, for a last link.
LIGHT = {"weightless": 0.0, "light": 0.02}
# What arms carry [kg], and no more than this share of their own mass.
LOADS, _MOST_LOAD = (0.5, 2.0, 5.0), 0.4
LOADED = ("ur10", "ur5e", "kr5", "panda", "iiwa7", "scara", "seven", *LIGHT)


def clean_run(name: str, seed: int, *, periods: float = 2.0) -> tuple[Robot, Recording]:
    """The description a user has, and a recording of the arm as it really is."""
    robot, (recording,) = clean_runs(name, seed, 1, periods=periods)
    return robot, recording


def clean_runs(
    name: str, seed: int, count: int, *, periods: float = 2.0
) -> tuple[Robot, list[Recording]]:
    """The description a user has, and recordings of different motions of the arm as it really is.

    A random arm that the twin's controller cannot hold is drawn again.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    for _ in range(20):
        try:
            return _drawn(name, seed, count, rng, periods)
        except InfeasibleError:
            continue
    raise InfeasibleError(f"no arm of the kind {name} could be held.")


def loaded_run(
    name: str, seed: int, mass: float, *, periods: float = 2.0
) -> tuple[Robot, Recording, float]:
    """A description, a recording of the arm with a load that it does not have, and that mass."""
    rng = np.random.default_rng([seed, *name.encode(), int(1000 * mass)])
    known = "ur10" if name in LIGHT else name
    for _ in range(20):
        try:
            nominal, (recording,) = _drawn(known, seed, 1, rng, periods, mass)
        except InfeasibleError:
            continue
        carried = min(mass, _MOST_LOAD * float(nominal.parameters[::10].sum()))
        if name not in LIGHT:
            return nominal, recording, carried
        last = replace(nominal.links[-1], parameters=LIGHT[name] * nominal.links[-1].parameters)
        described = replace(nominal, name=name, links=(*nominal.links[:-1], last), urdf=None)
        return described, recording, carried
    raise InfeasibleError(f"no arm of the kind {name} could carry {mass:g} kg.")


def _drawn(
    name: str, seed: int, count: int, rng: np.random.Generator, periods: float, load: float = 0.0
) -> tuple[Robot, list[Recording]]:
    from taufit.sim import Twin, random_fourier, typical_effects, typical_rotor
    from taufit.sim.payload import CarriedPayload

    nominal = RANDOM[name](rng) if name in RANDOM else read_robot(name)
    links = tuple(
        replace(link, parameters=link.parameters * rng.uniform(0.8, 1.2)) for link in nominal.links
    )
    truth = typical_rotor(replace(nominal, links=links))
    effects = typical_effects(truth)
    usual = effects.friction
    level = np.exp(rng.uniform(np.log(0.2), np.log(5.0), (truth.joints, 1)))
    effects = replace(effects, friction=replace(usual, coefficients=usual.coefficients * level))
    tool: tuple[CarriedPayload, ...] = ()
    if load > 0.0:
        # Off the axis, up to 20 cm away.
        centre = rng.normal(size=3)
        centre *= rng.uniform(0.03, 0.2) / np.linalg.norm(centre)
        most = _MOST_LOAD * float(nominal.parameters[::10].sum())
        tool = (CarriedPayload.lump(min(load, most), centre),)
    elif name not in RANDOM and seed % 3 == 0:
        mass = 0.1 * float(truth.parameters[::10].sum()) * rng.uniform(0.3, 1.0)
        tool = (CarriedPayload.lump(mass, (0.0, 0.02, 0.08)),)
    twin = replace(Twin(truth, name="clean"), effects=effects)
    out = []
    for other in range(seed, seed + 1000 * count, 1000):
        motion = random_fourier(truth, seed=other, periods=periods)
        run = twin.run(motion, seed=other, rate_hz=200.0, rest=(0.5, 0.5), payload=tool)
        meta = {key: value for key, value in run.recording.meta.items() if key != "robot"}
        out.append(replace(run.recording, meta=meta))
    return nominal, out
