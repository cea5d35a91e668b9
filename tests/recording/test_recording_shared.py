"""Every shared recording reads through its map, and its report agrees with what is known of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taufit.recording import read_recording, read_recordings, recording_quality

MAPS = Path(__file__).resolve().parents[2] / "examples" / "columns"
FOLDERS = {
    "ur10e": "ur10e_csv",
    "panda": "panda_csv",
    "kuka_lwr4": "lwr4_csv",
    "kuka_kr300": "kr300_csv",
    "staubli_tx40": "tx40_csv",
    "schunk_6dof": "schunk_csv",
}
JOINTS = {"panda": 7, "kuka_lwr4": 7}
# Nominal rates of the recordings' description; the UR10e's logger mixes 10 with 11-14 ms.
RATES = {"panda": 1000, "kuka_lwr4": 200, "kuka_kr300": 250, "staubli_tx40": 5000}


def kinds(recording):
    return {finding.kind for finding in recording.findings}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_shared_recording_reads_through_its_map(folder, data_dir):
    files = sorted((data_dir / folder).rglob("*.csv.gz"))
    assert files
    for file in files:
        for recording in read_recordings(file, column_map=MAPS / f"{FOLDERS[folder]}.yaml"):
            assert recording.joints == JOINTS.get(folder, 6), file
            assert len(recording) > 200, file
            assert (np.diff(recording.time) > 0).all(), file
            assert np.isfinite(recording.position).all() and np.isfinite(recording.signal).all()
            assert np.abs(recording.position).max() < 2 * np.pi, file
            if folder == "ur10e":
                assert recording.meta["rate_hz"] == pytest.approx(94, abs=3.5), file
                assert recording.gain is None and recording.meta["gains"] == "auto"
            if folder in RATES:
                assert recording.meta["nominal_rate_hz"] == pytest.approx(RATES[folder], rel=1e-3)
            assert not {"velocity_sign", "clock_scale", "unit", "jump"} & kinds(recording), file


def test_the_corrupt_file_names_its_ten_rows_and_the_rows_shifted_with_them(data_dir):
    file = data_dir / "ur10e" / "identification_data" / "ur-19_09_27-11_32_02.csv.gz"
    recording = read_recording(file, column_map=MAPS / "ur10e_csv.yaml")
    found = {finding.kind: finding for finding in recording.findings}
    assert found["corrupt_rows"].rows == (3, 4, 7, 8, 11, 12, 16, 17, 19, 20)
    # Ten further rows hold other fields of the packet, finite but nowhere near the arm's motion.
    assert found["impossible_rows"].rows == (1, 2, 5, 6, 9, 10, 13, 14, 15, 18)
    assert len(recording) == 1139 - 20
    assert np.abs(np.diff(recording.position, axis=0)).max() < 0.02


def test_files_without_targets_say_so(data_dir):
    file = data_dir / "ur10e" / "identification_data" / "ur-19_09_27-11_28_22.csv.gz"
    recording = read_recording(file, column_map=MAPS / "ur10e_csv.yaml")
    assert recording.target_torque is None and recording.target_current is None
    assert "missing_columns" in kinds(recording)
    assert len(recording) == 594


def test_panda_gaps_are_counted(data_dir):
    (file,) = (data_dir / "panda").glob("*.csv.gz")
    recording = read_recording(file, column_map=MAPS / "panda_csv.yaml")
    (gaps,) = [finding for finding in recording.findings if finding.kind == "gaps"]
    assert len(gaps.rows) == 269
    assert recording.torque_source == "joint_torque_sensor"


def test_staubli_motor_angles_become_joint_angles(data_dir):
    (file,) = (data_dir / "staubli_tx40").glob("*.csv.gz")
    recording = read_recording(file, column_map=MAPS / "tx40_csv.yaml")
    # The programmed turning points are whole degrees, on axis 6 only after uncoupling axis 5.
    low, high = np.degrees(recording.position.min(0)), np.degrees(recording.position.max(0))
    np.testing.assert_allclose(low, [-100, -94, -45, -240, -90, -200], atol=0.2)
    np.testing.assert_allclose(high, [120, 20, 120, 80, 108, 200], atol=0.2)
    np.testing.assert_allclose(recording.gain, [32, 32, 45, -48, 45, 32])


def test_runs_of_one_file_are_never_mixed(data_dir):
    (file,) = (data_dir / "schunk_6dof").glob("*.csv.gz")
    recordings = read_recordings(file, column_map=MAPS / "schunk_csv.yaml")
    assert [recording.meta["run"] for recording in recordings] == list(range(1, 71))
    assert {len(recording) for recording in recordings} <= set(range(233, 937))
    assert sum(len(recording) for recording in recordings) == 44430
    seventh = read_recording(file, column_map=MAPS / "schunk_csv.yaml", run=7)
    np.testing.assert_array_equal(seventh.signal, recordings[6].signal)


# Rows between which the recordings' authors took their motion (data/README.md).
WINDOWS = {
    "ur-20_02_10-30sec_12harm": (635, 3510),
    "ur-20_02_12-40sec_12harm": (500, 4460),
    "ur-20_02_05-20sec_8harm": (320, 2310),
    "ur-20_02_05-20sec_12harm": (605, 2710),
    "ur-20_02_06-20sec_5harm": (545, 2417),
    "ur-20_02_10-20sec_7harm": (544, 2500),
    "ur-20_02_19_14harm50sec": (195, 4966),
    "ur-20_02_19_14harm50secLoad": (308, 5071),
    "ur-20_01_13-load_2600": (250, 2274),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_motion_windows_are_those_the_authors_took_by_hand(name, data_dir):
    file = data_dir / "ur10e" / "identification_data" / f"{name}.csv.gz"
    recording = read_recording(file, column_map=MAPS / "ur10e_csv.yaml")
    page = recording_quality(recording)
    first, last = np.searchsorted(recording.time, page.motion) + 1
    # Authors cut with a margin: up to 0.2 s before the first and 0.65 s after the last motion.
    assert -5 <= first - WINDOWS[name][0] <= 20
    assert -10 <= WINDOWS[name][1] - last <= 60
    assert page.rest[0][0] == recording.time[0] and page.rest[-1][1] == recording.time[-1]


def test_static_poses_are_all_rest(data_dir):
    for file in sorted((data_dir / "ur10e" / "validation_data").glob("*.csv.gz")):
        recording = read_recording(file, column_map=MAPS / "ur10e_csv.yaml")
        page = recording_quality(recording)
        assert page.motion is None
        assert page.rest == ((recording.time[0], recording.time[-1]),)
