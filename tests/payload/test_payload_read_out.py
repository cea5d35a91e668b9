"""The compiled read-out is the one written in NumPy."""

import numpy as np
import pytest

from taufit.payload.filter import body_search, posterior
from taufit.payload.filter.body_search import _parameters

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
