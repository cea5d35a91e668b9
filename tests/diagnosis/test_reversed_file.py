"""One of several files has torque of the other sign: it is named, and no map for all is advised."""

from __future__ import annotations

from dataclasses import replace

import pytest

import taufit
from taufit.diagnosis import ContradictionError
from taufit.sim import Twin, random_fourier


@pytest.fixture(scope="module")
def runs():
    robot = taufit.read_robot("ur3e")
    twin = Twin.typical(robot)
    out = [twin.run(random_fourier(robot, seed=k), seed=k).recording for k in (1, 2)]
    return [replace(run, meta={"file": f"day {k}.csv"}) for k, run in enumerate(out)]


def test_a_reversed_file_is_named_and_no_map_for_all_is_advised(runs):
    turned = replace(runs[1], signal=-runs[1].signal)
    with pytest.raises(ContradictionError, match=r"day 1\.csv: its torque has the other sign") as e:
        taufit.identify("ur3e", [runs[0], turned], friction="linear")
    assert e.value.file == "day 1.csv"
    assert all(finding.remedy is None for finding in e.value.findings)


def test_files_reversed_alike_are_mended_by_one_map(runs):
    turned = [replace(run, signal=-run.signal) for run in runs]
    with pytest.raises(ContradictionError) as e:
        taufit.identify("ur3e", turned, friction="linear")
    (finding,) = e.value.findings
    assert finding.file is None and finding.remedy is not None
