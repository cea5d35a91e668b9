"""Picks and drops: the evidence is a Bayes factor, and a kilogram is found while it matters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from taufit.dynamics import jacobian
from taufit.payload import PayloadFilter, PayloadSettings, identify_payload, stream
from taufit.payload.filter.causal_lowpass import CausalLowpass
from taufit.payload.filter.change_detector import (
    _CHANGE_STD,
    _OFFSET_STD,
    _SLOW_FRICTION_STD,
    ChangeDetector,
    PayloadChangeEvidence,
    ReferenceEstimate,
    RowBlock,
    short_term_density,
)
from taufit.payload.filter.contact_hypothesis import DEADLINE_S, ContactHypothesis
from taufit.payload.filter.filter_state import MassHistory
from taufit.sim.payload import CarriedPayload
from taufit.sim.random_motion import random_fourier

JOINTS, COLUMNS, SLOW = 2, 9, 6
STEP = 0.01


def _chunks(rng, count, rows=5):
    out = []
    for i in range(count):
        own = tuple(
            (rng.normal(size=(rows, COLUMNS + 1)), rng.integers(0, 2, rows).astype(float))
            for _ in range(JOINTS)
        )
        out.append(
            RowBlock((i + 1) * rows * STEP, rows * STEP, own, tuple(weight for _, weight in own))
        )
    return out


def _belief(rng):
    states = [np.append(rng.normal(size=COLUMNS), -1.0) for _ in range(JOINTS)]
    positive = np.exp(0.3 * rng.normal(size=(4, JOINTS)))
    known = np.array([0.05, 0.01, 0.02, 0.01])
    return ReferenceEstimate(
        states, 0.02 * positive[0], positive[1], positive[2], [SLOW] * JOINTS, known
    )


def _twice_log_likelihood(chunks, belief, change):
    """2 ln p(r) of all rows at once, with a payload that is off by the variance `change`."""
    residuals, columns, noise, nuisance = [], [], [], []
    for chunk in chunks:
        for j, (rows, weight) in enumerate(chunk.rows):
            seen = weight > 0.0
            residuals.append(-(rows @ belief.states[j])[seen])
            columns.append(rows[seen, :4])
            noise.append(np.full(seen.sum(), belief.density[j] / STEP))
            own = np.zeros((seen.sum(), 2 * JOINTS))
            own[:, 2 * j] = _OFFSET_STD * belief.rms[j]
            own[:, 2 * j + 1] = _SLOW_FRICTION_STD * belief.level[j] * rows[seen, SLOW]
            nuisance.append(own)
    w, n = np.concatenate(columns), np.concatenate(nuisance)
    covariance = np.diag(np.concatenate(noise)) + n @ n.T + (w * change) @ w.T
    return 2.0 * multivariate_normal.logpdf(np.concatenate(residuals), cov=covariance)


@pytest.mark.parametrize("seed", range(5))
def test_the_evidence_is_the_bayes_factor_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    chunks, belief = _chunks(rng, 4), _belief(rng)
    detector = ChangeDetector(1.0)
    for chunk in chunks:
        detector.add(chunk)
        found = detector.test(belief, (1.0,), light_mass=1.0)

    before = _twice_log_likelihood(chunks, belief, belief.std**2)
    after = _twice_log_likelihood(chunks, belief, belief.std**2 + _CHANGE_STD**2)
    assert found.evidence == pytest.approx(after - before, rel=1e-8)
    assert found.window == pytest.approx(0.2)


def test_the_length_that_says_most_counts():
    rng = np.random.default_rng(3)
    chunks, belief = _chunks(rng, 8), _belief(rng)
    windows = (0.05, 0.1, 0.4)
    single = []
    for window in windows:
        detector = ChangeDetector(max(windows))
        for chunk in chunks:
            detector.add(chunk)
            alone = detector.test(belief, (window,), light_mass=1.0)
        single.append(alone.evidence)
    detector = ChangeDetector(max(windows))
    for chunk in chunks:
        detector.add(chunk)
        found = detector.test(belief, windows, light_mass=1.0)

    assert found.evidence == pytest.approx(max(single))


def test_noise_alone_is_taken_for_a_change_no_more_often_than_the_odds_say():
    rng = np.random.default_rng(5)
    belief = _belief(rng)
    detector = ChangeDetector(0.2)
    said = []
    for chunk in _chunks(rng, 600):
        for j, (rows, _) in enumerate(chunk.rows):
            noise = rng.normal(size=len(rows)) * np.sqrt(belief.density[j] / STEP)
            rows[:, -1] = rows[:, :-1] @ belief.states[j][:-1] + noise
        detector.add(chunk)
        said.append(detector.test(belief, (0.2,), light_mass=1.0).evidence)

    # B has mean 1 without a change, so P(B >= b) <= 1/b.
    for odds in (5.0, 20.0):
        assert np.mean(np.array(said) >= 2.0 * np.log(odds)) <= 1.0 / odds
    assert np.median(said) < -3.0


@pytest.mark.parametrize(("pick", "drop"), [(13.0, None), (None, 14.4)])
def test_a_kilogram_is_found_in_a_quarter_of_a_second(arm, model, pick, drop):
    preset, twin = arm
    carried = CarriedPayload.lump(1.0, (0.0, 0.0, 0.05), pick=pick, drop=drop)
    run = twin.run(preset.motion(periods=1.6), seed=31, payload=carried, rest=(0.5, 0.0))

    events = identify_payload(model, run.recording).events

    assert [event.kind for event in events] == ["pick" if drop is None else "drop"]
    assert 0.0 < events[0].time - (pick or drop) < 0.25


@pytest.mark.parametrize("mass", [0.0, 2.0])
def test_nothing_changes_where_nothing_changes(arm, model, mass):
    _, twin = arm
    centre = np.array([0.0, -1.57, 0.0, -1.57, 0.0, 0.0])
    motion = random_fourier(twin.robot, seed=5, periods=1.5, centre=centre, reach=1.0)
    payload = CarriedPayload.lump(mass, (0.02, 0.0, 0.06)) if mass else ()
    run = twin.run(motion, seed=41, payload=payload, rest=(0.5, 0.0))

    done = identify_payload(model, run.recording)

    assert done.ready_at is not None
    assert done.events == ()


def test_after_a_change_the_new_payload_is_found(arm, model):
    preset, twin = arm
    carried = CarriedPayload.lump(2.0, (0.0, 0.0, 0.05), pick=12.5)
    run = twin.run(preset.motion(periods=1.9), seed=51, payload=carried, rest=(0.5, 0.0))

    done = identify_payload(model, run.recording)

    after = [m for m in done.history if m.t > 12.8 and m.ready]
    assert len(after) > 20
    (event,) = done.events
    assert event.kind == "pick" and event.change == pytest.approx(2.0, abs=0.2)
    assert np.mean([m.low <= 2.0 <= m.high for m in after]) > 0.9
    before = [m for m in done.history if m.t < 12.5 and m.ready]
    assert all(m.low == 0.0 for m in before)


def test_what_is_taken_back_was_there(arm, model):
    preset, twin = arm
    carried = CarriedPayload.lump(2.0, (0.0, 0.0, 0.05), pick=12.6)
    run = twin.run(preset.motion(periods=1.3), seed=71, payload=carried, rest=(0.5, 0.0))
    live = PayloadFilter(model, PayloadSettings(memory_s=3.0))
    lowest = []
    for time, *sample in stream(model, run.recording).samples():
        # A gap just before the pick: rows of before it were worked on since.
        if 12.2 < time < 12.4:
            continue
        live.update(time, *sample)
        if live.samples % 12 == 0:
            live.estimate()
            squares = [sums.gram for sums in live.filter_state.sums]
            lowest += [np.linalg.eigvalsh(s)[0] / max(np.abs(s).max(), 1e-9) for s in squares]

    # The recording ends before a pick can be told from a contact.
    assert [event.kind for event in live.events] == ["gap", "pick or contact"]
    # Sums of squares have no negative directions.
    assert min(lowest) > -1e-12


def test_a_joint_that_turned_one_way_is_not_listened_to(model):
    live = PayloadFilter(model)
    live.filter_state.last_estimate = live.estimate()
    forward_and_backward = live.filter_state.totals[:, 2:4]
    forward_and_backward[:] = 1.0
    forward_and_backward[4, 1] = 0.0

    density = live._reference().density

    assert np.isinf(density[4]) and np.all(np.isfinite(np.delete(density, 4)))


@pytest.mark.parametrize(("force", "seconds"), [(20.0, 0.1), (50.0, 0.5)])
def test_a_contact_is_no_pick_and_the_payload_is_what_it_was(arm, model, force, seconds):
    preset, twin = arm
    run = twin.run(preset.motion(periods=2.0), seed=81, rest=(0.5, 0.0))
    source = stream(model, run.recording)
    rng = np.random.default_rng(4)
    torque = source.torque.copy()
    lever = jacobian(model.robot, source.position)[:, 3:]
    starts = (9.0, 10.5, 12.0)
    for start in starts:
        push = rng.normal(size=3)
        push *= force / np.linalg.norm(push)
        during = (source.time >= start) & (source.time < start + seconds)
        torque[during] -= np.einsum("nij,i->nj", lever[during], push)
    live = PayloadFilter(model)
    for time, *sample in replace(source, torque=torque).samples():
        live.update(time, *sample)
        if live.samples % 12 == 0:
            live.estimate()
    kinds = {event.kind for event in live.events}
    assert "contact" in kinds and not kinds & {"pick", "drop", "change"}
    assert live.estimate().mass_interval[1] < 0.3


def test_a_push_while_the_payload_is_first_read_is_no_drop_when_it_ends():
    def read(*past):
        readings = MassHistory()
        for time, mass in past:
            readings.add(time, mass, 0.05)
        return readings

    # Nothing carried, a push from 9.8 s on, and the payload becomes known at 10.4 s.
    pushed = read((9.2, 0.08), (9.4, 0.07), (9.9, 0.08), (10.2, 0.2), (10.4, 0.23))
    assert pushed.is_contact_end(10.5, 0.0, 0.1)
    # What is carried now is not what was before; what changed was known for long.
    assert not pushed.is_contact_end(10.5, 1.0, 0.1)
    assert not pushed.is_contact_end(11.5, 0.0, 0.1)
    # Nothing was read a second before.
    assert not read((9.9, 0.08), (10.4, 0.23)).is_contact_end(10.5, 0.0, 0.1)
    assert not MassHistory().is_contact_end(10.5, 0.0, 0.1)


def test_differentiated_noise_scatters_over_tenths_of_a_second_as_it_is_taken_to():
    """Velocity noise, differentiated, has no slow part; means over 0.1 s scatter all the same."""
    rng = np.random.default_rng(3)
    rate, cutoff = 125.0, 10.0
    noise = np.diff(rng.normal(size=400_001)) * rate
    left = CausalLowpass(rate, cutoff)(noise[:, None])[1000:, 0]
    cells = 12
    means = left[: len(left) // cells * cells].reshape(-1, cells).mean(axis=1)
    long = left[: len(left) // 1250 * 1250].reshape(-1, 1250).mean(axis=1)
    slow, window = long.var() * 1250 / rate, cells / rate
    assert slow < 0.05 * means.var() * window
    found = short_term_density(np.array([slow]), np.array([left.std()]), cutoff)[0]
    # A mean over 0.1 s passes the slower half of the band, where this noise has least of it.
    assert means.var() * window < found < 6.0 * means.var() * window
    assert short_term_density(np.array([9.0]), np.array([1e-3]), cutoff)[0] == 9.0


def test_an_arm_that_stands_does_not_make_a_pick_of_a_contact():
    rng = np.random.default_rng(6)
    moving, belief = _chunks(rng, 300), _belief(rng)
    standing = [
        one._replace(rows=tuple((rows, 0.0 * weight) for rows, weight in one.rows))
        for one in moving
    ]
    found = PayloadChangeEvidence(50.0, 1.0, 0.1)
    assert moving[-1].time > DEADLINE_S
    seen = {}
    for name, chunks in (("moves", moving), ("stands", standing)):
        rival = ContactHypothesis(0.0, 0, found, belief, 1.0, None)
        seen[name] = [rival.test(chunk) for chunk in chunks]
    assert set(seen["stands"]) == {None}
    assert any(verdict is not None for verdict in seen["moves"])
