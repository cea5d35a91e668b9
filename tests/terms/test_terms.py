"""Every listed term keeps the contract, and does with energy what its kind says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.terms.cable_force import CableForce
from tests.terms.hinge_spring import HingeSpring
from tests.terms.oiled_friction import OiledFriction

import taufit
from taufit.core.errors import TaufitError
from taufit.robot import Compensator
from taufit.terms import (
    CONSERVATIVE,
    CONSTANT,
    DISSIPATIVE,
    FRICTION_MODELS,
    INERTIAL,
    TERMS,
    GravityCompensator,
    Ripple,
    Spring,
    TermInput,
    start_shape,
    sum_of,
    term_from_dict,
    term_to_dict,
)
from taufit.terms.friction import Linear, Presliding, TemperatureDependent

SPRING = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)
GAS = Compensator(0, "gas", base_arm=0.45, link_arm=0.16, angle=1.9, gas_length=0.6)
EACH = {
    **{name: FRICTION_MODELS[name]() for name in FRICTION_MODELS},
    **{name: TERMS[name]() for name in TERMS},
    "spring_compensator": GravityCompensator((SPRING,)).of_joint(1),
    "gas_compensator": GravityCompensator((GAS,)).of_joint(0),
    "hinge_spring": HingeSpring(),
    "cable_force": CableForce(),
    "oiled_friction": OiledFriction(),
}
each = pytest.mark.parametrize("term", EACH.values(), ids=EACH.keys())
T = np.linspace(0.0, 1.0, 401)


def inputs(position, velocity, *, seed=0):
    """A motion, with load and channels of its own."""
    rng = np.random.default_rng(seed)
    n = len(velocity)
    return TermInput(
        velocity,
        position,
        rng.normal(size=n) * 20.0,
        rng.uniform(10.0, 60.0, n),
        acceleration=rng.normal(size=n),
        channels={"motor_temperature": rng.uniform(10.0, 60.0, n)},
        step=0.01,
    )


def breaks_dissipation(term) -> bool:
    """Whether the term gives energy at some steady speed."""
    fast = np.concatenate([-np.geomspace(3.0, 1e-3, 40), np.geomspace(1e-3, 3.0, 40)])
    columns = term.steady_state().columns(inputs(np.full(80, 0.7), fast), start_shape(term))
    signed = [k for k, one in enumerate(term.parameters) if one.nonnegative]
    return bool(np.any(fast[:, None] * columns[:, signed] < -1e-12))


def breaks_conservation(term) -> bool:
    """Whether torque depends on anything but position, or does work over a closed path."""
    q = 1.3 * np.sin(2.0 * np.pi * T) + 0.4 * np.sin(6.0 * np.pi * T)
    v = np.gradient(q, T)
    shape = start_shape(term)
    once = term.columns(inputs(q, v), shape)
    other = term.columns(inputs(q, -3.0 * v[::-1], seed=1), shape)
    backwards = term.columns(inputs(q[::-1], v, seed=2), shape)[::-1]
    if not all(np.allclose(once, x, rtol=1e-12, atol=0.0) for x in (other, backwards)):
        return True
    work = np.sum(0.5 * (once[1:] + once[:-1]) * np.diff(q)[:, None], axis=0)
    # The trapezium rule of a potential over a closed path of 400 steps.
    return bool(np.any(np.abs(work) > 1e-2 * np.abs(once).max(initial=1e-12)))


def breaks_constancy(term) -> bool:
    v = np.linspace(-1.0, 1.0, len(T))
    return bool(np.any(np.ptp(term.columns(inputs(T, v), np.empty(0)), axis=0) != 0.0))


BROKEN = {
    DISSIPATIVE: breaks_dissipation,
    CONSERVATIVE: breaks_conservation,
    CONSTANT: breaks_constancy,
    INERTIAL: lambda term: "acceleration" not in term.needs,
}


@each
def test_a_term_does_with_energy_what_its_kind_says(term):
    assert set(term.kinds) <= {term.kind}
    if term.parameters:
        assert not BROKEN[term.kind](term)


def test_the_laws_find_a_wrong_kind():
    assert breaks_conservation(Linear()) and breaks_conservation(OiledFriction())
    assert breaks_dissipation(HingeSpring()) and breaks_constancy(Spring())


@each
def test_columns_are_one_per_parameter_and_may_be_cut_anywhere(term):
    v = np.linspace(-1.0, 1.0, 50)
    given, shape = inputs(0.5 * v, v), start_shape(term)
    whole = term.columns(given, shape)
    assert whole.shape == (50, len(term.parameters)) and np.all(np.isfinite(whole))
    state, parts = term.start(shape), []
    for first in range(0, 50, 7):
        columns, state = term.advance(state, given.select_rows(slice(first, first + 7)), shape)
        parts.append(columns)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@each
def test_a_sum_has_each_terms_columns_and_only_leaves_kinds_out(term):
    if not term.parameters or any(one.name == "stiffness" for one in term.parameters):
        pytest.skip("nothing to add up")
    both = sum_of(term, Spring())
    v = np.linspace(-1.0, 1.0, 30)
    given, shape = inputs(0.5 * v, v), start_shape(term)
    columns = both.columns(given, shape)
    np.testing.assert_array_equal(columns[:, :-1], term.columns(given, shape))
    np.testing.assert_array_equal(columns[:, -1], 0.5 * v)
    assert both.kinds == (*term.kinds, CONSERVATIVE)
    assert both.needs == term.needs | {"position"} and both.memory == term.memory
    alone = both.only(DISSIPATIVE).columns(given, shape)
    assert not np.any(alone[:, -1])
    assert np.any(alone[:, :-1]) == (term.kind == DISSIPATIVE)


@each
def test_written_down_and_read_back_it_is_the_same_term(term):
    if type(term).__name__ == "_JointCompensator":
        pytest.skip("a part of a compensator term, which is written as a whole")
    assert term_from_dict(json.loads(json.dumps(term_to_dict(term)))) == term


def test_two_terms_with_one_name_or_two_memories_are_refused():
    with pytest.raises(ValueError, match="'stiffness'"):
        sum_of(Spring(), Spring(0.5))
    with pytest.raises(ValueError, match="remember"):
        sum_of(Presliding(), Memory())


class Memory(Presliding):
    """Under other names."""

    @property
    def parameters(self):
        from dataclasses import replace

        return tuple(replace(one, name=f"other_{one.name}") for one in super().parameters)


def old_file(model):
    """The same model as version 0.1 wrote it: ripple and compensators around the friction."""
    from taufit.model.model_file import model_to_dict

    data = model_to_dict(model)
    law, waves, held = data["friction"], *data.pop("terms")
    data["friction"] = {
        "name": "compensated",
        "model": {**law, "model": {**waves, "model": law["model"]}},
        "compensators": held["compensators"],
    }
    what = [entry["name"].split(".")[1] for entry in data["parameters"]]
    rank = {"viscous_per_degree": 1, "balance_rate": 2, "balance_force": 2}
    owner = [entry["name"].split(".")[0] for entry in data["parameters"]]
    drive = model.layout.drive
    order = sorted(
        range(len(what)),
        key=lambda i: (
            ((owner[i], rank.get(what[i], 0), i) if drive.start <= i < drive.stop else ("", 0, 0),)
            if drive.start <= i < drive.stop
            else (("", 0, i),)
        ),
    )
    inside = [i for i in order if drive.start <= i < drive.stop]
    places = [*range(drive.start), *inside, *range(drive.stop, len(what))]
    data["parameters"] = [data["parameters"][i] for i in places]
    return data


def test_files_that_have_ripple_and_compensators_around_friction_are_read_by_name():
    from dataclasses import replace

    from taufit.model.model_file import model_from_dict

    robot = replace(taufit.read_robot("kr5"), compensators=(SPRING,))
    structure = taufit.TorqueModel(
        robot,
        TemperatureDependent(Linear()),
        terms=(Ripple((1.0,)), GravityCompensator(robot.compensators)),
    )
    rng = np.random.default_rng(0)
    model = structure.with_values(structure.nominal + rng.normal(size=len(structure.names)))
    data = old_file(model)
    assert [e["name"] for e in data["parameters"]] != list(model.names)
    again = model_from_dict(data)
    assert again.names == model.names and again.terms == model.terms
    assert again.friction_model == model.friction_model
    np.testing.assert_array_equal(again.values, model.values)


def test_names_that_do_not_exist_come_with_those_that_do():
    from taufit.fitting import automatic_model

    robot = taufit.read_robot("ur3e")
    with pytest.raises(TaufitError, match=r"no term 'sprung': use one of .*spring"):
        automatic_model(robot, terms=("sprung",))
    with pytest.raises(TaufitError, match="Rotor is no further term"):
        automatic_model(robot, terms=("rotor",))
