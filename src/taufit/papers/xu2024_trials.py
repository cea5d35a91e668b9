"""[Xu2024]: mass of the payload over seeds, by method and by preparation of the offline data.

The paper filters the torque of the offline run at 40 Hz and takes velocities and accelerations from
measured positions by frequency filtering. A 40 Hz low-pass on the motion instead leaves noise in
the accelerations: inertias shrink (errors in variables), first moments take over, and the chain of
equations (12) to (16) reads the mass from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import base_parameters
from taufit.estimators import Wls
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.payload import METHODS
from taufit.payload.parameter_difference import (
    STOP_CHANGE,
    STOP_COUNT,
    RecursiveLeastSquares,
    paper_chain,
    paper_relations,
)
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import stream
from taufit.recording import Recording
from taufit.robot import Robot
from taufit.signals import Samples, condition
from taufit.terms import friction_model
from taufit.workflow import identify

if TYPE_CHECKING:
    from taufit.papers.xu2024 import Xu2024

TORQUE_CUTOFF_HZ = 40.0
# Harmonics of the frequency filter; the motion has five, tracking adds few.
HARMONICS = 12
# Preparation of the offline motion: as in the paper, from commands, and with the low-pass of the
# torque on the motion too.
PREPARATIONS = {
    "fourier": "frequency filtering of measured positions, as in the paper",
    "commanded": "commanded motion",
    "low_pass": "low-pass of 40 Hz on motion and torque",
}
RIVALS = ("khalil", "static", "filter")


@dataclass(frozen=True, slots=True, eq=False)
class ChainRun:
    """Recursion of the paper along a loaded run.

    Attributes:
        time: Time [s].
        difference: Base parameters with payload less those without, in the order of the paper.
        mass: Mass by the printed chain [kg].
        stop: Index of the sample at which the stop rule holds; the last if it never does.
    """

    time: Float[Array, " n"]
    difference: Float[Array, "n 58"]
    mass: Float[Array, " n"]
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class MassTrial:
    """Mass errors of one pair of runs [%].

    Attributes:
        at_stop: By preparation, when the stop rule holds.
        at_end: By preparation, after three periods.
        rivals: By method.
        stop_time: Time from the start of motion until the stop rule holds [s].
        link_inertia: Base Izz of link 2 by preparation [kg m^2].
    """

    at_stop: Mapping[str, float]
    at_end: Mapping[str, float]
    rivals: Mapping[str, float]
    stop_time: float
    link_inertia: Mapping[str, float]


def offline_samples(recording: Recording, preparation: str, experiment: Xu2024) -> Samples:
    """Samples of the empty run: torque at 40 Hz, motion by one of `PREPARATIONS`."""
    samples = condition([recording], cutoff_hz=TORQUE_CUTOFF_HZ)
    if preparation == "low_pass":
        return samples
    if preparation == "commanded":
        q, v, a = (
            np.stack([np.interp(samples.time, recording.time, x) for x in np.asarray(values).T], 1)
            for values in (
                recording.commanded_position,
                recording.commanded_velocity,
                recording.commanded_acceleration,
            )
        )
        return replace(samples, position=q, velocity=v, acceleration=a, friction_velocity=v)
    trajectory = experiment.paper["trajectory"]
    return filter_frequencies(samples, trajectory["period_s"])


def filter_frequencies(samples: Samples, period: float) -> Samples:
    """Motion from harmonics fitted to the positions of whole periods; the first one is left out."""
    time = samples.time
    moving = np.flatnonzero(samples.in_motion)
    first, last = time[moving[0]], time[moving[-1]]
    count = int((last - first) / period + 0.05) - 1
    inside = (time >= first + period) & (time < first + (1 + count) * period)
    order = np.arange(1, HARMONICS + 1)
    rate = 2.0 * np.pi * order / period
    phase = np.outer(time, rate)
    wave = np.concatenate([np.sin(phase), np.cos(phase)], axis=1)
    slope = np.concatenate([rate * np.cos(phase), -rate * np.sin(phase)], axis=1)
    design = np.column_stack([np.ones(len(time)), wave])
    coefficients = np.linalg.lstsq(design[inside], samples.position[inside], rcond=None)[0]
    velocity = slope @ coefficients[1:]
    return replace(
        samples,
        position=design @ coefficients,
        velocity=velocity,
        acceleration=-(wave * np.tile(rate**2, 2)) @ coefficients[1:],
        friction_velocity=velocity,
        keep=samples.keep & inside[:, None],
    )


def offline_model(robot: Robot, samples: Samples) -> FittedModel:
    """Offline identification of the paper: power-law friction, weighted least squares."""
    structure = TorqueModel(robot, friction_model("power_law"))
    return fitted_model(structure, fit_samples(structure, samples, Wls()), samples)


def run_chain(model: FittedModel, recording: Recording) -> ChainRun:
    """Recursion over commanded motion and the chain (12) to (16) at every sample."""
    source = stream(model, recording)
    base = base_parameters(model.structure)
    columns = np.asarray(base.columns)
    unloaded = base.mapping @ np.asarray(model.values)
    relations, lengths = paper_relations(model, columns, base.mapping)
    assert source.commanded is not None
    q, v, a = source.commanded
    regressor = model.structure.regressor(q, v, a)[:, :, columns]
    valid = np.flatnonzero(np.isfinite(q + v + a + source.torque).all(axis=1))
    last_link, layout = range(*model.layout.link(-1).indices(len(model.names))), model.layout
    watched = [i for i, c in enumerate(columns) if c in last_link and layout.quantities[c] != "Ixx"]
    rls = RecursiveLeastSquares.from_values(unloaded)
    path = np.zeros((len(valid), len(unloaded)))
    small_changes, stop = 0, len(valid) - 1
    for k, i in enumerate(valid):
        rls.update(regressor[i], source.torque[i])
        path[k] = rls.values - unloaded
        small_changes = small_changes + 1 if np.abs(rls.change[watched]).max() < STOP_CHANGE else 0
        if small_changes > STOP_COUNT and stop == len(valid) - 1:
            stop = k
    difference = path @ relations.T
    mass_row = np.array([paper_chain(row, *lengths)[0] for row in np.eye(difference.shape[1])])
    return ChainRun(np.asarray(source.time)[valid], difference, difference @ mass_row, stop)


def mass_trial(experiment: Xu2024, number: int) -> MassTrial:
    """Fresh runs with and without payload, evaluated by all methods."""
    empty = experiment.run(11, 10, loaded=False, number=number).recording
    loaded = experiment.run(12, 3, loaded=True, number=number).recording
    true_mass = float(experiment.payload.parameters[0])

    def percent(mass: float) -> float:
        return 100.0 * (mass / true_mass - 1.0)

    robot = experiment.twin.robot
    at_stop, at_end, inertia = {}, {}, {}
    models = {
        name: offline_model(robot, offline_samples(empty, name, experiment))
        for name in experiment.preparations
    }
    stop_time = np.nan
    for name, model in models.items():
        chain = run_chain(model, loaded)
        at_stop[name], at_end[name] = percent(chain.mass[chain.stop]), percent(chain.mass[-1])
        inertia[name] = _link_inertia(model)
        if name == "fourier":
            stop_time = float(chain.time[chain.stop]) - REST_S
    default = identify(robot, [empty]).model
    rivals = {}
    for method in RIVALS:
        model = default if method == "filter" else models["fourier"]
        source = stream(model, experiment.poses(number) if method == "static" else loaded)
        rivals[method] = percent(METHODS[method](model, source, PayloadSettings()).estimate.mass)
    return MassTrial(at_stop, at_end, rivals, stop_time, inertia)


# Rest before the motion of a simulated run [s].
REST_S = 0.5


def _link_inertia(model: FittedModel) -> float:
    """Base parameter of Izz of link 2."""
    base = base_parameters(model.structure)
    values: Array = base.mapping @ np.asarray(model.values)
    names = [model.names[c] for c in base.columns]
    return float(values[names.index("link_2.Izz")])
