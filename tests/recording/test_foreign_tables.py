"""Logs of other makers: dates, German names, remarks, separators, joints that stand."""

from __future__ import annotations

import numpy as np
import pytest

import taufit
from taufit.core.errors import PoorExcitationError
from taufit.recording.readers.date_times import stamp_seconds
from taufit.recording.readers.from_csv import read_csv_table


def table(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return read_csv_table(path)


@pytest.mark.parametrize(
    "stamps",
    [
        ["2024-03-01 12:00:00", "2024-03-01 12:00:00.008000", "2024-03-01T12:00:00.016"],
        ["01.03.2024 12:00:00,000", "01.03.2024 12:00:00,008", "01.03.2024 12:00:00,016"],
        ["23:59:59.992", "00:00:00.000", "00:00:00.008"],
    ],
)
def test_dates_and_times_of_day_are_seconds(stamps):
    np.testing.assert_allclose(np.diff(stamp_seconds(stamps)), 0.008, atol=1e-6)


@pytest.mark.parametrize("texts", [["AUTO", "AUTO"], ["1.5", "2.5"], ["2024-13-45 12:00:00"] * 2])
def test_other_texts_are_no_times(texts):
    assert stamp_seconds(texts) is None


def test_a_time_column_of_dates_is_read_and_other_text_is_named(tmp_path):
    rows = [f"2024-03-01 12:00:00.{k:03d};AUTO;{k},5;" for k in range(0, 400, 8)]
    found = table(tmp_path / "log.csv", "Zeit;Modus;Winkel_1", *rows, "# end of log")
    assert found.values.shape == (50, 3) and found.names[0] == "Zeit"
    np.testing.assert_allclose(np.diff(found.values[:, 0]), 0.008, atol=1e-6)
    np.testing.assert_allclose(found.values[:, 2], np.arange(0, 400, 8) + 0.5)
    assert [f.message for f in found.findings if f.kind == "text_columns"] == [
        "columns Modus hold no numbers"
    ]


@pytest.mark.parametrize(
    ("position", "velocity", "torque"),
    [
        ("A{} Ist-Winkel [°]", "A{} Ist-Geschwindigkeit [°/s]", "A{} Ist-Drehmoment [Nm]"),
        ("$AXIS_ACT.A{}", "$VEL_AXIS_ACT.A{}", "$TORQUE_AXIS_ACT.A{}"),
        ("theta{}", "omega{}", "M{}"),
    ],
)
def test_columns_are_found_by_names_of_other_languages_and_makers(position, velocity, torque):
    rng = np.random.default_rng(1)
    time = np.arange(0.0, 8.0, 0.01)
    angle = 40.0 * np.sin(time[:, None] * rng.uniform(1, 3, 6))
    columns = {"Zeit": time}
    for k in range(6):
        columns[torque.format(k + 1)] = rng.normal(size=len(time)) + angle[:, k]
        columns[position.format(k + 1)] = angle[:, k]
        columns[velocity.format(k + 1)] = np.gradient(angle[:, k], time)
    pandas = pytest.importorskip("pandas")
    draft = taufit.draft_map(pandas.DataFrame(columns))
    names = {name: str(entry) for name, entry in draft.page["columns"].items()}
    assert position.split("{}")[0] in names["position"] and "deg" in names["position"]
    assert velocity.split("{}")[0] in names["velocity"]
    assert torque.split("{}")[0] in names["torque"]


def test_joints_that_stand_are_an_error_or_a_poor_model_that_names_them():
    from benchmarks.clean_runs import clean_run

    robot, recording = clean_run("ur3e", 1)
    position = np.array(recording.position)
    position[:, 3:] = position[0, 3:]
    from dataclasses import replace

    standing = replace(recording, position=position, velocity=None)
    with pytest.raises(PoorExcitationError, match="joint 4 "):
        taufit.identify(robot, [standing], friction="linear")
    result = taufit.identify(robot, [standing], friction="linear", allow_standing_joints=True)
    assert result.grades.overall == "poor"
    assert any(f.kind == "standing_joints" and "joint 4 " in f.message for f in result.findings)
