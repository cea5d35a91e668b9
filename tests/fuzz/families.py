"""What is fuzzed: for each family, a command line made from a seed."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from tests.fuzz.damage import damaged, edited, edited_yaml
from tests.fuzz.grown import grown
from tests.fuzz.traps import trapped

ARM = """name: two
convention: standard
mounting: ground
joints:
  - {name: one, d: 0.1, a: 0.0, alpha: 90, lower: -170, upper: 170, velocity: 180,
     acceleration: 500, torque: 60, mass: 4.0, com: [0, 0, 0.1], inertia: [0.05, 0.05, 0.03]}
  - {name: two, d: 0.0, a: 0.4, alpha: 0, lower: -170, upper: 170, velocity: 180,
     acceleration: 500, torque: 60, mass: 3.0, com: [-0.2, 0, 0], inertia: [0.01, 0.06, 0.06]}
angles: degrees
"""
MAP = """columns:
  time: t
  position: "q{joint}"
  velocity: "dq{joint}"
  torque: "tau{joint}"
joint_names: [one, two]
robot: two
rate_hz: 100
gains: 1
torque_side: motor
signed: true
notes: hello
"""
URDF = (
    '<robot name="two"><link name="base"/>'
    '<link name="l1"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="4"/>'
    '<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.03"/></inertial></link>'
    '<link name="l2"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/></inertial></link>'
    '<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>'
    '<origin xyz="0 0 0.1" rpy="0 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="3" effort="60"/></joint>'
    '<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/>'
    '<origin xyz="0 0 0.1" rpy="1.57 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="3" effort="60"/></joint></robot>'
)
NUMBERS = (
    "0", "-1", "1", "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "9" * 20, "-" + "9" * 20,
    "", "x", "0x10", "1__0", "٣", "1e", "3.5", "1,2,3", "\x1b[2J", "--", "2147483648",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Sound files of every kind, from one small simulated arm."""
    from taufit.cli import main
    from taufit.recording import read_recording, write_recording

    def run(*words: object) -> None:
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"{words} exits with {stop.code}") from None

    (folder / "arm.yaml").write_text(ARM)
    (folder / "arm.urdf").write_text(URDF)
    run("design", folder / "arm.yaml", "--seconds", "0.2", "--free-space", "--frequency-hz", "0.4",
        "-o", folder / "motion.json")  # fmt: skip
    run("simulate", folder / "arm.yaml", folder / "motion.json", "-o", folder / "run.parquet")
    run("fit", folder / "arm.yaml", folder / "run.parquet", "--friction", "linear",
        "--estimator", "consistent_sdp", "--ignore-contradictions",
        "-o", folder / "model.json")  # fmt: skip
    recording = read_recording(folder / "run.parquet")
    for name in ("run.csv", "run.csv.gz", "run.npz", "run.mcap"):
        write_recording(recording, folder / name)
    write_recording(recording, folder / "bag")
    _db3(folder / "db3", recording)
    _live(folder / "run.live", recording)
    shutil.copy(next((folder / "bag").glob("*.mcap")), folder / "inner.mcap")
    count = 200
    time = np.arange(count) / 100
    q = np.stack([np.sin(time), np.cos(time)], axis=1)
    table = np.column_stack([time, q, np.gradient(q, 0.01, axis=0), 5 * q])
    text = "t,q1,q2,dq1,dq2,tau1,tau2\n"
    text += "".join(",".join(f"{x:.6f}" for x in row) + "\n" for row in table)
    (folder / "table.csv").write_text(text)
    (folder / "map.yaml").write_text(MAP)
    arrays = {"t": time, "q": q, "tau": 5 * q}
    import h5py
    import scipy.io

    scipy.io.savemat(folder / "run.mat", arrays, do_compression=True)
    with h5py.File(folder / "run.h5", "w") as file:
        for name, values in arrays.items():
            file[f"group/{name}"] = values
    for k in range(8):
        write_recording(recording, folder / f"healthy{k}.parquet")
    run("health", "baseline", folder / "model.json",
        *(folder / f"healthy{k}.parquet" for k in range(8)),
        "-o", folder / "history.json")  # fmt: skip


def _db3(path: Path, recording: Any) -> None:
    """A ROS 2 bag with a database, as rosbag2 writes it."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    state, header, stamp = (
        store.types[name]
        for name in (
            "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time",
        )
    )  # fmt: skip
    with Writer(path, version=8, storage_plugin=StoragePlugin.SQLITE3) as writer:
        link = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for k, t in enumerate(recording.time[:300]):
            ns = 10**9 + int(1e9 * t)
            message = state(
                header(stamp(ns // 10**9, ns % 10**9), ""), ["one", "two"],
                recording.position[k], recording.position[k], recording.signal[k],
            )  # fmt: skip
            writer.write(link, ns, store.serialize_cdr(message, state.__msgtype__))


def _live(path: Path, recording: Any) -> None:
    """What a recorder that was killed has left."""
    from taufit.recording.live import RecordingWriter

    finished = path.with_name("spooled.parquet")
    writer = RecordingWriter(finished, joints=2, flush_seconds=60)
    for k in range(200):
        position = recording.position[k]
        writer.append(recording.time[k], position, recording.signal[k], velocity=position)
    writer.flush()
    shutil.copy(next(path.parent.glob("*.live")), path.with_name("kept"))
    writer.close()
    for made in path.parent.glob("*.live"):
        made.unlink()
    finished.unlink(missing_ok=True)
    path.with_name("kept").rename(path)


Case = Callable[[Path, Path, np.random.Generator], list[str]]


def model(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    data = (base / "model.json").read_bytes()
    path = work / "model.json"
    if rng.random() < 0.15:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    verb = rng.random()
    if verb < 0.82:
        # Units are compiled, so fewer of them.
        form = ("urdf", "mjcf", "c", "json")[rng.integers(4)] if rng.random() < 0.95 else "fmu"
        kind = ["--kind", ("inverse", "forward")[rng.integers(2)]] if form == "fmu" else []
        return ["export", str(path), "--format", form, *kind, "-o", str(work / f"out.{form}")]
    if verb < 0.92:
        return ["check", str(path), str(base / "run.parquet")]
    if verb < 0.97:
        return ["report", str(path), "-o", str(work / "page.html")]
    return ["payload", str(path), str(base / "run.parquet"), "--method", "static"]


def motion(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "motion.json"
    data = (base / "motion.json").read_bytes()
    if rng.random() < 0.2:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    return ["simulate", str(base / "arm.yaml"), str(path), "--preset", "clean",
            "-o", str(work / "out.parquet")]  # fmt: skip


def history(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "history.json"
    data = (base / "history.json").read_bytes()
    if rng.random() < 0.2:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    return ["health", "check", str(path), "--json"]


def column_map(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "map.yaml"
    if rng.random() < 0.2:
        path.write_bytes(damaged(MAP.encode(), rng))
    else:
        path.write_text(edited_yaml(MAP, rng), errors="surrogatepass")
    return ["convert", str(base / "table.csv"), "--map", str(path), "-o", str(work / "out.csv")]


def robot(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "arm.yaml"
    if rng.random() < 0.2:
        path.write_bytes(damaged(ARM.encode(), rng))
    else:
        path.write_text(edited_yaml(ARM, rng), errors="surrogatepass")
    return ["inspect", str(path), "--json"]


def urdf(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "arm.urdf"
    text = URDF
    if rng.random() < 0.4:
        path.write_bytes(damaged(text.encode(), rng))
    else:
        parts = text.split('"')
        for _ in range(int(rng.integers(1, 4))):
            at = 1 + 2 * int(rng.integers(len(parts) // 2))
            parts[at] = ("", "nan", "1e308", "-1", "x", "0 0", "0 0 0", "1e999", "l1", "base",
                         "&#27;", "&lt;", "fixed", "9" * 500)[rng.integers(14)]  # fmt: skip
        path.write_text('"'.join(parts))
    return ["inspect", str(path), "--json"]


def grown_urdf(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "arm.urdf"
    path.write_text(grown(rng), errors="surrogatepass")
    verb = rng.random()
    if verb < 0.8:
        return ["inspect", str(path), *(["--json"] if rng.random() < 0.5 else [])]
    if verb < 0.9:
        return ["simulate", str(path), "--preset", "clean", "-o", str(work / "out.parquet")]
    if verb < 0.95:
        return ["fit", str(path), str(base / "run.parquet"), "-o", str(work / "model.json")]
    return ["design", str(path), "--seconds", "0.1", "--free-space", "-o", str(work / "m.json")]


@cache
def _table(path: Path) -> dict[str, Any]:
    from taufit.recording import read_recording

    one = read_recording(path)
    columns = {"t": one.time}
    for name, values in (("q", one.position), ("dq", one.velocity), ("tau", one.signal)):
        columns |= {f"{name}{j + 1}": values[:, j] for j in range(2)}
    return columns


def _written(columns: dict[str, Any], work: Path, rng: np.random.Generator) -> Path:
    """The table in one of the forms and dialects that files come in."""
    form = int(rng.integers(7))
    if form < 5:
        comma, point, end = ((",", ".", "\n"), (";", ",", "\n"), ("\t", ".", "\r\n"),
                             (",", ".", "\r"), (" ", ".", "\n"))[form]  # fmt: skip
        path = work / "run.csv"
        rows = np.column_stack(list(columns.values()))
        lines = [comma.join(columns)]
        lines += [comma.join(f"{x:.9g}".replace(".", point) for x in row) for row in rows]
        path.write_text(end.join(lines) + end)
    elif form == 5:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = work / "run.parquet"
        kind = (pa.float64(), pa.float32(), pa.string(), pa.int64(), pa.bool_())[rng.integers(5)]
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        name = list(columns)[int(rng.integers(len(columns)))]
        try:
            cast = table.column(name).cast(kind, safe=False)
            table = table.set_column(table.column_names.index(name), name, cast)
        except pa.ArrowException:
            pass
        pq.write_table(table, path)
    else:
        path = work / "run.npz"
        np.savez(path, **columns)
    return path


def traps(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    """A table with traps in it, through a verb that believes it."""
    path = _written(trapped(_table(base / "run.parquet"), rng), work, rng)
    fitted, mapped = str(base / "model.json"), ["--map", str(base / "map.yaml")]
    methods = ("filter", "direct", "difference", "khalil", "static", "printed")
    estimators = ("ols", "wls", "irls", "tls", "consistent_sdp")
    verb = int(rng.choice(10, p=[0.3, 0.1, 0.15, 0.15, 0.1, 0.05, 0.05, 0.04, 0.03, 0.03]))
    words = (
        ["convert", str(path), "-o", str(work / "out.parquet"), *mapped],
        ["convert", str(path), "--draft", str(work / "draft.yaml")],
        ["fit", str(base / "arm.yaml"), str(path), "--friction", "linear", "--estimator",
         estimators[int(rng.integers(5))], "-o", str(work / "model.json"), *mapped],
        ["check", fitted, str(path), *mapped],
        ["payload", fitted, str(path), "--method", methods[int(rng.integers(6))], *mapped],
        ["contact", fitted, str(path), *mapped],
        ["energy", fitted, str(path), *mapped],
        ["friction", str(base / "arm.yaml"), str(path), "-o", str(work / "f.json"), *mapped],
        ["health", "baseline", fitted, *[str(path)] * 8, "-o", str(work / "h.json"), *mapped],
        ["check", fitted, str(path), "--track", "--report", str(work / "p.html"), *mapped],
    )  # fmt: skip
    return list(words[verb])


_SQL = (
    "UPDATE messages SET data = zeroblob(length(data)) WHERE id % 7 = 3",
    "UPDATE messages SET data = substr(data, 1, 20)",
    "UPDATE messages SET data = NULL WHERE id = 5",
    "UPDATE messages SET data = 'text' WHERE id = 5",
    "UPDATE messages SET timestamp = -1",
    "UPDATE messages SET timestamp = 'now'",
    "UPDATE messages SET timestamp = 9223372036854775807 WHERE id = 9",
    "UPDATE messages SET topic_id = 77",
    "UPDATE messages SET topic_id = NULL",
    "DELETE FROM messages",
    "DELETE FROM topics",
    "DELETE FROM messages WHERE id % 2 = 0",
    "UPDATE topics SET type = 'sensor_msgs/msg/Imu'",
    "UPDATE topics SET type = char(27) || '[2Jx'",
    "UPDATE topics SET name = char(27) || '[2J'",
    "UPDATE topics SET serialization_format = 'x'",
    "DROP TABLE messages",
    "DROP TABLE topics",
    "ALTER TABLE messages RENAME TO other",
    "CREATE VIEW v AS SELECT * FROM messages",
    "INSERT INTO topics SELECT id + 1, name, type, serialization_format, offered_qos_profiles "
    "FROM topics",
    "INSERT INTO messages SELECT id + 1000, topic_id, timestamp, data FROM messages",
    "UPDATE messages SET data = data || data",
    "CREATE TRIGGER t AFTER UPDATE ON messages BEGIN DELETE FROM topics; END",
)


def bag(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    """A ROS 2 bag whose database, bytes or metadata were changed."""
    import sqlite3
    from contextlib import closing, suppress

    path = work / "bag"
    shutil.copytree(base / "db3", path)
    inner, page = next(path.glob("*.db3")), path / "metadata.yaml"
    how = rng.random()
    if how < 0.6:
        with closing(sqlite3.connect(inner)) as database:
            for _ in range(int(rng.integers(1, 4))):
                with suppress(sqlite3.Error):
                    database.execute(_SQL[int(rng.integers(len(_SQL)))])
            database.commit()
    elif how < 0.8:
        inner.write_bytes(damaged(inner.read_bytes(), rng))
    else:
        page.write_text(edited_yaml(page.read_text(), rng), errors="surrogatepass")
    target = str(path) if rng.random() < 0.9 else str(inner)
    return ["convert", target, "--torque-kind", "torque", "-o", str(work / "out.csv")]


EFFECTS = """friction: {model: linear, coefficients: [[5, 3], [4, 2]], presliding: 0.001,
  scatter: 0.02, breakaway: 0.2, dwell: 1.0, distance: 0.01, load_factor: 0.05}
thermal: {capacity: 500, housing: 900, conductance: 2, ambient_conductance: 1, ambient: 20,
  copper: 0.1}
ripple: {cycles: [10, 20], amplitude: 0.3}
elasticity: {stiffness: 20000, damping: 20, rotor: 1.0}
sensing: {white: 0.3, gain_scatter: 0.01, coloured: 0.1, corner_hz: 2, quantum: 0.01, side: motor}
encoder: {noise: 0.00001, quantum: 0.0001, velocity: true}
timing: {intervals: [[0.008, 0.9], [0.016, 0.1]], jitter: 0.0001, drop: 0.01, burst: 2}
saturation: 1.0
pushes: [{start: 1.0, duration: 0.5, force: [20, 0, 0], moment: [0, 1, 0]}]
"""


def effects(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "effects.yaml"
    if rng.random() < 0.15:
        path.write_bytes(damaged(EFFECTS.encode(), rng))
    else:
        # Few parts at a time, so that a case is short and its cause is seen.
        blocks = EFFECTS.replace("\n  ", " ").splitlines()
        chosen = rng.permutation(len(blocks))[: int(rng.integers(1, 4))]
        text = "\n".join(blocks[i] for i in chosen) + "\n"
        path.write_text(edited_yaml(text, rng), errors="surrogatepass")
    return ["simulate", str(base / "arm.yaml"), str(base / "motion.json"), "--effects", str(path),
            "-o", str(work / "out.parquet")]  # fmt: skip


def live(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "run.live"
    path.write_bytes(damaged((base / "run.live").read_bytes(), rng))
    return ["convert", str(path), "-o", str(work / "out.csv")]


RECORDINGS = (
    "run.parquet",
    "run.csv",
    "run.csv.gz",
    "run.npz",
    "run.h5",
    "inner.mcap",
    "table.csv",
)


def recording(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    # MATLAB files are read in a process of their own, so fewer of them.
    name = "run.mat" if rng.random() < 0.01 else RECORDINGS[rng.integers(len(RECORDINGS))]
    path = work / name
    path.write_bytes(damaged((base / name).read_bytes(), rng))
    words = ["convert", str(path), "-o", str(work / "out.csv")]
    return [*words, "--map", str(base / "map.yaml")] if name == "table.csv" else words


def options(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    """Every numeric option of every verb, with values nobody means."""
    found = [(verb, name) for verb, names in numeric_options().items() for name in names]
    verb, name = found[rng.integers(len(found))]
    arm, run, fitted = (str(base / x) for x in ("arm.yaml", "run.parquet", "model.json"))
    out = ["-o", str(work / "out.json")]
    words = {
        "inspect": [arm],
        "design": [arm, "--free-space", "--seconds", "0.1", *out],
        "simulate": [arm, "--preset", "clean", "-o", str(work / "out.parquet")],
        "convert": [run, "-o", str(work / "out.csv")],
        "fit": [arm, run, "--friction", "linear", "--estimator", "ols", *out],
        "check": [fitted, run],
        "payload": [fitted, run, "--method", "static"],
        "export": [fitted, *out],
        "report": [fitted, "-o", str(work / "page.html")],
    }[verb]
    return [verb, *words, f"{name}={NUMBERS[rng.integers(len(NUMBERS))]}"]


@cache
def numeric_options() -> dict[str, list[str]]:
    """Options that take a number, by verb, as the commands declare them."""
    from taufit.cli.options.option_groups import flatten_options

    out: dict[str, list[str]] = {}
    for verb in ("inspect", "design", "simulate", "convert", "fit", "check", "payload", "export",
                 "report"):  # fmt: skip
        command = import_module(f"taufit.cli.{verb}").command
        out[verb] = []
        for name, kind in inspect.get_annotations(flatten_options(command)).items():
            inner, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
            if not {int, float} & {inner, *get_args(inner)}:
                continue
            given = [x for note in notes for x in getattr(note, "param_decls", None) or ()]
            flags = [x for x in given if x.startswith("--")]
            out[verb].append(flags[0] if flags else "--" + name.replace("_", "-"))
    return out


FAMILIES: dict[str, Case] = {
    "model": model,
    "motion": motion,
    "history": history,
    "map": column_map,
    "robot": robot,
    "urdf": urdf,
    "recording": recording,
    "options": options,
    "grown": grown_urdf,
    "traps": traps,
    "bag": bag,
    "effects": effects,
    "live": live,
}
# Of 100 cases; motions are simulated and options run whole verbs, so they cost most.
SHARES = {"model": 14, "motion": 3, "history": 8, "map": 10, "robot": 9, "urdf": 8,
          "recording": 14, "options": 2, "grown": 10, "traps": 8, "bag": 6, "effects": 3,
          "live": 5}  # fmt: skip
