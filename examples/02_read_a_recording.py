"""Read a logger's file through a column map, see what is wrong with it, keep it as Parquet.

Run: python examples/02_read_a_recording.py
"""

import tempfile
from pathlib import Path

import numpy as np

import taufit
from taufit.recording import RecordingWriter, recording_quality

# A logger that writes milliseconds, degrees and milliamperes, loses some cycles, repeats a row
# and once writes rubbish.
time = np.delete(np.arange(3000) * 2.0, np.arange(1200, 1210))
angle = 40 * np.sin(time[:, None] * 1e-3 * np.array([1.1, 2.3]))
current = 800 * np.cos(time[:, None] * 1e-3 * np.array([1.1, 2.3]))
rows = [
    ",".join(f"{x:.6f}" for x in row) for row in np.column_stack([time, angle, current]).tolist()
]
rows.insert(500, rows[499])
rows[700] = rows[700].replace(rows[700].split(",")[2], "1e291")

MAP = {
    "robot": "two_joint_arm",
    "columns": {
        "time": {"columns": "stamp", "unit": "ms"},
        "position": {"columns": "angle_{joint}", "unit": "deg"},
        "current": {"columns": "mA_{joint}", "unit": "mA", "sign": [1, -1]},
    },
    "gains": {"value": [12.0, 9.5], "std": [0.3, 0.3]},
}

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    log = folder / "log.csv"
    log.write_text("\n".join(["stamp,angle_1,angle_2,mA_1,mA_2", *rows]) + "\n")

    recording = taufit.read_recording(log, column_map=MAP)
    print(f"{len(recording)} samples of {len(rows)} rows, {recording.joints} joints")
    for finding in recording.findings:
        print(f"  {finding.severity}: {finding}")
    clock = recording_quality(recording).timing
    print(f"  {clock.nominal_hz:.0f} Hz, {clock.lost} samples lost in {len(clock.gaps)} gaps")

    # Parquet for keeping, MCAP for ROS tools; both give back the same numbers.
    taufit.write_recording(recording, folder / "log.parquet")
    again = taufit.read_recording(folder / "log.parquet")
    assert np.array_equal(again.position, recording.position)

    # A recording made live survives its writer: here it is read before it is finished.
    writer = RecordingWriter(folder / "live.parquet", joints=2, fields=(), signal_unit="A")
    for k in range(100):
        writer.append(0.002 * k, [0.001 * k, 0.0], [0.5, 0.1 * k])
    writer.flush()
    print(f"unfinished: {len(taufit.read_recording(folder / 'live.live'))} samples on disk")
    print(f"finished: {len(writer.close())} samples")
