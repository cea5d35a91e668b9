"""The compiled read-out is the one written in NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from taufit.payload import PayloadFilter, stream
from taufit.payload.filter import (
    body_search,
    change_detector,
    joint_sums,
    payload_rows,
    posterior,
    training_coverage,
)
from taufit.payload.filter.body_search import _parameters
from taufit.payload.periodic_reader import PayloadReader
from taufit.workflow import identify

_kernel = pytest.importorskip("taufit._kernel")


def _found(search, information, target, box, x):
    parameters, described, covariance = np.empty(10), np.empty(10), np.empty((10, 10))
    at = x.copy()
    share = search(
        information, target, box, 3500.0, 0.7, 0.2, at, parameters, described, covariance
    )
    return [parameters, described, covariance, at, np.array(share)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("box", [np.full(3, np.nan), np.array([0.1, 0.05, 0.2])])
def test_the_compiled_body_is_the_readable_one(seed, box):
    rng = np.random.default_rng(seed)
    size = np.log(0.05 * np.sqrt(3.0))
    x = np.array([np.log(3.0), 0.01, -0.02, 0.05, size, 0.0, size, 0.0, 0.0, size])
    truth = _parameters(x + 0.1 * rng.normal(size=10))[0]
    columns = rng.normal(size=(rng.integers(5, 40), 10)) * [5.0, *[20.0] * 3, *[3.0] * 6]
    information = columns.T @ columns
    target = information @ (truth + 0.01 * rng.normal(size=10))

    compiled = _found(_kernel.most_probable_body, information, target, box, x)
    readable = _found(body_search.minimise_cost, information, target, box, x)

    for one, other in zip(compiled, readable, strict=True):
        # Same rounds, other order of sums. Worst of 300 seeds: 2e-14.
        np.testing.assert_allclose(one, other, atol=1e-11 * np.abs(other).max())


def test_a_body_is_only_asked_for_with_ten_parameters():
    nine = np.eye(9)
    with pytest.raises(ValueError, match="ten"):
        _found(_kernel.most_probable_body, nine, nine[0].copy(), np.full(3, np.nan), np.zeros(10))


@pytest.mark.parametrize("without_own", [_kernel.without_own, posterior._marginalise_joint])
def test_a_joints_own_unknowns_are_integrated_out(without_own):
    rng = np.random.default_rng(0)
    shared, own, weight = 14, 5, 0.7
    rows = rng.normal(size=(60, shared + own + 1))
    square = rows.T @ rows
    # Some of 30 columns in any order; 20 of them are shared, and three joints have gains.
    has = np.concatenate([rng.permutation(20)[:shared], 20 + rng.permutation(10)[:own]])
    spread = rng.normal(size=(30, 30))
    prior, prior_target = spread @ spread.T + np.eye(30), rng.normal(size=30)
    phi = rng.normal(size=10)
    before = rng.normal(size=(23, 24))
    total, target = before[:, :-1].copy(), before[:, -1].copy()
    solved = np.empty((own, shared + 2))

    without_own(square, prior, prior_target, has, shared, phi, weight, 21, total, target, solved)

    s, o, y = rows[:, :shared], rows[:, shared:-1], rows[:, -1:]
    mine = has[shared:]
    seen = np.hstack([s, s[:, :10] @ phi[:, None]])
    cross = weight * o.T @ np.hstack([seen, y])
    cross[:, :shared] += prior[np.ix_(mine, has[:shared])]
    cross[:, -1] += prior_target[mine]
    expected = np.linalg.solve(weight * o.T @ o + prior[np.ix_(mine, mine)], cross)
    np.testing.assert_allclose(solved, expected, atol=1e-11)
    whole = weight * seen.T @ np.hstack([seen, y]) - cross[:, :-1].T @ expected
    at = np.append(has[:shared], 21)
    added = np.zeros_like(before)
    added[np.ix_(at, np.append(at, 23))] = whole
    np.testing.assert_allclose(np.column_stack([total, target]), before + added, atol=1e-9)


def test_bad_blocks_are_refused():
    square, none = np.zeros((13, 13)), np.zeros((12, 12))
    rows, out = np.arange(12), (10, np.zeros((11, 11)), np.zeros(11), np.empty((2, 12)))
    zero, phi = np.zeros(12), np.zeros(10)
    with pytest.raises(ValueError, match="no prior"):
        _kernel.without_own(square, none, zero, rows, 10, phi, 1.0, *out)
    with pytest.raises(ValueError, match="among those"):
        _kernel.without_own(square, none, zero, rows + 1, 10, phi, 1.0, *out)
    with pytest.raises(ValueError, match="then y"):
        _kernel.without_own(square[:12, :12].copy(), none, zero, rows, 10, phi, 1.0, *out)
    with pytest.raises(ValueError, match="do not agree"):
        _kernel.without_own(square, none, zero, rows, 10, phi, 1.0, 11, *out[1:])


def _histories(live, samples):
    """Estimates, evidence and sums of a run, every tenth of a second."""
    out = []
    for k, sample in enumerate(samples):
        live.update(*sample)
        if k % 25 == 24:
            estimate = live.estimate()
            out.append([
                estimate.parameters, estimate.mass_std, estimate.centre_std,
                live.filter_state.scale, live.filter_state.totals, live.filter_state.phi,
                np.zeros((10, 10)) if estimate.covariance is None else estimate.covariance,
            ])  # fmt: skip
            tests = live.detector.chunks and live.filter_state.was_ready
            if tests:
                change = live.detector.test(live._reference(), (0.1, 0.4), 1.0)
                out[-1].append(np.array([change.evidence, change.mass]))
    return out


@pytest.mark.parametrize("friction", ["presliding", "stribeck", "linear"])
def test_a_compiled_run_is_the_run_in_numpy(arm, loaded, unloaded, friction, monkeypatch):
    _, twin = arm
    model = identify(twin.robot, [unloaded], friction=friction).model
    samples = list(stream(model, loaded).samples())[:2500]
    compiled = PayloadFilter(model)
    assert compiled._arm._compiled is not None
    fast = _histories(compiled, samples)
    for module in (payload_rows, joint_sums, change_detector, training_coverage):
        monkeypatch.setattr(module, "_kernel", None)
    readable = PayloadFilter(model)
    assert readable._arm._compiled is None
    slow = _histories(readable, samples)
    expected = np.sqrt(compiled.posterior(("gains",)).linear()[1][0, 0])
    assert compiled.filter_state.mass_std_without_gains() == pytest.approx(expected, rel=1e-9)
    assert [e.kind for e in compiled.events] == [e.kind for e in readable.events]
    assert len(fast) == len(slow) and any(len(row) > 7 for row in fast)
    for row, other in zip(fast, slow, strict=True):
        for value, expected in zip(row, other, strict=True):
            size = np.abs(np.asarray(expected)).max(initial=1e-3)
            np.testing.assert_allclose(value, expected, rtol=0.0, atol=1e-9 * size)


@pytest.mark.parametrize(("rate_hz", "delay"), [(500.0, {5, 6}), (125.0, {0})])
def test_a_spread_evaluation_is_the_same_few_samples_later(arm, model, rate_hz, delay):
    preset, twin = arm
    motion = preset.motion(periods=0.6)
    run = replace(twin, rate_hz=rate_hz).run(motion, seed=5, payload=preset.payload)
    readers = [PayloadReader(PayloadFilter(model), spread=spread) for spread in (False, True)]
    found = [[], []]
    for k, sample in enumerate(stream(model, run.recording).samples()):
        for reader, estimates in zip(readers, found, strict=True):
            estimate = reader.feed(*sample)
            if estimate is not None:
                estimates.append((k, estimate))
    assert len(found[0]) > 40
    for (k, estimate), (later, other) in zip(found[0], found[1], strict=False):
        assert later - k in delay and other.time == estimate.time
        np.testing.assert_array_equal(other.parameters, estimate.parameters)
        assert other.mass_std == estimate.mass_std and other.warnings == estimate.warnings
    last = [reader.finish() for reader in readers]
    np.testing.assert_array_equal(last[0].parameters, last[1].parameters)
    assert readers[0].ready_at == readers[1].ready_at
