"""Three terms that the package does not know go through every consumer, or are refused by name.

A model A has the term with some coefficient; its twin B has more of it. Recordings of B are those
of A with the difference added. Whoever takes the term for what it is says the same of (A, samples
of A) and of (B, samples of B); friction is the same where the term is conservative.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tests.terms.cable_force import CableForce
from tests.terms.hinge_spring import HingeSpring
from tests.terms.oiled_friction import OiledFriction

import taufit
from taufit.contact.external_torque import ExternalTorque
from taufit.contact.regime_noise import default_noise, training_noise
from taufit.core.errors import TaufitError
from taufit.model import friction_torque, predicted_torque
from taufit.model.friction_level import friction_level
from taufit.model.intervals import coulomb_level, predict_interval
from taufit.model.tip_energy import tip_energy
from taufit.recording import Recording
from taufit.signals import Samples
from taufit.terms import CONSERVATIVE, DISSIPATIVE, TERMS, Term
from taufit.terms.friction import Presliding
from taufit.workflow import condition_for_model, identify

SOURCE = Path(taufit.__file__).parent
RATE = 100.0
MORE = {"hinge": 40.0, "cable2": 3.0, "cable3": 2.0, "oiled": 6.0}
# One line each is all that listing a term takes.
LISTED = {
    "hinge_spring": "tests.terms.hinge_spring:HingeSpring",
    "cable_force": "tests.terms.cable_force:CableForce",
    "oiled_friction": "tests.terms.oiled_friction:OiledFriction",
}
NEW = {
    "hinge_spring": HingeSpring(),
    "cable_force": CableForce(),
    "oiled_friction": OiledFriction(),
}


@dataclass(frozen=True)
class Case:
    """A model, samples and a recording of it, and torque at their positions before any filter."""

    model: taufit.FittedModel
    samples: Samples
    recording: Recording
    unfiltered: np.ndarray


@dataclass(frozen=True)
class Pair:
    term: Term
    plain: Case
    more: Case


def motion(seconds: float, seed: int):
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    w = 2 * np.pi * 0.1 * np.arange(1, 5)
    size = rng.uniform(0.3, 0.9, (6, 4)) / np.arange(1, 5)
    angle = w * t[:, None, None] + rng.uniform(0, 2 * np.pi, (6, 4))
    q = np.sum(size * np.sin(angle), -1) + np.linspace(-1.2, 0.6, 6)
    v = np.sum(size * w * np.cos(angle), -1)
    return t, q, v, -np.sum(size * w**2 * np.sin(angle), -1)


def oil(t):
    """A second temperature, which no term of the package reads."""
    return 30.0 + 0.5 * t[:, None] + np.arange(6.0)


def torque_of(model, t, q, v, a, temperature):
    """Torque of a motion as one run, with the channel."""
    from taufit.terms import TermInput

    columns = model.columns
    rigid = columns.links(q, v, a) @ model.values[model.layout.links]
    channels = {"motor_temperature": temperature}
    motor = columns.drive_columns(TermInput(v, q, rigid, channels=channels, step=1.0 / RATE))
    return rigid + columns.term_torque(model.values, a, motor)


def made(term) -> Pair:
    robot = taufit.read_robot("ur3e")
    structure = taufit.TorqueModel(robot, Presliding((3e-4, 3e-2)), terms=(term,))
    size = np.linspace(1.0, 0.3, 6)
    known = {"coulomb": 4.0, "presliding_2": 1.0, "viscous": 3.0, "load": 0.03, "viscous2": -0.3}
    sizes = {**known, **MORE, "rotor": 0.3, "offset": 0.2}
    values = structure.nominal
    for i, what in enumerate(structure.layout.quantities):
        if i >= structure.layout.links.stop:
            values[i] = sizes[what] * size[structure.layout.owner[i]]
    truth = structure.with_values(values)
    runs = []
    for seed in (0, 1):
        t, q, v, a = motion(20.0, seed)
        torque = torque_of(truth, t, q, v, a, oil(t))
        torque += 0.01 * torque.std(axis=0) * np.random.default_rng(seed).normal(size=q.shape)
        runs.append(
            Recording(t, q, torque, velocity=v, meta={"file": f"run {seed}"}).with_channels(
                motor_temperature=oil(t)
            )
        )
    model = identify(robot, runs[:1], terms=[term], friction=structure.friction).model
    added = np.array([MORE.get(what, 0.0) for what in model.layout.quantities])
    more = replace(model.with_values(model.values + added), training=model.training)
    samples = condition_for_model(model, runs[1:])
    difference = predicted_torque(more, samples) - predicted_torque(model, samples)
    still = more.conservative_torque(samples.position) - model.conservative_torque(samples.position)
    t, q, v, a = motion(20.0, 1)
    raw = torque_of(more, t, q, v, a, oil(t)) - torque_of(model, t, q, v, a, oil(t))
    return Pair(
        term,
        Case(model, samples, runs[1], samples.torque),
        Case(
            more,
            replace(
                samples, torque=samples.torque + difference, raw_torque=samples.raw_torque + still
            ),
            replace(runs[1], signal=runs[1].signal + raw),
            samples.torque + still,
        ),
    )


@pytest.fixture(scope="module", autouse=True)
def listed():
    for name, place in LISTED.items():
        TERMS[name] = place
    yield
    for name in LISTED:
        del TERMS[name]


@pytest.fixture(scope="module", params=NEW)
def pair(request, listed):
    return made(NEW[request.param])


def felt(case):
    model, samples = case.model, case.samples
    external = ExternalTorque.from_noise(model, model.training.noise or default_noise(model))
    cells = np.concatenate([samples.position, samples.velocity, case.unfiltered], 1)
    return external(samples.time, cells).torque


def noise(case):
    learnt = training_noise(case.model, case.samples)
    if learnt is None:
        raise TaufitError(f"no cells with {', '.join(case.model.channels)}")
    return learnt.level


def weighed(method):
    def run(case):
        found = taufit.identify_payload(case.model, case.recording, method=method).estimate
        return np.array([found.mass])

    return run


def health(case):
    from taufit.health import friction_index

    return friction_index(case.model, case.samples).index


def tracked(case):
    from taufit.health import track

    return track(case.model, case.samples).correction


def page_friction(case):
    from taufit.report.model_view import predict_breakdown

    seen = predict_breakdown(case.model, case.samples)
    return np.concatenate([seen.friction, case.samples.torque - seen.total])


def contacts(case):
    from taufit.contact import find_contacts

    return np.array(
        [one.start_time for one in find_contacts(case.model, case.recording).contacts] + [0]
    )


def scatter(case):
    from taufit.regression.run_variability import _joint_friction

    layout = case.model.layout
    return np.array(
        [
            _joint_friction(case.model.values, layout, j)[layout.of_kind(CONSERVATIVE)].sum()
            for j in range(6)
        ]
    )


def passive(case):
    from taufit.estimators.constraints import passivity_rows

    rows = [row for row, _ in passivity_rows(case.model.structure, (2.0,) * 6)]
    return np.array([sum(row.values()) for row in rows] + [0.0])


def refit(case):
    """Another fit of the same structure finds the same links and friction."""
    # Without rounds that end within a tolerance: of load, and of weights.
    structure = replace(case.model.structure, friction=taufit.Linear(), shape=None)
    fitted = structure.with_values(taufit.fit_samples(structure, case.samples, taufit.Ols()).values)
    return case.samples.torque[::7] - predicted_torque(fitted, case.samples)[::7]


# What must be the same of both, by room. A consumer may raise an error that names the term, its
# parameter or its channel instead.
SAME = {
    "residual of prediction": lambda c: c.samples.torque - predicted_torque(c.model, c.samples),
    "model file": lambda c: c.samples.torque - predicted_torque(again(c.model), c.samples),
    "interval": lambda c: predict_interval(c.model, c.samples).half_width,
    "friction level": lambda c: friction_level(c.model),
    "creeping level": lambda c: coulomb_level(c.model),
    "tip energy": lambda c: (
        tip_energy(c.model, c.samples.position[::50], c.samples.velocity[::50]).kinetic
    ),
    "regression: run scatter": scatter,
    "estimators: takes energy": passive,
    "fitting: fit": refit,
    "contact: noise by state": noise,
    "contact: external torque": felt,
    "contact: contacts": contacts,
    "health: index": health,
    "health: tracker": tracked,
    "payload: filter": weighed("filter"),
    "payload: direct": weighed("direct"),
    "report: friction": page_friction,
}
# Friction of B is more than that of A where the term itself is friction.
# These average a recording before any term sees it, which a torque that is not straight over
# position feels: how far apart they may be then.
AVERAGED = {"payload: filter": 2e-4, "payload: direct": 2e-4, "contact: noise by state": 1e-3}
OF_FRICTION = {"interval", "friction level", "health: index", "health: tracker", "report: friction"}


def again(model):
    from taufit.model.model_file import model_from_dict, model_to_dict

    return model_from_dict(model_to_dict(model))


def names_of(term) -> str:
    words = [
        type(term).__name__,
        *(one.name for one in term.parameters),
        *term.needs - {"velocity"},
    ]
    return "|".join(map(re.escape, words))


@pytest.mark.parametrize("consumer", SAME)
def test_a_consumer_says_the_same_or_refuses_by_name(pair, consumer):
    if consumer in OF_FRICTION and pair.term.kind == DISSIPATIVE:
        pytest.skip("friction is what it asks for")
    try:
        plain, more = (np.asarray(SAME[consumer](case), float) for case in (pair.plain, pair.more))
    except TaufitError as error:
        assert pair.term.needs - {"velocity", "position"}, error
        assert re.search(names_of(pair.term), str(error)), error
        return
    size = max(float(np.nanmax(np.abs(plain), initial=0.0)), 1.0)
    apart = 1e-9 if pair.term.filtered else AVERAGED.get(consumer, 1e-9)
    np.testing.assert_allclose(more, plain, rtol=0.0, atol=apart * size)


def test_the_friction_part_has_dissipative_terms_and_no_others(pair):
    plain, more = (friction_torque(case.model, case.samples) for case in (pair.plain, pair.more))
    change = pair.more.samples.torque - pair.plain.samples.torque
    expected = change if pair.term.kind == DISSIPATIVE else 0.0 * change
    np.testing.assert_allclose(more - plain, expected, atol=1e-9 * np.abs(change).max())
    assert np.abs(change).max() > 1.0


def test_torque_over_position_alone_is_that_of_conservative_terms(pair):
    q = pair.plain.samples.position[:50]
    found = pair.more.model.conservative_torque(q) - pair.plain.model.conservative_torque(q)
    if pair.term.kind == DISSIPATIVE:
        assert not np.any(found)
        return
    for j in range(6):
        from taufit.terms import TermInput

        columns = pair.term.columns(TermInput(0 * q[:, j], q[:, j]), np.empty(0))
        wanted = columns @ [MORE[one.name] for one in pair.term.parameters]
        np.testing.assert_allclose(found[:, j], wanted, rtol=1e-9, atol=1e-9)


def test_the_fit_finds_the_term_beside_automatic_friction(pair):
    done = identify(pair.plain.model.robot, [pair.plain.recording], terms=[pair.term])
    assert done.model.terms[0] == pair.term
    assert done.training_score.mean_nrmse < 0.02


def test_signs_take_only_friction_for_what_takes_energy(pair):
    from taufit.signs.data import prepare_search
    from taufit.signs.physics import positive_functionals

    model = replace(pair.plain.model.structure, friction=taufit.Linear())
    try:
        data = prepare_search(model, pair.plain.samples, ())
        rows = positive_functionals(data, np.arange(6))
    except TaufitError as error:
        assert re.search(names_of(pair.term), str(error))
        return
    kept = np.array(model.names)[data.rows.parameters]
    powered = {name for row in rows for name in kept[row != 0.0] if name.startswith("joint")}
    own = {f"joint_{j + 1}.{one.name}" for j in range(6) for one in pair.term.parameters}
    assert (powered & own == set()) == (pair.term.kind == CONSERVATIVE)


def test_zeros_are_found_from_the_slope_of_conservative_terms(pair):
    from taufit.calibration.zero_search import ZeroSearch

    if pair.term.kind == DISSIPATIVE:
        pytest.skip("no torque over position")
    model = pair.more.model
    search = ZeroSearch(model.structure, pair.more.samples, (1,), np.full(6, 0.01))
    zeros = search.start
    slopes = search._zero_columns(zeros, model.values)[:, 1, 0]
    h = 1e-5
    without = search._zero_columns(zeros, pair.plain.model.values)[:, 1, 0]
    q = np.array(search.motion[0])
    step = np.zeros(6)
    step[1] = h
    wanted = sum(
        sign * (case.model.conservative_torque(q + side * step)[:, 1]) / (2 * h)
        for case, sign in ((pair.more, 1.0), (pair.plain, -1.0))
        for side in (1.0,)
    ) - sum(
        sign * (case.model.conservative_torque(q - step)[:, 1]) / (2 * h)
        for case, sign in ((pair.more, 1.0), (pair.plain, -1.0))
    )
    np.testing.assert_allclose(slopes - without, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["arm.c", "arm.fmu", "arm.urdf", "arm.xml", "arm.json"])
def test_an_export_has_the_term_or_says_that_it_has_not(pair, name, tmp_path):
    try:
        told = taufit.export_model(pair.more.model, tmp_path / name)
    except TaufitError as error:
        assert name in ("arm.c", "arm.fmu") and re.search(names_of(pair.term), str(error))
        assert pair.term.needs - {"velocity", "position"}
        return
    if name in ("arm.urdf", "arm.xml"):
        assert any(re.search(names_of(pair.term), str(text)) for text in told)
    if name == "arm.c":
        from tests.export.compiled import Compiled

        t, q, v, a = motion(3.0, 4)
        compiled = Compiled(tmp_path, pair.more.model, "-O0").run(q, v, a, 1.0 / RATE)
        wanted = torque_of(pair.more.model, t, q, v, a, oil(t))
        np.testing.assert_allclose(compiled, wanted, atol=1e-9 * np.abs(wanted).max())


def test_the_simulated_arm_refuses_by_name_what_it_cannot_hold(pair):
    from taufit.sim import Twin, random_fourier

    with pytest.raises(TaufitError, match=names_of(pair.term)):
        Twin.from_model(pair.more.model).run(random_fourier(pair.more.model.robot, seed=0))


def test_a_motion_is_designed_for_it_or_refused_by_name(pair):
    from taufit.excitation.objective import MotionInformation

    model = replace(pair.plain.model.structure, friction=taufit.Linear(0.05))
    _, q, v, a = motion(4.0, 3)
    try:
        found = MotionInformation(model, np.arange(len(model.names)), np.ones(6)).matrix(q, v, a)[0]
    except TaufitError as error:
        assert re.search(names_of(pair.term), str(error))
        return
    rows = model.regressor(q, v, a)
    wanted = np.einsum("njp,njq->pq", rows, rows) / len(q)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_a_fleet_has_a_scale_for_it(pair):
    from taufit.fleet.fleet_prior import _friction_levels, _term_sizes

    model = pair.plain.model
    sizes = _term_sizes(model.structure, _friction_levels(model.structure, model.values))
    assert np.all(np.isfinite(sizes)) and np.all(sizes > 0.0)


def test_terms_that_cannot_be_written_down_are_watched_all_the_same(pair, monkeypatch):
    from taufit.model.friction_tape import FrictionTape

    if pair.plain.model.channels:
        pytest.skip("cells have no such channel")
    compiled = contacts(pair.plain), felt(pair.plain)
    monkeypatch.setattr(FrictionTape, "_trace", lambda self: False)
    np.testing.assert_array_equal(contacts(pair.plain), compiled[0])
    np.testing.assert_allclose(felt(pair.plain), compiled[1], atol=1e-9)


def test_one_way_joints_tie_no_spring(pair):
    from taufit.fitting.unidirectional_joints import confounded_terms

    samples = pair.plain.samples
    one_way = replace(samples, velocity=np.abs(samples.velocity) + 0.1)
    tied = confounded_terms(pair.plain.model.structure, one_way).tied
    assert tied and not any(one.name in name for one in pair.term.parameters for name in tied)


def test_live_and_temperature_ask_the_same_consumers(pair):
    from taufit.temperature.warm_up import follows_temperature

    assert not follows_temperature(pair.plain.model)


# Rooms that ask a model for its terms or their columns, and the tests here that go through them.
ROOMS = {
    "calibration": "zeros_are_found",
    "cli": "the commands call what is listed here",
    "contact": "contact: external torque",
    "diagnosis": "fits of links and plain friction of its own",
    "dynamics": "base parameters, in every fit",
    "estimators": "estimators: takes energy",
    "excitation": "designed_for_it",
    "export": "an_export",
    "fitting": "fitting: fit",
    "fleet": "a_fleet",
    "health": "health: index",
    "live": "contact: external torque, health: tracker",
    "papers": "friction of the papers only",
    "payload": "payload: filter",
    "regression": "regression: run scatter",
    "report": "report: friction",
    "signs": "signs_take",
    "sim": "simulated_arm",
    "temperature": "live_and_temperature",
    "workflow": "beside_automatic_friction",
}
_ASKS = re.compile(
    r"term_sum|\.drive_at\(|\.drive_columns\(|conservative_torque|of_kind\(|of_group\(|"
    r"layout\.where\(|layout\.drive|friction_columns\(|friction_torque\(|rest_torque\(|"
    r"(model|fitted|structure)\.terms\b"
)


def test_every_room_that_asks_for_terms_is_listed():
    found = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if _ASKS.search(path.read_text(encoding="utf-8"))
    } - {"terms", "model"}
    assert found == set(ROOMS) & found and found <= set(ROOMS)
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(source.count(where.split(",")[0]) >= 2 or " " in where for where in ROOMS.values())
