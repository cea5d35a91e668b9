"""What the page is sent: every sample once, in order, whoever listens and whatever breaks."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pretended import Pretended, Ticking
from served import watched

from taufit.live.batch_hub import BatchHub
from taufit.live.page_data import SAMPLE_FIELDS, kinematic_chain, pack_readings
from taufit.live.session import Session, StreamRecorder
from taufit.recording import read_recording
from taufit.robot import read_robot


def events(chunks):
    """(number, data) of server-sent events."""
    for block in b"".join(chunks).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line[:8])
        if "id" in fields:
            yield int(fields["id"]), json.loads(fields["data"])


def heard(hub, last=None):
    async def listen():
        return [chunk async for chunk in hub.listen(last)]

    # In a thread: a browser test may have left a running loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(listen())).result(60)


def run(source, **more):
    hub = BatchHub(stored=100_000)
    session = Session(Pretended(), source, hub, **more)
    chunks = []
    listener = threading.Thread(target=lambda: chunks.extend(heard(hub, 0)))
    listener.start()
    session.start()
    session.is_finished.wait(60)
    session.stop()
    listener.join(60)
    return session, list(events(chunks))


def rows(batch, joints):
    data = np.frombuffer(base64.b64decode(batch["rows"]), np.float32)
    return data.reshape(batch["count"], 1 + len(SAMPLE_FIELDS) * joints)


def test_every_sample_arrives_once_and_in_order():
    session, found = run(Ticking(joints=6, rate_hz=500.0, limit=700))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    firsts = [batch["first"] for _, batch in found]
    counts = [batch["count"] for _, batch in found]
    assert firsts == list(np.cumsum([0, *counts[:-1]])) and sum(counts) == 700 == session.samples
    time = np.concatenate([batch["time"] + rows(batch, 6)[:, 0] for _, batch in found])
    # float32 of times within a batch.
    np.testing.assert_allclose(time, np.arange(700) / 500.0, atol=1e-6)


def test_a_page_opened_after_the_end_has_the_last_batches():
    hub = BatchHub(stored=3)
    for k in range(5):
        hub.publish(json.dumps(k))
    hub.end()
    assert [data for _, data in events(heard(hub))] == [2, 3, 4]
    # A page that has them already gets nothing twice.
    assert list(events(heard(hub, 5))) == []


def test_a_batch_holds_what_was_read():
    block = Ticking(joints=3, rate_hz=100.0)
    block.connect()
    readings = list(Pretended()._block(block.read(0.1), np.full(3, 0.5), np.full(3, 2.0)))
    batch = json.loads(pack_readings(readings, 17, {"recording": None}))
    table = rows(batch, 3)
    for k, name in enumerate(SAMPLE_FIELDS):
        want = np.array([getattr(reading, name) for reading in readings])
        np.testing.assert_allclose(table[:, 1 + 3 * k : 4 + 3 * k], want, rtol=1e-6)
    assert batch["first"] == 17 and batch["payload"]["mass"] == readings[-1].payload.mass


def test_a_page_that_comes_back_gets_what_it_missed():
    hub = BatchHub()
    for number in range(10):
        hub.publish(json.dumps({"number": number}))
    hub.end()
    assert [data["number"] for _, data in events(heard(hub, 6))] == [6, 7, 8, 9]
    # A page that is new shows what is stored, also after the end.
    assert len(list(events(heard(hub, None)))) == 10


def test_a_page_with_a_number_that_never_was_gets_nothing_old():
    hub = BatchHub()
    hub.publish("{}")
    hub.end()
    assert not list(events(heard(hub, 10**12)))


def test_old_batches_are_let_go():
    hub = BatchHub(stored=3)
    for number in range(10):
        hub.publish(json.dumps({"number": number}))
    hub.end()
    assert [data["number"] for _, data in events(heard(hub, 0))] == [7, 8, 9]


def test_a_source_is_recorded_from_the_first_sample_where_asked(tmp_path):
    path = tmp_path / "run.parquet"
    session, _ = run(Ticking(limit=300), recorder=StreamRecorder(path), record_immediately=True)
    assert session.recorder.files == [path] and not session.end_reason
    recording = read_recording(path)
    assert len(recording) == 300 and not path.with_suffix(".live").exists()
    np.testing.assert_allclose(recording.time, np.arange(300) / 500.0)


def test_a_recording_is_never_written_over(tmp_path):
    path = tmp_path / "run.parquet"
    path.write_bytes(b"precious")
    session, _ = run(Ticking(limit=100), recorder=StreamRecorder(path), record_immediately=True)
    assert path.read_bytes() == b"precious"
    assert session.recorder.files == [tmp_path / "run-2.parquet"]


def test_the_record_button_starts_and_ends_a_file(tmp_path, monkeypatch):
    from test_server import ask

    monkeypatch.chdir(tmp_path)
    with watched() as served:
        assert served.session.samples >= 0
        for _ in range(100):
            status, _, body = ask(served.place, "/record", "POST", b'{"on": true}')
            if status == 200:
                break
        assert json.loads(body)["on"]
        while served.source.sent < 500:
            served.session.is_finished.wait(0.05)
        status, _, body = ask(served.place, "/record", "POST", b'{"on": false}')
        state = json.loads(body)
    assert status == 200 and not state["on"]
    (name,) = state["written"]
    assert len(read_recording(tmp_path / name)) > 0


def test_what_ends_a_source_is_told():
    from taufit.core.errors import WireError

    class Broken(Ticking):
        def read(self, seconds):
            if self.sent > 100:
                raise WireError("the line is dead.")
            return super().read(seconds)

    session, found = run(Broken())
    assert session.end_reason == "the line is dead." and sum(b["count"] for _, b in found) > 100


@pytest.mark.parametrize("robot", ["ur10e", "panda", "kr5"])
def test_the_chain_ends_where_the_arm_does(robot):
    arm = read_robot(robot)
    data = kinematic_chain(arm)
    assert len(data["placements"]) == arm.joints and data["reach"] > 0.3
    json.dumps(data)
