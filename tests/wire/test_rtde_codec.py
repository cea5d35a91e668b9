"""RTDE bytes: what was packed is unpacked, however the bytes are cut, and nothing else is taken."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taufit.core.errors import WireError
from taufit.wire import rtde, ur_state

NUMBERS = {
    "BOOL": st.booleans(),
    "UINT8": st.integers(0, 255),
    "UINT32": st.integers(0, 2**32 - 1),
    "UINT64": st.integers(0, 2**64 - 1),
    "INT32": st.integers(-(2**31), 2**31 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "VECTOR3D": st.lists(st.floats(allow_nan=False), min_size=3, max_size=3),
    "VECTOR6D": st.lists(st.floats(allow_nan=False), min_size=6, max_size=6),
    "VECTOR6INT32": st.lists(st.integers(-(2**31), 2**31 - 1), min_size=6, max_size=6),
    "VECTOR6UINT32": st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=6),
}


@st.composite
def recipes(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(rtde.TYPES)), min_size=1, max_size=8))
    recipe = rtde.Recipe(1, tuple(f"v{i}" for i in range(len(kinds))), tuple(kinds))
    rows = draw(
        st.lists(
            st.fixed_dictionaries(
                {n: NUMBERS[k] for n, k in zip(recipe.names, kinds, strict=True)}
            ),
            min_size=1,
            max_size=5,
        )
    )
    return recipe, rows


@given(recipes())
@settings(max_examples=60)
def test_values_come_back_from_their_bytes(case):
    recipe, rows = case
    bodies = [recipe.pack(row) for row in rows]
    assert all(len(body) == recipe.size for body in bodies)
    assert [recipe.unpack(body) for body in bodies] == rows
    table = recipe.table(bodies)
    for i, row in enumerate(rows):
        for name, value in row.items():
            np.testing.assert_array_equal(table[name][i], value)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.data())
def test_frames_do_not_depend_on_how_the_bytes_arrive(bodies, data):
    stream = b"".join(rtde.frame(rtde.DATA, body) for body in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    frames, out = rtde.FrameParser(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += frames.feed(stream[start:end])
    assert out == [(rtde.DATA, body) for body in bodies]


def test_a_frame_cut_at_every_byte_is_whole_again():
    stream = rtde.frame(rtde.START, b"\x01") + rtde.frame(rtde.DATA, bytes(range(200)))
    frames, out = rtde.FrameParser(), []
    for k in range(len(stream)):
        out += frames.feed(stream[k : k + 1])
    assert out == [(rtde.START, b"\x01"), (rtde.DATA, bytes(range(200)))]


def test_what_came_before_garbage_is_kept():
    frames = rtde.FrameParser()
    good = rtde.frame(rtde.DATA, b"abc")
    assert frames.feed(good + b"\x00\x01U") == [(rtde.DATA, b"abc")]
    with pytest.raises(WireError, match="not RTDE"):
        frames.feed(b"more")


@pytest.mark.parametrize("garbage", [b"\x00\x00U", b"\x00\x02U", b"HTTP/1.1", b"\xff\xff\x00"])
def test_garbage_is_named(garbage):
    with pytest.raises(WireError, match="not RTDE"):
        rtde.FrameParser().feed(garbage + bytes(10))


def test_requests_and_answers_are_each_others_inverse():
    names = ["timestamp", "actual_q"]
    _, body = rtde.FrameParser().feed(rtde.outputs_request(125.0, names))[0]
    assert rtde.read_outputs_request(body) == (125.0, names)
    _, body = rtde.FrameParser().feed(rtde.inputs_request(names))[0]
    assert rtde.read_inputs_request(body) == names
    answer = rtde.types_reply(rtde.OUTPUTS, 1, ["DOUBLE", "NOT_FOUND"])
    assert rtde.read_types_reply(answer[3:]) == (1, ["DOUBLE", "NOT_FOUND"])
    assert rtde.read_version_reply(rtde.version_reply((5, 23, 1, 7))[3:]) == (5, 23, 1, 7)
    said = rtde.read_text_message(rtde.text_message("hello", "me", 2)[3:])
    assert said == ("hello", "me", 2)
    with pytest.raises(WireError, match="longer than 2048"):
        rtde.outputs_request(125.0, ["x" * 100] * 30)
    with pytest.raises(WireError, match="QUATERNION"):
        rtde.read_types_reply(b"\x01DOUBLE,QUATERNION")


def test_real_time_packets_give_their_columns_at_the_documented_offsets():
    values = {
        "time": 12.5,
        "actual_q": [0.1 * i for i in range(6)],
        "actual_current": [float(i) for i in range(6)],
        "joint_temperatures": [30.0 + i for i in range(6)],
        "safety_mode": 1.0,
    }
    packet = ur_state.encode_realtime(values, 1108)
    assert struct.unpack_from(">i", packet)[0] == len(packet) == 1108
    assert struct.unpack_from(">d", packet, 4)[0] == 12.5
    assert struct.unpack_from(">6d", packet, 252) == tuple(values["actual_q"])
    assert struct.unpack_from(">6d", packet, 348) == tuple(values["actual_current"])
    assert struct.unpack_from(">6d", packet, 692) == tuple(values["joint_temperatures"])
    assert struct.unpack_from(">d", packet, 812)[0] == 1.0
    table = ur_state.read_realtime([packet, packet])
    np.testing.assert_array_equal(table["actual_q"], [values["actual_q"]] * 2)
    short = ur_state.read_realtime([ur_state.encode_realtime(values, 692)])
    assert "joint_temperatures" not in short and "actual_current" in short
    with pytest.raises(WireError, match="changed mid-stream"):
        ur_state.read_realtime([packet, packet[:1060]])


@given(st.data())
def test_packages_do_not_depend_on_how_the_bytes_arrive(data):
    parts = data.draw(
        st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=30)), min_size=1, max_size=4)
    )
    one = ur_state.encode_package(ur_state.ROBOT_STATE, parts)
    kind, read = ur_state.read_package(one)
    assert kind == ur_state.ROBOT_STATE and read == dict(parts)
    cut = data.draw(st.integers(0, len(one)))
    packages = ur_state.PackageParser()
    assert packages.feed(one[:cut]) + packages.feed(one[cut:] + one) == [one, one]
