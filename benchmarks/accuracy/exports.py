"""What leaves taufit, used as its users use it: C, URDF in Pinocchio, MJCF in MuJoCo, FMU in FMPy.

Reads the recordings beside the project (../shared/data). Every form is made from one default fit
and judged on runs that fit has not seen, as the model is: motion as it was recorded goes in, the
torque that comes out goes through the low-pass of the measured one.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.accuracy.real_robots import DATA, MAPS, TRAIN, UNSEEN, part

# What version 0.1 left unexplained on the same runs, from its own fit and export: UR10e, UR10.
BEFORE = {("UR10e", "URDF"): 0.1161, ("UR10e", "MJCF"): 0.1023}
BEFORE |= {("UR10", "URDF"): 0.2381, ("UR10", "MJCF"): 0.2734}
CUT = {"UR10e": 0.20, "UR10": 0.35}


def rows() -> Iterator[Row]:
    if not DATA.is_dir():
        return
    for name in ("UR10e", "Panda", "UR10"):
        yield from _of_robot(name)
    yield from _units()


@cache
def runs(name: str):
    """The robot, what it is trained on, and runs that were not seen."""
    from taufit.recording import read_recording
    from taufit.robot import read_robot

    if name == "UR10e":
        folder = DATA / "ur10e" / "identification_data"
        many = [
            read_recording(folder / f"{one}.csv.gz", column_map=MAPS / "ur10e_csv.yaml")
            for one in (TRAIN, *UNSEEN)
        ]
        return read_robot(DATA / "ur10e" / "ur10e.urdf"), many[0], many[1:]
    if name == "Panda":
        path = DATA / "panda" / "panda_exciting_traj1_part1.csv.gz"
        whole = read_recording(path, column_map=MAPS / "panda_csv.yaml")
    else:
        path = DATA / "ur10_bag" / "ur10_exciting_trajectory.db3"
        whole = read_recording(path, torque_kind="torque")
    return read_robot(name.lower()), part(whole, 0.0, 0.7), [part(whole, 0.7, 1.0)]


def _of_robot(name: str) -> Iterator[Row]:
    from taufit.workflow import condition_for_model, identify

    robot, train, unseen = runs(name)
    model = identify(robot, [train], cutoff_hz=5.0).model
    samples = [condition_for_model(model, [run]) for run in unseen]
    whole = _nrmse(model, samples, None)
    note = f"unseen runs, 5 Hz; the model itself {whole:.4f}"
    torque, apart = in_c(model, unseen, samples)
    yield Row(f"{name} model nrmse", whole, "", "", "unseen runs, 5 Hz")
    fed = f"compiled, raw recording sample by sample; {note}"
    got = _nrmse(model, samples, torque)
    yield Row(f"{name} C nrmse", got, "", "", fed)
    yield Row(f"{name} C over the model's nrmse", got / whole, "", "<= 1.05", fed)
    note_of = "largest difference over largest torque, same input"
    yield Row(f"{name} C apart from Python", apart, "", "<= 1e-9", note_of)
    trained = condition_for_model(model, [train])
    for form, used in (("URDF", in_pinocchio), ("MJCF", in_mujoco)):
        got = _nrmse(model, samples, [used(model, one) for one in samples])
        floor, evident = floors(model, form, trained, samples)
        before = BEFORE.get((name, form))
        target = "" if before is None else f"<= {(1.0 - CUT[name]) * before:.4f}"
        simulator = used.__name__.removeprefix("in_")
        was = "" if before is None else f"; version 0.1: {before:.4f}"
        yield Row(f"{name} {form} nrmse", got, "", target, f"in {simulator}, {note}{was}")
        start = "of the format's terms from the start"
        yield Row(
            f"{name} {form} nrmse of a fit of its terms", floor, "", "", f"least squares {start}"
        )
        note_of = f"consistent least squares {start}: {floor:.4f}"
        yield Row(f"{name} {form} over a fit of its terms", got / floor, "", "<= 1.03", note_of)
        note_of, what = f"`taufit.fit` {start}: {evident:.4f}", "over a default fit of its terms"
        yield Row(f"{name} {form} {what}", got / evident, "", "<= 1.03", note_of)


def _nrmse(model, samples, torque) -> float:
    from taufit.validation.score import score

    given = [None] * len(samples) if torque is None else torque
    return float(
        np.mean(
            [score(model, s, predicted=t).mean_nrmse for s, t in zip(samples, given, strict=True)]
        )
    )


class Compiled:
    """The functions of exported C."""

    def __init__(self, model, folder: str) -> None:
        from taufit.export import write_export
        from taufit.export.c import c_name
        from taufit.export.c.friction import memory_entries

        source = Path(folder) / "arm.c"
        write_export(model, "c", source)
        library = Path(folder) / "arm.so"
        command = ["cc", "-std=c99", "-O2", "-shared", "-fPIC", str(source), "-lm", "-o"]
        subprocess.run([*command, str(library)], check=True)
        self.library, self.name = ctypes.CDLL(str(library)), c_name(model)
        entries = model.robot.joints * memory_entries(model)
        self.state = ctypes.create_string_buffer(8 * (entries + 1))

    def run(self, q, v, a, spans, warm=None) -> np.ndarray:
        """`step` over a run, sample by sample."""
        tau, pointer = np.empty_like(q), ctypes.POINTER(ctypes.c_double)
        getattr(self.library, f"{self.name}_start")(self.state)
        step = getattr(self.library, f"{self.name}_step")
        for i, span in enumerate(spans):
            given = [x[i].ctypes.data_as(pointer) for x in (q, v, a)]
            degrees = None if warm is None else warm[i].ctypes.data_as(pointer)
            step(self.state, *given, degrees, ctypes.c_double(span), tau[i].ctypes.data_as(pointer))
        return tau


def in_c(model, recordings, samples):
    """Low-passed torque of compiled C on raw recordings, and how far it is from Python at most."""
    from taufit.workflow.training_data import in_robot_order

    out, apart = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        compiled = Compiled(model, folder)
        for recording, own in zip(recordings, samples, strict=True):
            raw = in_robot_order(model.robot, recording)
            time, q = raw.time, np.ascontiguousarray(raw.position)
            v = np.gradient(q, time, axis=0) if raw.velocity is None else raw.velocity
            v = np.ascontiguousarray(v)
            spans = np.diff(time, prepend=2.0 * time[0] - time[1])
            # A controller knows the samples before, not those after.
            a = np.diff(v, axis=0, prepend=v[:1]) / spans[:, None]
            torque = compiled.run(q, v, a, spans)
            out.append(_low_passed(time, torque, own))
            step = float(np.median(spans))
            want = model.torque(q, v, a, step=step)
            got = compiled.run(q, v, a, np.full(len(q), step))
            apart = max(apart, float(np.abs(got - want).max() / np.abs(want).max()))
    return out, apart


def _low_passed(time, torque, samples) -> np.ndarray:
    """Through the samples' low-pass at the recording's own rate, then on their grid."""
    from taufit.signals.filtering import zero_phase

    rate = 1.0 / float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1], 1.0 / rate)
    smooth = zero_phase(_at(even, time, torque), rate, samples.cutoff_hz)
    return _at(samples.time - samples.time[0] + time[0], even, smooth)


def _at(where, time, values) -> np.ndarray:
    return np.stack([np.interp(where, time, column) for column in values.T], 1)


def _motion(samples):
    """As it was recorded: velocity before the low-pass, its differences."""
    v = samples.friction_velocity
    parts = [np.gradient(v[run], axis=0) * samples.rate_hz for run in samples.run_slices()]
    return samples.position, v, np.concatenate(parts)


def in_pinocchio(model, samples) -> np.ndarray:
    """Recursive Newton-Euler, the URDF's damping and dry friction."""
    import pinocchio

    from taufit.export import to_urdf
    from taufit.signals.filtering import lowpass

    arm = pinocchio.buildModelFromXML(to_urdf(model)[0])
    data = arm.createData()
    q, v, a = _motion(samples)
    torque = np.array([pinocchio.rnea(arm, data, *row) for row in zip(q, v, a, strict=True)])
    torque += arm.damping * v + arm.upperDryFrictionLimit * np.sign(v)
    return lowpass(samples, torque)


def in_mujoco(model, samples) -> np.ndarray:
    """mj_inverse, and what the actuators must be given for it."""
    import mujoco

    from taufit.export import to_mjcf
    from taufit.signals.filtering import lowpass

    arm = mujoco.MjModel.from_xml_string(to_mjcf(model)[0])
    data = mujoco.MjData(arm)
    torque = []
    for q, v, a in zip(*_motion(samples), strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(arm, data)
        torque.append(data.qfrc_inverse - arm.actuator_biasprm[:, 0])
    return lowpass(samples, np.array(torque))


def floors(model, form: str, trained, samples) -> tuple[float, float]:
    """nrmse of fits that had the format's terms alone: least squares, and the default fit."""
    from taufit.estimators import ConsistentSdp
    from taufit.export.format_reduction import MJCF_TERMS, URDF_TERMS
    from taufit.fitting import fit, fit_samples
    from taufit.model.torque_model import TorqueModel

    terms = URDF_TERMS if form == "URDF" else MJCF_TERMS
    structure = TorqueModel(model.robot, terms.friction, terms.rotor_inertia, terms.offset)
    plain = fit_samples(structure, trained, ConsistentSdp())
    evident = fit(structure, trained, select=False)
    out = [_nrmse(structure.with_values(one.values), samples, None) for one in (plain, evident)]
    return out[0], out[1]


def _units() -> Iterator[Row]:
    """Functional mock-up units in FMPy."""
    try:
        import fmpy
        from fmpy.validation import validate_fmu
    except ImportError:
        return
    if shutil.which("cc") is None:
        return
    from taufit.export import write_fmu
    from taufit.sim import Twin
    from taufit.workflow import identify

    robot, train, _ = runs("UR10e")
    model = identify(robot, [train], cutoff_hz=5.0).model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.fmu"
        objections = 0
        for fmi in ("2.0", "3.0"):
            for kind in ("inverse", "forward"):
                write_fmu(model, path, fmi=fmi, kind=kind)
                objections += len(validate_fmu(str(path)))
                note = f"FMI {fmi}, UR10e as fitted, in FMPy {fmpy.__version__}"
                if kind == "inverse":
                    yield Row(f"FMU {fmi} inverse apart from Python", _inverse(path, model, train),
                              "", "<= 1e-9", note)  # fmt: skip
                else:
                    yield Row(f"FMU {fmi} forward apart from the twin", _forward(path, model, Twin),
                              "rad", "<= 1e-6", f"10 s, {note}")  # fmt: skip
    yield Row("FMU objections of FMPy", objections, "", "<= 0", "four units")


def _signals(step: float, groups: dict[str, np.ndarray]) -> np.ndarray:
    names = [(g, j) for g, x in groups.items() for j in range(x.shape[1])]
    out = np.zeros(
        len(next(iter(groups.values()))),
        dtype=[("time", float), *((f"{g}[{j + 1}]", float) for g, j in names)],
    )
    out["time"] = np.arange(len(out)) * step
    for g, j in names:
        out[f"{g}[{j + 1}]"] = groups[g][:, j]
    return out


def _simulated(path: Path, step: float, groups, start, output: str, joints: int) -> np.ndarray:
    """After each step."""
    import fmpy

    inputs = _signals(step, groups)
    names = [f"{output}[{j + 1}]" for j in range(joints)]
    found = fmpy.simulate_fmu(
        str(path), stop_time=len(inputs) * step, step_size=step, output_interval=step,
        input=inputs, start_values=start, output=names,
    )  # fmt: skip
    return np.stack([found[name] for name in names], 1)[1 : len(inputs) + 1]


def _inverse(path: Path, model, recording) -> float:
    raw, count = recording, 1500
    q, v = (np.ascontiguousarray(x[:count]) for x in (raw.position, raw.velocity))
    step = float(np.median(np.diff(raw.time)))
    a = np.gradient(v, step, axis=0)
    groups = {"position": q, "velocity": v, "acceleration": a}
    got = _simulated(path, step, groups, {}, "torque", q.shape[1])
    want = model.torque(q, v, a, step=step)
    return float(np.abs(got - want).max() / np.abs(want).max())


def _forward(path: Path, model, twin_of) -> float:
    """Under the twin's servo, from 0.4 s of standstill on, as the twin begins."""
    from taufit.sim import Controller, random_fourier

    servo = Controller(delay=0.0, friction=0.0)
    twin = twin_of.from_model(model, controller=servo, rate_hz=1000.0)
    run = twin.run(random_fourier(model.robot, seed=1), rest=(0.0, 0.0))
    given, still, joints = run.recording, np.ones((400, 1)), model.robot.joints
    gains = run.truth["controller"]
    values = {
        "position": given.commanded_position[0],
        "presliding": run.truth["presliding"],
        "stiffness": gains["stiffness"],
        "damping": gains["damping"],
        "integral_gain": 2.0 * np.pi * servo.integral_hz * np.array(gains["stiffness"]),
    }
    start = {f"{g}[{j + 1}]": float(x) for g, many in values.items() for j, x in enumerate(many)}
    groups = {
        name: np.concatenate([still * before, rows])
        for name, before, rows in (
            ("torque", given.target_torque[0], given.target_torque),
            ("reference_position", given.commanded_position[0], given.commanded_position),
            ("reference_velocity", np.zeros(joints), given.commanded_velocity),
        )
    }
    got = _simulated(path, 1e-3, groups, start, "position", joints)
    return float(np.abs(got[400 : 399 + len(given)] - run.trace.position[1:]).max())
