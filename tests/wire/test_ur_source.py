"""The RTDE reader against the virtual controller: every sample once, gaps exact, lines mended."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

import numpy as np
import pytest

from taufit.core.errors import WireError
from taufit.recording import read_recording
from taufit.virtual.controllers import UrController, VirtualUr
from taufit.wire import UrPorts, UrRtde, rtde
from taufit.wire.recorder import record
from taufit.wire.source import SampleClock


def source(robot, **settings):
    return UrRtde(robot.host, ports=robot.ports, **settings)


def test_every_sample_is_recorded_once(virtual_ur, tmp_path):
    done = record(source(virtual_ur), tmp_path / "run.parquet", seconds=2.0)
    assert (done.lost, done.duplicated, done.ended) == (0, 0, "")
    assert done.samples >= 1001
    recording = read_recording(tmp_path / "run.parquet")
    np.testing.assert_allclose(np.diff(recording.time), 0.002, atol=1e-9)
    assert recording.signal_unit == "A" and recording.torque_source == "motor_current"
    assert recording.temperature is not None and recording.target_torque is not None
    assert recording.meta["controller_version"] == "5.23.0.0"
    assert not (tmp_path / "run.live").exists()


@pytest.mark.parametrize(
    ("version", "rate"), [((3, 15, 4, 0), 125.0), ((3, 5, 0, 0), 125.0), ((5, 5, 1, 0), 500.0)]
)
def test_a_controller_is_asked_only_for_what_it_knows(quiet_twin, tmp_path, version, rate):
    with VirtualUr(UrController(quiet_twin, version=version)) as robot:
        reader = source(robot)
        description = reader.connect()
        assert description.rate_hz == rate
        assert description.units()["signal"] == "A"
        done = record(reader, tmp_path / "r.parquet", seconds=0.5, description=description)
    assert done.lost == 0 and done.samples >= 0.5 * rate
    np.testing.assert_allclose(np.diff(done.recording.time), 1 / rate, atol=1e-9)


def test_a_slower_rate_leaves_no_gap(virtual_ur, tmp_path):
    done = record(source(virtual_ur, rate_hz=50.0), tmp_path / "r.parquet", seconds=1.0)
    assert done.lost == 0
    np.testing.assert_allclose(np.diff(done.recording.time), 0.02, atol=1e-9)


def test_nobody_there_is_said(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(WireError, match="cannot be reached"):
        UrRtde("127.0.0.1", ports=UrPorts(rtde=port)).connect()


def test_gaps_are_counted_by_the_controllers_numbers():
    clock = SampleClock(500.0)
    steps = np.array([10, 11, 12, 17, 18, 18, 19])
    stamps, keep = clock.order(steps * 0.002, steps)
    assert keep.tolist() == [True, True, True, True, True, False, True]
    assert (clock.duplicated, [gap.lost for gap in clock.gaps]) == (1, [4])
    assert clock.gaps[0].exact and clock.gaps[0].after == pytest.approx(0.024)
    # Without numbers the stamps say the same.
    other = SampleClock(500.0)
    again, _ = other.order(steps * 0.002)
    np.testing.assert_array_equal(again, stamps)
    assert [gap.lost for gap in other.gaps] == [4]


def test_a_clock_that_starts_anew_goes_on_growing():
    clock = SampleClock(100.0)
    clock.order(np.array([5.00, 5.01]), np.array([500, 501]))
    stamps, _ = clock.order(
        np.array([0.0, 0.01]), np.array([0, 1]), reason_before="the line broke", silence=2.0
    )
    np.testing.assert_allclose(stamps, [7.01, 7.02])
    (gap,) = clock.gaps
    assert gap.lost == 199 and not gap.exact and "started anew" in gap.why


class Proxy:
    """Stands between a client and a server and does to the bytes what cables do."""

    def __init__(self, target):
        self.target = target
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.mode, self.pairs = "pass", []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(self.target)
            except OSError:
                client.close()
                return
            self.pairs.append((client, upstream))
            for a, b, down in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(target=self._pump, args=(a, b, down), daemon=True).start()

    def _pump(self, a, b, down):
        try:
            while data := a.recv(65536):
                if self.mode == "swallow":
                    continue
                if down and self.mode == "garbage":
                    data = bytes(255 - x for x in data)
                if down and self.mode == "resize":
                    data = struct.pack(">HB", 20, ord("U")) + bytes(17) + data
                if self.mode == "bytes":
                    for k in range(len(data)):
                        b.sendall(data[k : k + 1])
                else:
                    b.sendall(data)
        except OSError:
            pass

    def cut(self):
        for pair in self.pairs:
            for end in pair:
                end.close()
        self.pairs.clear()

    def close(self):
        # Closing alone would leave the thread in `accept` one more connection.
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.cut()


@pytest.fixture
def proxied(virtual_ur):
    proxy = Proxy((virtual_ur.host, virtual_ur.ports.rtde))
    yield virtual_ur, proxy
    proxy.close()


def through(proxy, **settings):
    return UrRtde("127.0.0.1", ports=UrPorts(rtde=proxy.port), **settings)


def steps_of(recording):
    return np.round(recording.time * 500.0).astype(int)


def check_gaps(done):
    """What is missing in the time stamps is what the gaps say."""
    steps = steps_of(done.recording)
    missing = int((np.diff(steps) - 1).sum())
    assert missing == done.lost == sum(gap.lost for gap in done.gaps)
    assert (np.diff(steps) > 0).all()


def test_packets_split_at_every_byte_are_whole_again(proxied, tmp_path):
    _, proxy = proxied
    proxy.mode = "bytes"
    done = record(through(proxy, rate_hz=50.0), tmp_path / "r.parquet", seconds=1.0)
    assert done.lost == done.duplicated == 0


@pytest.mark.parametrize("mode", ["garbage", "resize", "cut", "swallow"])
def test_a_line_that_fails_is_mended_and_the_gap_is_exact(proxied, tmp_path, mode):
    _, proxy = proxied
    reader = through(proxy, patience=0.5)

    def fail():
        time.sleep(0.7)
        if mode == "cut":
            proxy.cut()
        else:
            proxy.mode = mode
            time.sleep(0.3 if mode == "resize" else 1.0)
            proxy.mode = "pass"
            if mode == "swallow":
                # Half open: the old connection stays up and silent.
                return
            proxy.cut()

    thread = threading.Thread(target=fail)
    thread.start()
    done = record(reader, tmp_path / "r.parquet", seconds=3.0)
    thread.join()
    assert done.ended == "" and done.gaps
    assert done.recording.time[-1] - done.recording.time[0] >= 3.0
    check_gaps(done)
    assert any(finding.kind == "gap" for finding in done.recording.findings)


def test_a_restarted_controller_is_found_again(quiet_twin, tmp_path):
    first = VirtualUr(UrController(quiet_twin)).__enter__()
    ports = first.ports

    def restart():
        time.sleep(0.8)
        first.__exit__(None, None, None)
        time.sleep(0.5)
        with VirtualUr(UrController(quiet_twin), ports=ports):
            finished.wait(20.0)

    finished = threading.Event()
    thread = threading.Thread(target=restart)
    thread.start()
    done = record(UrRtde("127.0.0.1", ports=ports), tmp_path / "r.parquet", seconds=3.0)
    finished.set()
    thread.join()
    assert done.ended == "" and len(done.gaps) == 1
    assert "started anew" in done.gaps[0].why and not done.gaps[0].exact
    check_gaps(done)


def test_a_controller_that_never_comes_back_ends_the_recording(proxied, tmp_path):
    _, proxy = proxied
    reader = through(proxy, patience=0.3, give_up=1.0)
    threading.Timer(0.7, proxy.close).start()
    done = record(reader, tmp_path / "r.parquet", seconds=30.0)
    assert "has sent nothing for" in done.ended
    assert done.samples > 50 and len(read_recording(done.path)) == done.samples
    assert "ended_early" in {finding.kind for finding in done.recording.findings}


def test_texts_and_early_data_do_not_disturb_the_start():
    """Some controllers greet with a message, and send data before they answer the start."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        client, _ = server.accept()
        frames = rtde.FrameParser()
        names = []
        client.sendall(rtde.text_message("SafetySetup has not been confirmed yet", "x", 2))
        while data := client.recv(65536):
            for kind, body in frames.feed(data):
                if kind == rtde.PROTOCOL:
                    client.sendall(rtde.frame(kind, b"\x01"))
                elif kind == rtde.URCONTROL:
                    client.sendall(rtde.version_reply((5, 9, 0, 0)))
                elif kind == rtde.OUTPUTS:
                    names = rtde.read_outputs_request(body)[1]
                    types = ["DOUBLE" if n == "timestamp" else "VECTOR6D" for n in names]
                    unknown = [n for n in names if not n.startswith(("actual", "timestamp"))]
                    types = [
                        "NOT_FOUND" if n in unknown else t
                        for n, t in zip(names, types, strict=True)
                    ]
                    client.sendall(rtde.types_reply(kind, 0 if unknown else 1, types))
                    if unknown:
                        client.close()
                        client, _ = server.accept()
                        frames = rtde.FrameParser()
                        break
                elif kind == rtde.START:
                    types = tuple("DOUBLE" if n == "timestamp" else "VECTOR6D" for n in names)
                    recipe = rtde.Recipe(1, tuple(names), types)
                    rows = [
                        rtde.frame(
                            rtde.DATA,
                            recipe.pack(
                                {n: 0.002 * k if n == "timestamp" else [k] * 6 for n in names}
                            ),
                        )
                        for k in range(5)
                    ]
                    client.sendall(rows[0] + rtde.frame(kind, b"\x01") + b"".join(rows[1:]))
        client.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    reader = UrRtde("127.0.0.1", ports=UrPorts(rtde=server.getsockname()[1]))
    description = reader.connect()
    assert description.fields == ("position", "velocity", "signal")
    rows = []
    while len(rows) < 5:
        block = reader.read(1.0)
        rows += block.values["position"][:, 0].tolist()
    assert rows == [0, 1, 2, 3, 4] and reader.gaps == []
    assert "SafetySetup" in reader.messages[0]
    reader.close()
    thread.join()
    server.close()
