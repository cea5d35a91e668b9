"""One run as loggers write it: names, numbers, units and containers of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

RATE = 125.0
JOINTS = (
    "shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint",
    "wrist_3_joint",
)  # fmt: skip
DEG = 180.0 / np.pi
# Time, position, velocity, torque.
Run = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
LAYOUTS: dict[str, Callable[[Path, Run], Path]] = {}


def sines(seed: int = 3, seconds: float = 20.0) -> Run:
    """A UR5e that follows sums of sines."""
    from taufit.dynamics import inverse_dynamics
    from taufit.robot import read_robot

    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    w = 2 * np.pi * np.array([0.15, 0.25, 0.4])
    a = rng.uniform(0.1, 0.4, (3, 6))
    phase = rng.uniform(0, 6.28, (3, 6))
    angle = w[:, None, None] * time[None, :, None] + phase[:, None]
    q = np.sum(a[:, None] * np.sin(angle), axis=0) + [0, -1, 1, 0, 1, 0]
    v = np.sum((a * w[:, None])[:, None] * np.cos(angle), axis=0)
    acc = -np.sum((a * w[:, None] ** 2)[:, None] * np.sin(angle), axis=0)
    tau = inverse_dynamics(read_robot("ur5e"), q, v, acc) + 5.0 * np.tanh(v / 0.02) + 3.0 * v
    tau += rng.normal(0.0, 0.3, tau.shape)
    q = q + rng.normal(0.0, 1e-5, q.shape)
    return time, q, v + rng.normal(0.0, 2e-3, v.shape), tau


def _layout(write: Callable[[Path, Run], Path]) -> Callable[[Path, Run], Path]:
    LAYOUTS[write.__name__] = write
    return write


def _text(
    folder: Path,
    names: Sequence[str] | None,
    columns: Iterable[np.ndarray],
    delimiter: str = ",",
    name: str = "log.csv",
    decimal: str = ".",
) -> Path:
    rows = np.column_stack([*columns])
    body = "\n".join(
        delimiter.join(repr(float(x)).replace(".", decimal) for x in row) for row in rows
    )
    head = "" if names is None else delimiter.join(names) + "\n"
    (folder / name).write_text(head + body + "\n")
    return folder / name


def _numbered(*stems: str, start: int = 1) -> list[str]:
    return [f"{stem}{i}" for stem in stems for i in range(start, 6 + start)]


def _interleaved(*parts: np.ndarray) -> np.ndarray:
    return np.stack(parts, axis=2).reshape(len(parts[0]), -1)


@_layout
def one_based(folder: Path, run: Run) -> Path:
    return _text(folder, ["t", *_numbered("q", "dq", "tau")], run)


@_layout
def zero_based(folder: Path, run: Run) -> Path:
    return _text(folder, ["time", *_numbered("q_", "qd_", "tau_", start=0)], run)


@_layout
def brackets(folder: Path, run: Run) -> Path:
    names = [f"{s}[{i}]" for s in ("q", "dq", "tau_J", "tau_J_d") for i in range(6)]
    return _text(folder, ["time", *names], [*run, 0.9 * run[3]])


@_layout
def interleaved_names(folder: Path, run: Run) -> Path:
    names = [f"joint{i}_{s}" for i in range(1, 7) for s in ("pos", "vel", "torque")]
    return _text(folder, ["t", *names], [run[0], _interleaved(*run[1:])])


@_layout
def interleaved_short_names(folder: Path, run: Run) -> Path:
    names = [f"{s}{i}" for i in range(1, 7) for s in ("q", "dq", "tau")]
    return _text(folder, ["t", *names], [run[0], _interleaved(*run[1:])])


@_layout
def joint_names(folder: Path, run: Run) -> Path:
    kinds = ("position", "velocity", "effort")
    names = [f"/joint_states/{n}/{s}" for s in kinds for n in JOINTS]
    return _text(folder, ["time", *names], run)


@_layout
def rostopic_echo(folder: Path, run: Run) -> Path:
    """As `rostopic echo -p` writes joint states: nanoseconds, fields with numbers from 0."""
    kinds = ("position", "velocity", "effort")
    names = ["%time", "field.header.seq", *(f"field.{s}{i}" for s in kinds for i in range(6))]
    t, q, v, tau = run
    return _text(folder, names, [np.round(1.7e18 + 1e9 * t), np.arange(len(t)), q, v, tau])


@_layout
def ur_rtde(folder: Path, run: Run) -> Path:
    """As ur_rtde's recorder writes it, with torque logged by the user."""
    names = ["timestamp", *_numbered("actual_q_", "actual_qd_", "actual_torque_", start=0)]
    return _text(folder, names, run)


@_layout
def degrees_named(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    names = ["t_ms", *_numbered("pos_deg_", "vel_deg_", "torque_")]
    return _text(folder, names, [1e3 * t, DEG * q, DEG * v, tau])


@_layout
def degrees_by_size(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _text(
        folder, ["Time", *_numbered("angle", "speed", "torque")], [t, DEG * q, DEG * v, tau]
    )


@_layout
def targets_too(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    stems = ("actual_q_", "target_q_", "actual_qd_", "actual_torque_", "target_torque_")
    return _text(folder, ["timestamp", *_numbered(*stems, start=0)], [t, q, q + 1e-3, v, tau, tau])


@_layout
def nanoseconds(folder: Path, run: Run) -> Path:
    stamp = np.round(1.7e18 + 1e9 * run[0])
    return _text(folder, ["stamp_ns", *_numbered("q", "dq", "tau")], [stamp, *run[1:]])


@_layout
def milliseconds_by_size(folder: Path, run: Run) -> Path:
    return _text(folder, ["time", *_numbered("q", "dq", "tau")], [1e3 * run[0], *run[1:]])


@_layout
def semicolons(folder: Path, run: Run) -> Path:
    return _text(folder, ["t", *_numbered("q", "dq", "tau")], run, ";")


@_layout
def decimal_commas(folder: Path, run: Run) -> Path:
    return _text(folder, ["t", *_numbered("q", "dq", "tau")], run, ";", decimal=",")


@_layout
def no_velocity_names(folder: Path, run: Run) -> Path:
    return _text(folder, ["t", *_numbered("q", "tau")], [run[0], run[1], run[3]])


@_layout
def headerless(folder: Path, run: Run) -> Path:
    return _text(folder, None, run)


@_layout
def headerless_spaces(folder: Path, run: Run) -> Path:
    return _text(folder, None, run, " ", "log.txt")


@_layout
def headerless_torque_first(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _text(folder, None, [t, tau, v, q])


@_layout
def headerless_no_time(folder: Path, run: Run) -> Path:
    return _text(folder, None, run[1:])


@_layout
def headerless_acceleration(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _text(folder, None, [t, q, v, np.gradient(v, t, axis=0), tau])


@_layout
def headerless_interleaved(folder: Path, run: Run) -> Path:
    return _text(folder, None, [run[0], _interleaved(*run[1:])])


@_layout
def headerless_no_velocity(folder: Path, run: Run) -> Path:
    return _text(folder, None, [run[0], run[1], run[3]])


@_layout
def headerless_commanded(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _text(folder, None, [t, q + 1e-3, q, v, tau])


@_layout
def headerless_degrees_ms(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _text(folder, None, [1e3 * t, DEG * q, DEG * v, tau])


@_layout
def headerless_counter(folder: Path, run: Run) -> Path:
    return _text(folder, None, [np.arange(len(run[0])), *run])


def _npz(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "log.npz", **arrays)
    return folder / "log.npz"


@_layout
def npz(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _npz(folder, t=t, q=q, dq=v, tau=tau)


@_layout
def npz_across(folder: Path, run: Run) -> Path:
    t, q, v, tau = run
    return _npz(folder, time=t, positions=q.T, velocities=v.T, efforts=tau.T)


@_layout
def npz_one_array(folder: Path, run: Run) -> Path:
    return _npz(folder, data=np.column_stack(run))


@_layout
def mat(folder: Path, run: Run) -> Path:
    from scipy.io import savemat

    t, q, v, tau = run
    savemat(folder / "log.mat", {"t": t, "q": q, "qd": v, "tau": tau})
    return folder / "log.mat"


@_layout
def hdf5(folder: Path, run: Run) -> Path:
    import h5py

    with h5py.File(folder / "log.h5", "w") as file:
        for name, values in zip(("time", "q", "dq", "tau"), run, strict=True):
            file.create_dataset(f"robot/{name}", data=values)
    return folder / "log.h5"


@_layout
def npy(folder: Path, run: Run) -> Path:
    np.save(folder / "log.npy", np.column_stack(run))
    return folder / "log.npy"


@_layout
def parquet_lists(folder: Path, run: Run) -> Path:
    """Two-dimensional columns, one list per row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    t, q, v, tau = run
    lists = {"q": list(q), "dq": list(v), "tau": list(tau)}
    pq.write_table(pa.table({"time": t, **lists}), folder / "log.parquet")
    return folder / "log.parquet"


@_layout
def parquet_flat(folder: Path, run: Run) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["timestamp", *_numbered("joint_pos_", "joint_vel_", "joint_eff_", start=0)]
    rows = np.column_stack(run)
    table = pa.table({name: rows[:, i] for i, name in enumerate(names)})
    pq.write_table(table, folder / "log.parquet")
    return folder / "log.parquet"
