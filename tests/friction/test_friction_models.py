"""Every registered friction model keeps the contract; each formula is checked against its print."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taufit.core.errors import MissingInputError, TaufitError
from taufit.terms import (
    Term,
    TermInput,
    start_shape,
    steady_friction_model,
    term_from_dict,
    term_to_dict,
)
from taufit.terms.friction import (
    FRICTION_MODELS,
    Asymmetric,
    FittedWidth,
    Linear,
    LinearLoad,
    Polynomial,
    PowerLaw,
    Presliding,
    Stribeck,
    StribeckLoad,
    StribeckLoadSmooth,
    TemperatureDependent,
    Wrapper,
)

V = np.concatenate([np.linspace(-2.0, 2.0, 41), [1e-9, -1e-9, 0.0, 5.0]])
TAU = np.linspace(-30.0, 30.0, len(V))
T = np.linspace(15.0, 60.0, len(V))
INPUTS = TermInput(V, 0.1 * V, TAU, T, step=0.01)

MODELS = {
    **{name: kind() for name, kind in FRICTION_MODELS.items()},
    "stribeck_load_width": StribeckLoad(width=0.01, degree=1),
    "exponential": TemperatureDependent(Stribeck(), law="exponential"),
    "arrhenius": TemperatureDependent(PowerLaw(), law="arrhenius", affected=("coulomb",)),
    "own_coulomb": Asymmetric(own_coulomb=True),
    "width_of_stribeck": FittedWidth(Stribeck(width=0.01)),
    "quadratic": LinearLoad(quadratic=True),
    "presliding_warm": TemperatureDependent(Presliding(), affected=("coulomb", "load")),
    "presliding_hot": TemperatureDependent(Presliding(load=False), law="exponential"),
}
each = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@each
def test_columns_are_one_per_term_finite_and_zero_at_standstill(model):
    columns = model.steady_state().columns(INPUTS, start_shape(model))
    assert isinstance(model, Term)
    assert columns.shape == (len(V), len(model.parameters))
    assert np.all(np.isfinite(columns))
    assert not np.any(columns[V == 0.0])
    assert len({term.name for term in model.parameters}) == len(model.parameters)


@each
def test_friction_takes_energy_at_steady_speed(model):
    columns = model.steady_state().columns(INPUTS, start_shape(model))
    signed = [k for k, one in enumerate(model.parameters) if one.nonnegative]
    assert np.all(V[:, None] * columns[:, signed] >= 0.0)


@each
def test_complex_step_is_the_derivative_in_every_shape(model):
    shape = start_shape(model)
    for i in range(len(shape)):
        step = shape.astype(complex)
        step[i] += 1e-30j
        exact = model.columns(INPUTS, step).imag / 1e-30
        h = 1e-6 * shape[i]
        unit = np.eye(len(shape))[i]
        above, below = (model.columns(INPUTS, shape + sign * h * unit) for sign in (1, -1))
        # Central differences are good to h^2 ~ 1e-12 relative plus rounding 1e-10.
        np.testing.assert_allclose(exact, (above - below) / (2 * h), rtol=1e-5, atol=1e-6)


@each
def test_written_down_and_read_back_it_is_the_same_model(model):
    text = json.dumps(term_to_dict(model))
    assert term_from_dict(json.loads(text)) == model


@each
def test_shapes_have_sensible_bounds_and_starts(model):
    for shape in model.shapes:
        assert 0 < shape.lower <= min(shape.start) <= max(shape.start) <= shape.upper


def test_formulas_are_those_of_the_papers():
    v, tau = 0.3, -12.0
    at = TermInput(np.array([v]), load=np.array([tau]))

    def column(model, shape=()):
        return model.columns(at, np.array(shape))[0]

    np.testing.assert_allclose(column(Linear()), [1.0, v])
    np.testing.assert_allclose(column(Linear(width=0.2)), [np.tanh(1.5), v])
    np.testing.assert_allclose(column(PowerLaw(), [0.5]), [1.0, v**0.5])
    np.testing.assert_allclose(column(Polynomial()), [v, v**2, v**3, 1.0])
    fall = [np.exp(-((v / 0.4) ** 2)), np.exp(-((v / 0.5) ** 2))]
    stribeck = [v, v**2, v**3, 1 - fall[0], fall[1]]
    np.testing.assert_allclose(column(Stribeck(), [0.4, 0.5]), stribeck)
    np.testing.assert_allclose(
        column(StribeckLoad(), [0.4, 0.5, 0.01]),
        [*stribeck, 12.0, np.exp(-0.01 * 12.0 / 0.3)],
    )
    np.testing.assert_allclose(
        column(StribeckLoadSmooth(), [0.4, 0.5, 0.6]),
        [*stribeck, 12.0, 12.0 * np.exp(-0.25)],
    )
    np.testing.assert_allclose(column(LinearLoad()), [1.0, v, 12.0])
    back = Asymmetric().columns(TermInput(np.array([-0.3])), np.empty(0))[0]
    np.testing.assert_allclose(back, [-1.0, 0.0, -0.3])


def test_temperature_laws_agree_at_the_reference_and_fall_above_it():
    warmer = TermInput(np.array([1.0, 1.0]), temperature=np.array([25.0, 45.0]))
    slope = TemperatureDependent(Linear()).columns(warmer, np.empty(0))
    np.testing.assert_allclose(slope, [[1, 1, 0], [1, 1, 20]])
    decay = TemperatureDependent(Linear(), law="exponential").columns(warmer, np.array([0.02]))
    np.testing.assert_allclose(decay[:, 1], [1.0, np.exp(-0.4)])
    np.testing.assert_allclose(decay[:, 0], 1.0)
    thermal = TemperatureDependent(Linear(), law="arrhenius").columns(warmer, np.array([2000.0]))
    np.testing.assert_allclose(
        thermal[:, 1], [1.0, np.exp(2000 * (1 / (45 + 273.15) - 1 / (25 + 273.15)))]
    )


def test_missing_load_or_temperature_is_named():
    with pytest.raises(TaufitError, match="needs the load"):
        StribeckLoad().columns(TermInput(V), start_shape(StribeckLoad()))
    with pytest.raises(TaufitError, match="needs the temperature"):
        TemperatureDependent().columns(TermInput(V), np.empty(0))


def test_unknown_names_come_with_the_known_ones():
    with pytest.raises(TaufitError, match=r"'stribek' is not known.*stribeck_load"):
        term_from_dict({"name": "stribek"})
    with pytest.raises(TaufitError, match="cannot have these settings"):
        term_from_dict({"name": "linear", "breadth": 1.0})
    with pytest.raises(ValueError, match="is no parameter of the model"):
        TemperatureDependent(Linear(), affected=("drag",))
    with pytest.raises(ValueError, match="is not known"):
        TemperatureDependent(Linear(), law="cubic")
    with pytest.raises(ValueError, match="no width"):
        FittedWidth(FRICTION_MODELS["none"]())


@each
def test_a_run_cut_anywhere_gives_the_columns_of_the_whole(model):
    shape = start_shape(model)
    whole = model.columns(INPUTS, shape)
    state, parts = model.start(shape), []
    for first in range(0, len(V), 7):
        columns, state = model.advance(state, INPUTS.select_rows(slice(first, first + 7)), shape)
        parts.append(columns)

    np.testing.assert_array_equal(np.concatenate(parts), whole)


@each
def test_a_model_reads_what_it_says_and_each_missing_part_is_named(model):
    shape = start_shape(model)
    given = {"velocity": V, "position": 0.1 * V, "load": TAU, "temperature": T, "travel": 0.01 * V}
    needed = {name: values for name, values in given.items() if name in model.needs}

    np.testing.assert_array_equal(
        model.columns(TermInput(**needed), shape), model.columns(TermInput(**given), shape)
    )
    for name in needed if model.parameters else ():
        rest = {other: values for other, values in needed.items() if other != name}
        with pytest.raises(MissingInputError, match=f"needs the {name}"):
            model.columns(TermInput(**rest), shape)


@each
def test_without_memory_friction_is_that_of_a_long_way_at_constant_speed(model):
    shape, n = start_shape(model), 400
    ones = np.ones(n)
    at = TermInput(0.5 * ones, 0.1 * ones, -7.0 * ones, 40.0 * ones, travel=0.05 * ones)

    steady = model.steady_state().columns(at, shape)[-1]

    assert model.steady_state().parameters == model.parameters and not model.steady_state().memory
    # The widest element is 66 widths into its way; waves over the angle count with their mean.
    turn = at.replace(position=np.arange(n) * (2.0 * np.pi / 40))
    columns = model.columns(turn, shape)[-40:].mean(axis=0)
    np.testing.assert_allclose(columns, steady, atol=1e-12)


def test_motors_share_what_the_joints_do():
    coupling = np.array([[1.0, 0.0], [0.5, 1.0]])
    rng = np.random.default_rng(0)
    q, v, load = rng.normal(size=(3, 5, 2))

    motors = TermInput(v, q, load, step=0.1).at_motors(coupling)

    np.testing.assert_allclose(motors.velocity, v @ coupling.T)
    np.testing.assert_allclose(motors.position, q @ coupling.T)
    np.testing.assert_allclose(motors.travel, 0.1 * v @ coupling.T)
    # What a motor carries, spread over the joints again, is what the joints carry.
    np.testing.assert_allclose(motors.load @ coupling, load)


@each
def test_a_wrapper_that_changes_nothing_is_the_model_inside(model):
    around = Wrapper(model)
    for what in ("parameters", "shapes", "needs", "memory", "by_load"):
        assert getattr(around, what) == getattr(model, what)
    shape = start_shape(model)
    pairs = [
        (around, model),
        (around.steady_state(), model.steady_state()),
        (steady_friction_model(around), steady_friction_model(model)),
    ]
    for one, other in pairs:
        np.testing.assert_array_equal(one.columns(INPUTS, shape), other.columns(INPUTS, shape))
