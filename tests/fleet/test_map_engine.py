"""Any system that maps a function over a list gives the same triangular factors."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from taufit.core.compute.engines import Engine, open_engine
from taufit.core.compute.engines.map_engine import MapEngine
from taufit.core.errors import TaufitError
from taufit.fleet import prepare_reduction

# Ray's processes import what the function needs; its own warnings are not ours.
_WITH_RAY = """
import pickle, sys
import ray
accumulate, files = pickle.load(sys.stdin.buffer)
ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
from taufit.core.compute.engines.map_engine import MapEngine
call = ray.remote(lambda function, task: function(task))
def mapping(function, tasks):
    return ray.get([call.remote(function, task) for task in tasks])
engine = MapEngine(mapping)
results = list(engine.map(accumulate, [((file,),) for file in files]))
ray.shutdown()
sys.stdout.buffer.write(b"RESULT" + pickle.dumps(results))
"""


@pytest.fixture(scope="module")
def reduction(arm, fleet):
    """The function, three files, and what it gives in this process."""
    accumulate, files = prepare_reduction(arm, str(fleet[0]))
    files = files[:3]
    return accumulate, files, [accumulate((file,)) for file in files]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for (information, failed), (own, none) in zip(found, expected, strict=True):
        assert information.rows == own.rows and failed == none == ()
        for factor, other in zip(information.information, own.information, strict=True):
            size = np.abs(other.factor).max()
            np.testing.assert_allclose(factor.factor, other.factor, rtol=0, atol=1e-12 * size)
            np.testing.assert_allclose(factor.target, other.target, rtol=0, atol=1e-12 * size)


def test_a_pool_gives_the_triangles_of_this_process(reduction):
    accumulate, files, expected = reduction
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, MapEngine(pool.map) as engine:
        assert isinstance(engine, Engine)
        found = list(engine.map(accumulate, [((file,),) for file in files]))
    assert_same(found, expected)


def test_ray_gives_the_triangles_of_this_process(reduction):
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install ray)")
    accumulate, files, expected = reduction
    run = subprocess.run(
        [sys.executable, "-c", _WITH_RAY],
        input=pickle.dumps((accumulate, files)), capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:].decode()
    assert_same(pickle.loads(run.stdout.split(b"RESULT", 1)[1]), expected)


def test_sums_are_those_of_the_files_together(reduction):
    accumulate, files, parts = reduction
    together, _ = accumulate(tuple(files))
    total = parts[0][0] + parts[1][0] + parts[2][0]
    assert_same([(total, ())], [(together, ())])


def test_a_mapping_that_turns_a_recording_is_seen(reduction):
    accumulate, files, expected = reduction

    def turned(function, tasks):
        return [function(task) for task in reversed(tasks)]

    found = list(MapEngine(turned).map(accumulate, [((file,),) for file in files]))
    with pytest.raises(AssertionError):
        assert_same(found, expected)


def test_reduce_adds_along_the_tree_of_the_keys():
    tasks, keys = [(k,) for k in range(40)], list(range(40))
    engine = MapEngine(lambda function, given: map(function, given), count=2)
    with open_engine() as here:
        assert engine.reduce(np.sqrt, tasks, np.add, keys) == here.reduce(
            np.sqrt, tasks, np.add, keys
        )


def test_a_folder_without_recordings_is_refused(arm, tmp_path):
    with pytest.raises(TaufitError, match="no recording"):
        prepare_reduction(arm, str(tmp_path))
