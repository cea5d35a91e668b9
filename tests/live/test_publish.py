"""Readings for other programs: as lines and as topics, all of them, in order."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pretended import Seen

from taufit.live.reading_publisher import (
    EXTERNAL_TOPIC,
    READING_TOPIC,
    JsonLinesPublisher,
    Ros2ReadingPublisher,
    open_publisher,
)


def readings(count=5):
    for k in range(count):
        row = np.array([1.0, 2.0, 3.0]) + k
        reading = Seen(k / 10, row, row, row, row, row, -row, row, 20.0)
        reading.velocity = 2 * row
        yield reading


def test_every_reading_is_a_line_of_a_file(tmp_path):
    sink = open_publisher(str(tmp_path / "out.jsonl"), ("a", "b", "c"))
    assert isinstance(sink, JsonLinesPublisher)
    for reading in readings():
        sink(reading)
    sink.close()
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["time"] for line in lines] == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_lines_can_be_read_as_they_come(tmp_path):
    path = tmp_path / "out.jsonl"
    sink = open_publisher(str(path), ())
    sink(next(readings()))
    assert json.loads(path.read_text())["time"] == 0.0
    sink.close()


def test_topics_carry_external_torque_and_the_whole_reading():
    said = []

    class Speaker:
        name = "pretended"

        def __init__(self, topic, kind):
            self.topic = topic

        def send(self, message):
            said.append((self.topic, message))

        def close(self):
            said.append((self.topic, None))

    sink = Ros2ReadingPublisher(("a", "b", "c"), Speaker)
    for reading in readings(2):
        sink(reading)
    sink.close()
    external = [m for topic, m in said if topic == EXTERNAL_TOPIC]
    assert external[1].effort == (-2.0, -3.0, -4.0) and external[1].names == ("a", "b", "c")
    assert external[1].velocity == (4.0, 6.0, 8.0) and external[-1] is None
    texts = [m for topic, m in said if topic == READING_TOPIC]
    assert json.loads(texts[0])["time"] == 0.0 and texts[-1] is None


HEARD = """
import sys, time
from taufit.live.reading_publisher import EXTERNAL_TOPIC, Ros2ReadingPublisher
from taufit.wire.ros.cyclone_dds import CycloneJointStateSubscriber, CycloneMessagePublisher
sys.path.insert(0, sys.argv[1])
from test_publish import readings
listener = CycloneJointStateSubscriber(EXTERNAL_TOPIC)
sink = Ros2ReadingPublisher(("a", "b", "c"), CycloneMessagePublisher)
end = time.monotonic() + 30
while not sink._external._writer.get_matched_subscriptions() and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.5)
for reading in readings(50):
    sink(reading)
got = []
while len(got) < 50 and time.monotonic() < end:
    got += listener.take(0.2)
print(len(got), got[-1].names, got[-1].effort, round(got[-1].time, 6))
"""


def test_real_topics_are_heard(tmp_path):
    pytest.importorskip("cyclonedds")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"]).returncode:
        pytest.skip("DDS listens on all interfaces; no network namespace can be made here")
    domain = "<General><Interfaces><NetworkInterface address='127.0.0.1'/></Interfaces>"
    domain += "<AllowMulticast>false</AllowMulticast></General>"
    uri = f"<CycloneDDS><Domain>{domain}</Domain></CycloneDDS>"
    command = f'ip link set lo up; exec {sys.executable} -c "$SCRIPT" {Path(__file__).parent}'
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", command],
        env={**os.environ, "CYCLONEDDS_URI": uri, "SCRIPT": HEARD},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "50 ('a', 'b', 'c') (-50.0, -51.0, -52.0) 4.9"
