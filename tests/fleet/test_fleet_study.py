"""A study of a fleet: the odd ones and no other, whoever did the work and wherever files are."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.simulated_fleet import SPEEDS, name_of
from tests.output_json import parse_output

from taufit.core.compute.cache import open_cache
from taufit.core.compute.engines import open_engine
from taufit.fleet import study_fleet
from taufit.model.model_file import read_model


@pytest.fixture(scope="module")
def found(arm, fleet):
    return study_fleet(arm, str(fleet[0]))


def values(result):
    return {one.robot: one.model.values for one in result.robots}


def same(one, other, rtol=1e-10):
    assert values(one).keys() == values(other).keys()
    for name, own in values(one).items():
        np.testing.assert_allclose(values(other)[name], own, rtol=rtol, atol=rtol)


def test_the_odd_ones_are_named_with_the_cause_and_no_other(found):
    kinds = {one.robot: [s.kind for s in one.outliers] for one in found.robots if one.is_outlier}

    assert kinds == {name_of(2): ["friction"], name_of(4): ["tool"], name_of(6): ["mounting"]}
    by_name = {one.robot: one for one in found.robots}
    worn, tool = by_name[name_of(2)].outliers[0], by_name[name_of(4)].outliers[0]
    assert worn.joint == 2 and "wear" in worn.message
    # 1.5 kg, from ten seconds: to the last digit that is said.
    assert any(f"{mass} kg more" in tool.message for mass in (1.4, 1.5, 1.6))
    assert found.failed == () and len(found.robots) == 8


def test_models_are_possible_and_explain_their_robots(found):
    from taufit.estimators import is_consistent

    for one in found.robots:
        assert is_consistent(one.model.structure, one.model.values)
        # A wrong mounting is no arm's; everything else is explained, worn or with a tool or not.
        assert np.max(one.nrmse) < 0.1 or one.outliers[0].kind == "mounting"


def test_a_new_arm_can_start_from_what_its_siblings_have_in_common(found, fleet, tmp_path):
    from taufit import identify, read_recording
    from taufit.model.model_file import write_model

    write_model(found.typical, tmp_path / "typical.json")
    typical = read_model(tmp_path / "typical.json")
    name = name_of(1)
    run = read_recording(fleet[0] / name / "2026-03-01.parquet")
    done = identify("ur5", run, friction=typical)

    assert done.model.friction_model == typical.friction_model
    own = {one.robot: one.model for one in found.robots}[name]
    # Ten seconds of its own and its siblings: by the same parameters either way.
    terms = [i for i, what in enumerate(own.layout.quantities) if what == "coulomb"]
    np.testing.assert_allclose(done.model.values[terms], own.values[terms], rtol=0.15)


def test_friction_is_near_the_truth(found, fleet):
    speed = np.asarray(found.robots[0].model.robot.limits.velocity)[:, None] * np.array(SPEEDS)
    off = []
    for one in found.robots:
        if one.is_outlier:
            continue
        terms = [term.name for term in one.model.friction_model.parameters]
        own = one.model.layout.split(np.asarray(one.model.values)).drive
        at = {name: own[:, k, None] for k, name in enumerate(terms)}
        curve = at["coulomb"] + at["viscous"] * speed + at["viscous2"] * speed**2
        off.append(curve / fleet[1][one.robot] - 1.0)
    # Ten seconds each: a few per cent, more where a joint hardly reaches half its speed.
    assert np.sqrt(np.mean(np.square(off))) < 0.1


@pytest.mark.unchecked
def test_processes_and_kept_results_change_nothing(arm, fleet, found, tmp_path):
    with open_engine(2) as engine, open_cache(tmp_path) as cache:
        same(found, study_fleet(arm, str(fleet[0]), engine=engine, cache=cache), 0.0)

    class Nobody:
        count = 1

        def map(self, function, things):
            assert not list(things)
            return iter(())

    with open_cache(tmp_path) as cache:
        same(found, study_fleet(arm, str(fleet[0]), engine=Nobody(), cache=cache), 0.0)


def test_poisoned_files_are_named_and_the_rest_is_done(arm, poisoned, found):
    done = study_fleet(arm, str(poisoned))

    failed = {one.file: one.reason for one in done.failed}
    assert set(failed) == {f"{name_of(0)}/2026-03-02.parquet", f"{name_of(1)}/2026-03-02.parquet"}
    assert "joint" in failed[f"{name_of(1)}/2026-03-02.parquet"]
    same(found, done)


def test_the_command_writes_what_it_says(fleet, tmp_path):
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-m", "taufit", "fleet", "ur5", str(fleet[0]), "--cache", "off",
         "--processes", "1", "-o", str(out), "--json"],
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    data = parse_output("fleet", done.stdout)
    assert {one["robot"] for one in data["robots"] if one["outlier"]} == {
        name_of(2), name_of(4), name_of(6)
    }  # fmt: skip
    assert all({"robot", "files", "rows", "nrmse", "outlier", "reasons"} <= set(one)
               for one in data["robots"])  # fmt: skip
    assert data["failed"] == []
    table = pq.read_table(out / "fleet.parquet")
    assert table.num_rows == 8 and set(table["robot"].to_pylist()) == {name_of(k) for k in range(8)}
    assert set(table["day"].to_pylist()) == {"2026-03-01"}
    assert "joint_6.friction_adjusted" in table.column_names
    page = (out / "fleet.html").read_text("utf-8")
    assert name_of(2) in page and "http" not in page.replace("http-equiv", "")
    assert read_model(out / "typical.json").robot.joints == 6
    assert len(list((out / "models").glob("*.json"))) == 8


@pytest.mark.parametrize("words", [["--by", "day"], ["--by", "robot,week"], ["--cutoff-hz", "0"]])
def test_wrong_usage_is_refused(fleet, words):
    done = subprocess.run(
        [sys.executable, "-m", "taufit", "fleet", "ur5", str(fleet[0]), *words],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2


def test_a_scheduler_that_is_not_there_is_said(fleet, monkeypatch, arm):
    pytest.importorskip("distributed")
    from taufit.core.compute.engines import dask_cluster
    from taufit.core.errors import TaufitError

    monkeypatch.setattr(dask_cluster, "_PATIENCE_S", 0.3)
    with pytest.raises(TaufitError, match="dask scheduler"):
        open_engine(scheduler="tcp://127.0.0.1:9")
