"""[Xu2024]: robot, motion, offline identification (Tables II to VI, Figures 1, 2, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import base_parameters, forward_kinematics
from taufit.model import predicted_torque
from taufit.papers.exhibit import Entry, Exhibit, outside_row_space, per_joint
from taufit.report.charts import Series, chart
from taufit.robot import from_dh, read_robot

if TYPE_CHECKING:
    from taufit.papers.xu2024 import Xu2024

_SIMULATED = "simulated arm: its noise was chosen so that a power-law fit leaves this much"


def figure_1(own: Xu2024) -> Exhibit:
    """Acceleration from measured velocity is far noisier than the commanded one."""
    record = own.empty.recording
    rows = slice(0, 1250)
    time = np.asarray(record.time)[rows]
    commanded = np.asarray(record.commanded_acceleration)[rows]
    actual = np.gradient(np.asarray(record.velocity)[rows], time, axis=0)
    noise = np.std(actual - commanded, axis=0)
    entries = tuple(
        Entry(
            f"noise of differentiated velocity, joint {j + 1}",
            None,
            float(noise[j]),
            "rad/s^2",
            why="only drawn in the paper; the reason why commanded motion goes into the recursion",
        )
        for j in range(6)
    )
    pictures = tuple(
        chart(
            time,
            [
                Series("velocity differentiated", actual[:, j]),
                Series("commanded", commanded[:, j]),
            ],
            caption=f"Acceleration of joint {j + 1}",
            xlabel="time [s]",
            ylabel="rad/s^2",
            group="xu-acceleration",
        )
        for j in (1, 2)
    )
    return Exhibit("Figure 1", "Measured and commanded acceleration", entries, (), pictures)


def figure_2(own: Xu2024) -> Exhibit:
    """Torque measured and predicted by the offline model."""
    samples = own.empty_samples
    torque = predicted_torque(own.model, samples)
    rows = slice(0, 1250)
    pictures = tuple(
        chart(
            samples.time[rows],
            [
                Series("measured", samples.torque[rows, j]),
                Series("predicted", torque[rows, j]),
            ],
            caption=f"Joint {j + 1}",
            xlabel="time [s]",
            ylabel="torque [N m]",
            group="xu-torque",
        )
        for j in range(6)
    )
    return Exhibit("Figure 2", "Torque predicted by the identified model", (), (), pictures)


def _residual(own: Xu2024) -> Float[Array, " j"]:
    samples = own.empty_samples
    left = samples.torque - predicted_torque(own.model, samples)
    return np.sqrt(np.mean(left[samples.in_motion] ** 2, axis=0))


def table_2(own: Xu2024) -> Exhibit:
    """Root mean square error of the predicted torque."""
    stated = own.paper["torque_rmse_Nm"]["values"]
    return Exhibit(
        "Table II",
        "Root mean square error of torque, power-law friction",
        per_joint(
            "error", stated, _residual(own), "N m", within=[0.2 * x for x in stated], why=_SIMULATED
        ),
    )


def table_3(own: Xu2024) -> Exhibit:
    """Bundled kinematics compared with the printed table."""
    rows = np.array(own.paper["kinematics"]["rows"])
    # The printed angles are those of the drawn pose.
    rows[:, 0] = 0.0
    drawn = from_dh(rows, convention="modified", name="printed")
    pose = np.random.default_rng(2).uniform(-2.0, 2.0, (50, 6))
    here, there = (forward_kinematics(arm, pose)[:, -1] for arm in (read_robot("ur10"), drawn))
    return Exhibit(
        "Table III",
        "Modified Denavit-Hartenberg parameters",
        (
            Entry(
                "last frame, bundled arm against the printed table",
                0.0,
                float(np.abs(here - there).max()),
                "m",
                1e-6,
                "largest difference over 50 poses; lengths are printed to six digits",
            ),
        ),
    )


def table_4(own: Xu2024) -> Exhibit:
    """Excitation: end conditions, amplitudes, condition number."""
    motion = own.preset.motion(periods=1)
    table = own.paper["trajectory"]
    time = np.linspace(0.0, motion.duration, 1251)
    q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
    start = np.array(table["q0_rad"])
    sizes = table["sum_amplitude_bounds"]
    harmonics = np.arange(1, 6)
    sums = np.hypot(np.array(table["a"]), np.array(table["b"]))
    speeds, rises = sums.sum(axis=1), (sums * harmonics).sum(axis=1) * 2 * np.pi * 0.1
    whole = own.model.structure.regressor(q, v, a)
    columns = np.asarray(base_parameters(own.model.structure).columns)
    stacked = whole[:, :, columns].reshape(-1, len(columns))
    scaled = stacked / np.linalg.norm(stacked, axis=0)
    weighted = (
        whole[:, :, columns] / np.array(own.paper["torque_rmse_Nm"]["values"])[:, None]
    ).reshape(-1, len(columns))
    entries = (
        Entry("period", table["period_s"], motion.duration, "s", 1e-9),
        Entry(
            "start off the stated pose",
            0.0,
            float(np.abs(q[0] - start).max()),
            "rad",
            5e-4,
            "coefficients are printed to four digits",
        ),
        Entry("speed at the start", 0.0, float(np.abs(v[0]).max()), "rad/s", 5e-4),
        Entry("acceleration at the start", 0.0, float(np.abs(a[0]).max()), "rad/s^2", 5e-4),
        *per_joint(
            "sum of speed amplitudes", sizes["velocity_rad_s"], speeds, "rad/s", within=2e-3
        ),
        *per_joint(
            "sum of acceleration amplitudes",
            sizes["acceleration_rad_s2"],
            rises,
            "rad/s^2",
            within=2e-3,
        ),
        Entry(
            "condition number",
            table["stated_condition_number"],
            float(np.linalg.cond(stacked)),
            "",
            why="the paper weights the rows with a noise covariance it does not print; unweighted "
            f"here; weighted by Table II {np.linalg.cond(weighted):.0f}, columns scaled "
            f"{np.linalg.cond(scaled):.1f}",
        ),
    )
    return Exhibit("Table IV", "Coefficients of the excitation", entries)


def figure_4(own: Xu2024) -> Exhibit:
    """Excitation trajectory."""
    motion = own.preset.motion(periods=1)
    time = np.linspace(0.0, motion.duration, 501)
    q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
    pictures = tuple(
        chart(
            time,
            [Series(f"joint {j + 1}", values[:, j]) for j in range(6)],
            caption=name,
            xlabel="time [s]",
            ylabel=unit,
            group="xu-motion",
        )
        for name, values, unit in (
            ("Position", q, "rad"),
            ("Velocity", v, "rad/s"),
            ("Acceleration", a, "rad/s^2"),
        )
    )
    return Exhibit("Figure 4", "The excitation", (), (), pictures)


def table_5(own: Xu2024) -> Exhibit:
    """Drive gains: given to the simulated arm, not measured."""
    stated = own.paper["joint_drive_gains_Nm_per_A"]["K"]
    return Exhibit(
        "Table V",
        "Drive gains",
        per_joint(
            "gain",
            stated,
            None,
            "N m/A",
            why="an input of the experiment; `taufit gains` finds such gains from a recording "
            "with a known mass",
        ),
    )


def table_6(own: Xu2024) -> Exhibit:
    """The 58 base parameters."""
    base = base_parameters(own.model.structure)
    rows = own.rows
    ours = rows @ np.asarray(own.model.values)
    table = own.paper["base_parameters"]
    entries = [
        Entry("standard parameters", 84, len(own.model.names), "", 0.0),
        Entry("base parameters", table["count"], base.rank, "", 0.0),
        Entry("rank of the printed rows", 58, int(np.linalg.matrix_rank(rows)), "", 0.0),
        Entry(
            "printed rows outside the identifiable space",
            0.0,
            outside_row_space(rows, base.mapping),
            "",
            1e-6,
            "with pi_31 read as Ixy6; as printed (Iyy6) it is 0.35",
        ),
    ]
    why = (
        "the printed set is no possible arm, so the simulated one is a possible arm near it; "
        "identified here from its recording"
    )
    entries += [
        Entry(f"pi_{row['index']}", row["value"], float(value), "", why=why)
        for row, value in zip(table["rows"], ours, strict=True)
    ]
    stated = own.paper["alpha"]["without_payload"]
    entries += per_joint(
        "exponent alpha", stated, own.model.joint_shape[:, 0], "", why="joint by joint from the fit"
    )
    return Exhibit("Table VI", "Base parameters and exponents identified offline", tuple(entries))
