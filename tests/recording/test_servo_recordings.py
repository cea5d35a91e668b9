"""Recordings of servo arms: commands and positions, no torque."""

import json

import numpy as np
import pytest

from taufit.core.errors import RecordingError
from taufit.recording import read_recording, read_recordings, write_recording

NAMES = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


def arrays(seconds=4.0):
    time = np.arange(0.0, seconds, 0.02)
    q = 0.4 * np.sin(time[:, None] + np.arange(6))
    return time, q, q + 0.02


def lerobot_folder(path, version, factor=1.0):
    import pyarrow as pa
    import pyarrow.parquet as pq

    time, q, command = arrays()
    names = [f"{name}.pos" for name in NAMES]
    info = {
        "codebase_version": version,
        "robot_type": "so101_follower",
        "fps": 50,
        "features": {"observation.state": {"names": names}, "action": {"names": names}},
    }
    (path / "meta").mkdir(parents=True)
    (path / "meta" / "info.json").write_text(json.dumps(info))
    folder = path / "data" / "chunk-000"
    folder.mkdir(parents=True)
    episodes = [
        pa.table(
            {
                "action": pa.array(list(factor * command)),
                "observation.state": pa.array(list(factor * q)),
                "timestamp": time,
                "episode_index": np.full(len(time), k),
            }
        )
        for k in range(2)
    ]
    if version.startswith("v2"):
        for k, table in enumerate(episodes):
            pq.write_table(table, folder / f"episode_{k:06d}.parquet")
    else:
        pq.write_table(pa.concat_tables(episodes), folder / "file-000.parquet")
    return path


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize("factor", [1.0, 180 / np.pi], ids=["radians", "degrees"])
def test_lerobot_actions_need_no_map(tmp_path, version, factor):
    _, q, command = arrays()
    runs = read_recordings(lerobot_folder(tmp_path / "set", version, factor))
    assert [run.meta["run"] for run in runs] == [0, 1]
    for run in runs:
        np.testing.assert_allclose(run.position, q, atol=1e-6)
        np.testing.assert_allclose(run.commanded_position, command, atol=1e-6)
        assert run.torque_source == "none" and run.meta["joint_names"] == NAMES
        assert "units_assumed" in {finding.kind for finding in run.findings}


def csv_file(path):
    time, q, command = arrays()
    header = "t," + ",".join([f"q{k}" for k in range(1, 7)] + [f"cmd{k}" for k in range(1, 7)])
    np.savetxt(path, np.column_stack([time, q, command]), delimiter=",", header=header, comments="")
    return path


def test_servo_log_is_recognised_and_kept(tmp_path):
    run = read_recording(csv_file(tmp_path / "run.csv"))
    np.testing.assert_allclose(run.commanded_position - run.position, 0.02, atol=1e-9)
    write_recording(run, tmp_path / "run.parquet")
    again = read_recording(tmp_path / "run.parquet")
    assert again.torque_source == "none"
    np.testing.assert_array_equal(again.commanded_position, run.commanded_position)


def test_encoder_steps_are_a_unit(tmp_path):
    columns = {
        "time": "t",
        "position": {"columns": "q{joint}", "unit": "step4096"},
        "commanded_position": {"columns": "cmd{joint}", "unit": "step4096"},
    }
    run = read_recording(csv_file(tmp_path / "run.csv"), column_map={"columns": columns})
    np.testing.assert_allclose(run.position, arrays()[1] * 2 * np.pi / 4096, atol=1e-12)


def test_a_map_needs_torque_or_commands(tmp_path):
    columns = {"time": "t", "position": "q{joint}"}
    with pytest.raises(RecordingError, match="commanded_position"):
        read_recording(csv_file(tmp_path / "run.csv"), column_map={"columns": columns})
