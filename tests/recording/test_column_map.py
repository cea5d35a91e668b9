"""Column maps say what is meant, and complain in the user's words where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from taufit.core.errors import RecordingError
from taufit.recording import read_map, read_recording, read_recordings

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "examples" / "columns").glob("*.yaml"))
N = 50
TIME = np.arange(N) * 0.01
ANGLE = np.column_stack([np.sin(TIME), np.cos(2 * TIME)])
CURRENT = np.random.default_rng(0).normal(size=(N, 2))


def file(tmp_path, *columns, header=None, delimiter=",", name="run.csv"):
    rows = np.column_stack(columns).tolist()
    lines = [delimiter.join(map(repr, row)) for row in rows]
    path = tmp_path / name
    path.write_text("\n".join([*([delimiter.join(header)] if header else []), *lines]) + "\n")
    return path


def page(**changes):
    columns = {"time": 1, "position": "2-3", "current": "4-5", **changes.pop("columns", {})}
    return {"columns": columns, **changes}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_maps_are_sound_and_found_by_name(path):
    assert read_map(path).columns == read_map(path.stem).columns
    assert yaml.safe_load(path.read_text())["robot"]


def test_units_signs_scales_and_offsets_follow_the_formula(tmp_path):
    path = file(tmp_path, TIME * 1e3, np.degrees(ANGLE), CURRENT * 1e3)
    spec = page(
        columns={
            "time": {"columns": 1, "unit": "ms"},
            "position": {"columns": "2-3", "unit": "deg", "offset": [0.5, 0]},
            "current": {"columns": [4, 5], "unit": "mA", "sign": [1, -1], "scale": 2},
        }
    )
    recording = read_recording(path, column_map=spec)
    np.testing.assert_allclose(recording.time, TIME, atol=1e-15)
    np.testing.assert_allclose(recording.position, ANGLE + np.array([0.5, 0]), atol=1e-15)
    np.testing.assert_allclose(recording.signal, CURRENT * [2, -2], rtol=1e-14)


def test_long_form_equals_short_form(tmp_path):
    path = file(tmp_path, TIME, ANGLE, CURRENT)
    long = {
        "columns": [
            {"column": 1, "quantity": "time"},
            {"column": 3, "quantity": "position", "joint": 2},
            {"column": 2, "quantity": "position", "joint": 1},
            {"column": 4, "quantity": "current", "joint": 1, "unit": "A"},
            {"column": 5, "quantity": "current", "joint": 2, "unit": "A", "sign": -1},
        ]
    }
    recording = read_recording(path, column_map=long)
    np.testing.assert_array_equal(recording.position, ANGLE)
    np.testing.assert_array_equal(recording.signal, CURRENT * [1, -1])


def test_motor_angles_pass_gear_and_coupling(tmp_path):
    ratio, coupling = np.array([50.0, -80.0]), np.array([[1.0, 0.0], [1.0, 1.0]])
    motor = (ANGLE @ coupling.T) * ratio
    path = file(tmp_path, TIME, motor, CURRENT)
    spec = page(
        columns={"position": {"columns": "2-3", "side": "motor"}},
        gear_ratio=ratio.tolist(),
        coupling=coupling.tolist(),
        torque_constant=[0.1, 0.2],
    )
    recording = read_recording(path, column_map=spec)
    np.testing.assert_allclose(recording.position, ANGLE, atol=1e-14)
    np.testing.assert_allclose(recording.gain, [5.0, -16.0])
    np.testing.assert_array_equal(recording.coupling, coupling)
    # Power is the same on both sides: tau' dq = tau_m' dq_m.
    tau = (coupling.T * 1.0) @ (recording.gain * CURRENT[0])
    speed = np.array([0.3, -0.7])
    motor_torque = recording.gain * CURRENT[0] / ratio
    assert tau @ speed == pytest.approx(motor_torque @ (ratio * (coupling @ speed)))


@pytest.mark.parametrize(
    ("changes", "gain"),
    [
        ({"gains": [3, 4]}, [3, 4]),
        ({"gains": 5}, [5, 5]),
        ({"gains": {"value": [3, 4], "std": 0.1}}, [3, 4]),
        ({"gear_ratio": ["1798/7", 100], "torque_constant": 0.5}, [1798 / 14, 50]),
        ({"gains": "auto"}, None),
        ({}, None),
    ],
)
def test_gains(tmp_path, changes, gain):
    recording = read_recording(file(tmp_path, TIME, ANGLE, CURRENT), column_map=page(**changes))
    if gain is None:
        assert recording.gain is None
        assert "gain_unknown" in {finding.kind for finding in recording.findings}
    else:
        np.testing.assert_allclose(recording.gain, gain)
    if isinstance(changes.get("gains"), dict):
        np.testing.assert_allclose(recording.gain_std, [0.1, 0.1])


def test_the_long_form_takes_several_columns_from_a_joint_on(tmp_path):
    path = file(tmp_path, TIME, ANGLE, CURRENT)
    spec = {
        "columns": [
            {"column": 1, "quantity": "time"},
            {"column": "2-3", "quantity": "position", "joint": 1},
            {"column": [4, 5], "quantity": "current"},
        ]
    }
    long, short = (read_recording(path, column_map=given) for given in (spec, page()))
    np.testing.assert_array_equal(long.position, short.position)
    np.testing.assert_array_equal(long.signal, short.signal)


def test_torque_sides(tmp_path):
    path = file(tmp_path, TIME, ANGLE, CURRENT)
    columns = {"time": 1, "position": "2-3", "torque": "4-5"}
    link = read_recording(path, column_map={"columns": columns, "torque_side": "link"})
    motor = read_recording(path, column_map={"columns": columns, "gear_ratio": [10, 20]})
    assert (link.torque_source, motor.torque_source) == ("joint_torque_sensor", "motor_torque")
    np.testing.assert_array_equal(link.gain, [1, 1])
    np.testing.assert_array_equal(motor.gain, [10, 20])


def test_delimiters_decimals_and_headers_are_found_out(tmp_path):
    for delimiter in (",", ";", "\t", " "):
        path = file(tmp_path, TIME, ANGLE, CURRENT, delimiter=delimiter)
        np.testing.assert_array_equal(read_recording(path, column_map=page()).position, ANGLE)
    german = path.read_text().replace(" ", ";").replace(".", ",")
    path.write_text(german)
    np.testing.assert_array_equal(read_recording(path, column_map=page()).position, ANGLE)
    path = file(tmp_path, TIME, ANGLE, CURRENT, header=["a", "b", "c", "d", "e"])
    np.testing.assert_array_equal(read_recording(path, column_map=page()).position, ANGLE)
    np.savetxt(tmp_path / "np.txt", np.column_stack([TIME, ANGLE, CURRENT]), header="t q1 q2 i1 i2")
    named = {"columns": {"time": "t", "position": "q{joint}", "current": "i{joint}"}}
    np.testing.assert_array_equal(
        read_recording(tmp_path / "np.txt", column_map=named).position, ANGLE
    )


def test_runs_payload_rate_and_signs(tmp_path):
    run = np.repeat([4, 9], N // 2)
    path = file(tmp_path, ANGLE, CURRENT, run, np.full(N, 1.25))
    spec = {
        "columns": {"position": "1-2", "current": "3-4", "run": 5, "payload": 6},
        "rate_hz": 200,
        "signed": [True, False],
    }
    first, second = read_recordings(path, column_map=spec)
    assert (first.meta["run"], second.meta["run"]) == (4, 9)
    np.testing.assert_allclose(second.time, np.arange(N // 2) / 200)
    assert second.payload == 1.25 and second.signed.tolist() == [True, False]
    assert read_recording(path, column_map=spec, run=9, payload=3).payload == 3
    with pytest.raises(RecordingError, match=r"2 runs .4 to 9."):
        read_recording(path, column_map=spec)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({}, "`columns` must say"),
        ({"columns": {"time": 1}}, "names no position"),
        (page(columns={"torque": "6-7"}), "exactly one torque channel.*current, torque"),
        ({"columns": {"position": 1, "current": 2}}, "names no time; .*rate_hz"),
        (page(colums=1), "no key 'colums'.*Did you mean 'columns'"),
        (page(columns={"speed": 3}), "no quantity 'speed'.*velocity"),
        (page(columns={"position": {"columns": "2-3", "unit": "furlong"}}), "rad, mrad, deg"),
        (page(columns={"position": {"columns": "2-3", "sing": 1}}), "Did you mean 'sign'"),
        (page(columns={"position": {"columns": "2-3", "sign": 2}}), "sign must be 1 or -1"),
        (page(columns={"position": 0}), "numbered from 1"),
        (page(columns={"position": "3-2"}), "not a range of columns"),
        (page(columns={"position": {"columns": "2-3", "side": "motor"}}), "needs gear_ratio"),
        (page(gains="many"), "numbers, auto or unknown"),
        (page(gains=[1, 0]), "must not be zero"),
        (page(gains=[1, 2, 3]), "3 numbers for 2 joints"),
        (page(coupling=[[1, 1], [1, 1]]), "cannot be inverted"),
        (page(coupling=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]), "coupling is 3 x 3"),
        (page(torque_side="left"), "motor or link"),
        (page(signed=[True]), "signed has 1 values"),
        (page(known_payload=-1), "must not be negative"),
        (page(joint_names=["a"]), "joint_names has 1 names"),
        (page(columns={"velocity": "9-10"}), "no column 9 for velocity; the file has 5 columns"),
        (page(columns={"velocity": "v{joint}"}), "no header; give columns by number"),
        (page(columns={"velocity": "4-5"}), "uses column 4 twice|uses column .* twice"),
        (page(columns={"velocity": 5}), "uses column 5 twice|2 position columns and 1 of"),
        (page(rate_hz=0), "rate_hz must be positive"),
        (page(rate_hz=".5.5"), "rate_hz must be a number"),
        (page(rate_hz=1e40), "rate_hz must be finite"),
        (page(skip_rows=1.5), "skip_rows must be a whole number"),
        (page(gains={"std": 1}), "gains has no value"),
        (page(gains={"value": 1, "std": -1}), "std must not be negative"),
        (page(gains=[]), "gains is empty"),
        (page(coupling=1), "coupling must be a square matrix"),
        (page(coupling=[[1, 0]]), "coupling must be a square matrix"),
        (page(delimiter="::"), "one character or comma"),
        (page(joint_names="shoulder"), "list of names"),
        (page(robot=7), "robot must be text"),
        (page(header="no"), "header must be true or false"),
        (page(columns={"position": []}), "names no column"),
        (page(columns={"position": ["q{joint}", 3]}), "pattern with {joint} stands alone"),
        (page(columns={"position": True}), "a column number or name, not True"),
        (page(columns={"position": " "}), "a column number or name, not ' '"),
        (page(columns={"position": {"unit": "rad"}}), "does not say which columns"),
        (page(columns={"time": "1-2"}), "time is one column"),
        (page(columns={"position": {"columns": "2-3", "scale": 0}}), "scale must not be zero"),
        (page(columns={"current": {"columns": "4-5", "side": "motor"}}), "torque_side"),
        ({"columns": ["q"]}, "entry 1 must be"),
        ({"columns": [{"column": 1}]}, "needs `column` and `quantity`"),
        ({"columns": [{"column": 1, "quantity": "position", "joint": 0}]}, "numbered from 1"),
        ({"columns": [{"column": c, "quantity": "position"} for c in (2, 3)]}, "joint 1 is twice"),
        (
            {"columns": [{"column": 2, "quantity": "position", "joint": 2}]},
            r"given for joints \[2\]",
        ),
        (
            {
                "columns": [
                    {"column": 2, "quantity": "position", "joint": 1, "unit": "deg"},
                    {"column": 3, "quantity": "position", "joint": 2, "unit": "rad"},
                ]
            },
            "more than one unit",
        ),
    ],
)
def test_wrong_maps_say_what_is_wrong(tmp_path, spec, complaint):
    with pytest.raises(RecordingError, match=complaint):
        read_recording(file(tmp_path, TIME, ANGLE, CURRENT), column_map=spec)


def test_map_files_that_are_no_maps(tmp_path):
    with pytest.raises(RecordingError, match=r"no column map.*ur10e_csv\.yaml"):
        read_map("nothing_like_it")
    for text, complaint in (("a: [", "not YAML"), ("just words", "must be a page")):
        (tmp_path / "m.yaml").write_text(text)
        with pytest.raises(RecordingError, match=complaint):
            read_map(tmp_path / "m.yaml")


def test_holes_in_a_pattern_are_no_shorter_arm(tmp_path):
    path = file(tmp_path, TIME, ANGLE, CURRENT, header=["t", "q1", "q3", "i1", "i2"])
    spec = {"columns": {"time": "t", "position": "q{joint}", "current": "i{joint}"}}
    with pytest.raises(RecordingError, match=r"q1, q3 .*without holes"):
        read_recording(path, column_map=spec)


@pytest.mark.parametrize("text", ["inf", "nan", "1e200", "word"])
def test_a_bad_cell_is_named_as_the_file_has_it_even_behind_a_coupling(tmp_path, text):
    path = file(tmp_path, TIME, np.degrees(ANGLE), CURRENT)
    lines = path.read_text().split("\n")
    cells = lines[9].split(",")
    cells[2] = text
    lines[9] = ",".join(cells)
    path.write_text("\n".join(lines))
    spec = page(
        columns={"position": {"columns": "2-3", "unit": "deg", "side": "motor"}},
        gear_ratio=[10, 10],
        coupling=[[1, 0], [1, 1]],
        gains=1,
    )
    (finding,) = [
        f for f in read_recording(path, column_map=spec).findings if f.kind == "corrupt_rows"
    ]
    assert finding.rows == (10,)
    assert "row 10: column 3 holds" in finding.message and text.rstrip(
        "0"
    ) in finding.message.replace("e+", "e")


def test_words_in_columns_nobody_reads_do_not_matter(tmp_path):
    path = file(tmp_path, TIME, ANGLE, CURRENT)
    lines = [line + ",running" for line in path.read_text().split("\n") if line]
    lines[4] = lines[4].replace(lines[4].split(",")[1], "lost", 1)
    path.write_text("\n".join(lines) + "\n")
    recording = read_recording(path, column_map=page(header=False))
    (finding,) = [f for f in recording.findings if f.kind == "corrupt_rows"]
    assert finding.rows == (5,) and "column 2 holds 'lost'" in finding.message
    assert len(recording) == N - 1


def test_damaged_maps_are_refused_or_sound(tmp_path):
    """1,200 maps with lines dropped, doubled or mixed and characters changed."""
    lines = [path.read_text().splitlines() for path in SHIPPED]
    rng = np.random.default_rng(4)
    path = tmp_path / "m.yaml"
    junk = [
        ": ",
        "[",
        "}",
        "-",
        "auto",
        "0",
        "1e999",
        "null",
        "{joint}",
        "&a [*a]",
        "!!x",
        "\t",
        "é",
    ]
    refused = 0
    for _ in range(1200):
        text = list(lines[rng.integers(len(lines))])
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(text)))
            kind = rng.integers(4)
            if kind == 0 and len(text) > 1:
                del text[at]
            elif kind == 1:
                text.insert(at, text[rng.integers(len(text))])
            elif kind == 2:
                other = lines[rng.integers(len(lines))]
                text[at] = other[rng.integers(len(other))]
            else:
                cut = int(rng.integers(len(text[at]) + 1))
                text[at] = text[at][:cut] + junk[rng.integers(len(junk))] + text[at][cut + 1 :]
        path.write_text("\n".join(text))
        try:
            read_map(path)
        except RecordingError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("text", ["columns: &a [*a]", "columns: {position: &a [*a]}", "[" * 5000])
def test_maps_that_contain_themselves(tmp_path, text):
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(RecordingError):
        read_map(tmp_path / "m.yaml")


def test_gains_in_numbers_one_per_joint_are_taken(tmp_path):
    from taufit.recording import read_recording

    rows = np.arange(40)[:, None] * np.array([0.01, 0.1, 0.2, 1.0, 2.0])
    text = "t,q1,q2,i1,i2\n" + "".join(",".join(f"{x:g}" for x in row) + "\n" for row in rows)
    (tmp_path / "run.csv").write_text(text)
    columns = {"time": "t", "position": "q{joint}", "current": "i{joint}"}
    found = read_recording(
        tmp_path / "run.csv", column_map={"columns": columns, "gains": [2.0, 3.0]}
    )
    np.testing.assert_array_equal(found.gain, [2.0, 3.0])
