"""[Xu2024]: robot, motion, offline identification (Tables II to VI, Figures 1, 2, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import base_parameters, forward_kinematics
from taufit.model import predicted_torque
from taufit.papers.exhibit import ComparedValue, Exhibit, outside_row_space, per_joint
from taufit.report.charts import Series, chart
from taufit.robot import from_dh, read_robot

if TYPE_CHECKING:
    from taufit.papers.xu2024 import Xu2024

_SIMULATED_REASON = "simulated arm: its noise was chosen so that a power-law fit leaves this much"


def figure_1(experiment: Xu2024) -> Exhibit:
    """Acceleration from measured velocity is far noisier than the commanded one."""
    record = experiment.empty.recording
    rows = slice(0, 1250)
    time = np.asarray(record.time)[rows]
    commanded = np.asarray(record.commanded_acceleration)[rows]
    actual = np.gradient(np.asarray(record.velocity)[rows], time, axis=0)
    noise = np.std(actual - commanded, axis=0)
    entries = tuple(
        ComparedValue(
            f"noise of differentiated velocity, joint {j + 1}",
            None,
            float(noise[j]),
            "rad/s^2",
            reason="only drawn in the paper; the reason why commanded motion goes into the "
            "recursion",
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


def figure_2(experiment: Xu2024) -> Exhibit:
    """Torque measured and predicted by the offline model."""
    samples = experiment.empty_samples
    torque = predicted_torque(experiment.model, samples)
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


def _residual(experiment: Xu2024) -> Float[Array, " j"]:
    samples = experiment.empty_samples
    residual = samples.torque - predicted_torque(experiment.model, samples)
    return np.sqrt(np.mean(residual[samples.in_motion] ** 2, axis=0))


def table_2(experiment: Xu2024) -> Exhibit:
    """Root mean square error of the predicted torque."""
    printed_values = experiment.paper["torque_rmse_Nm"]["values"]
    return Exhibit(
        "Table II",
        "Root mean square error of torque, power-law friction",
        per_joint(
            "error",
            printed_values,
            _residual(experiment),
            "N m",
            within=[0.2 * x for x in printed_values],
            reason=_SIMULATED_REASON,
        ),
    )


def table_3(experiment: Xu2024) -> Exhibit:
    """Bundled kinematics compared with the printed table."""
    rows = np.array(experiment.paper["kinematics"]["rows"])
    # The printed angles are those of the drawn pose.
    rows[:, 0] = 0.0
    printed_robot = from_dh(rows, convention="modified", name="printed")
    pose = np.random.default_rng(2).uniform(-2.0, 2.0, (50, 6))
    bundled_pose, printed_pose = (
        forward_kinematics(arm, pose)[:, -1] for arm in (read_robot("ur10"), printed_robot)
    )
    return Exhibit(
        "Table III",
        "Modified Denavit-Hartenberg parameters",
        (
            ComparedValue(
                "last frame, bundled arm against the printed table",
                0.0,
                float(np.abs(bundled_pose - printed_pose).max()),
                "m",
                1e-6,
                "largest difference over 50 poses; lengths are printed to six digits",
            ),
        ),
    )


def table_4(experiment: Xu2024) -> Exhibit:
    """Excitation: end conditions, amplitudes, condition number."""
    motion = experiment.preset.motion(periods=1)
    table = experiment.paper["trajectory"]
    time = np.linspace(0.0, motion.duration, 1251)
    q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
    start = np.array(table["q0_rad"])
    printed_sums = table["sum_amplitude_bounds"]
    harmonics = np.arange(1, 6)
    sums = np.hypot(np.array(table["a"]), np.array(table["b"]))
    speed_sums, acceleration_sums = (
        sums.sum(axis=1),
        (sums * harmonics).sum(axis=1) * 2 * np.pi * 0.1,
    )
    regressor = experiment.model.structure.regressor(q, v, a)
    columns = np.asarray(base_parameters(experiment.model.structure).columns)
    stacked = regressor[:, :, columns].reshape(-1, len(columns))
    scaled = stacked / np.linalg.norm(stacked, axis=0)
    weighted = (
        regressor[:, :, columns] / np.array(experiment.paper["torque_rmse_Nm"]["values"])[:, None]
    ).reshape(-1, len(columns))
    entries = (
        ComparedValue("period", table["period_s"], motion.duration, "s", 1e-9),
        ComparedValue(
            "start off the stated pose",
            0.0,
            float(np.abs(q[0] - start).max()),
            "rad",
            5e-4,
            "coefficients are printed to four digits",
        ),
        ComparedValue("speed at the start", 0.0, float(np.abs(v[0]).max()), "rad/s", 5e-4),
        ComparedValue("acceleration at the start", 0.0, float(np.abs(a[0]).max()), "rad/s^2", 5e-4),
        *per_joint(
            "sum of speed amplitudes",
            printed_sums["velocity_rad_s"],
            speed_sums,
            "rad/s",
            within=2e-3,
        ),
        *per_joint(
            "sum of acceleration amplitudes",
            printed_sums["acceleration_rad_s2"],
            acceleration_sums,
            "rad/s^2",
            within=2e-3,
        ),
        ComparedValue(
            "condition number",
            table["stated_condition_number"],
            float(np.linalg.cond(stacked)),
            "",
            reason="the paper weights the rows with a noise covariance it does not print; "
            "unweighted "
            f"here; weighted by Table II {np.linalg.cond(weighted):.0f}, columns scaled "
            f"{np.linalg.cond(scaled):.1f}",
        ),
    )
    return Exhibit("Table IV", "Coefficients of the excitation", entries)


def figure_4(experiment: Xu2024) -> Exhibit:
    """Excitation trajectory."""
    motion = experiment.preset.motion(periods=1)
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


def table_5(experiment: Xu2024) -> Exhibit:
    """Drive gains: given to the simulated arm, not measured."""
    printed_values = experiment.paper["joint_drive_gains_Nm_per_A"]["K"]
    return Exhibit(
        "Table V",
        "Drive gains",
        per_joint(
            "gain",
            printed_values,
            None,
            "N m/A",
            reason="an input of the experiment; `taufit gains` finds such gains from a recording "
            "with a known mass",
        ),
    )


def table_6(experiment: Xu2024) -> Exhibit:
    """The 58 base parameters."""
    base = base_parameters(experiment.model.structure)
    rows = experiment.rows
    computed = rows @ np.asarray(experiment.model.values)
    table = experiment.paper["base_parameters"]
    entries = [
        ComparedValue("standard parameters", 84, len(experiment.model.names), "", 0.0),
        ComparedValue("base parameters", table["count"], base.rank, "", 0.0),
        ComparedValue("rank of the printed rows", 58, int(np.linalg.matrix_rank(rows)), "", 0.0),
        ComparedValue(
            "printed rows outside the identifiable space",
            0.0,
            outside_row_space(rows, base.mapping),
            "",
            1e-6,
            "with pi_31 read as Ixy6; as printed (Iyy6) it is 0.35",
        ),
    ]
    reason = (
        "the printed set is no possible arm, so the simulated one is a possible arm near it; "
        "identified here from its recording"
    )
    entries += [
        ComparedValue(f"pi_{row['index']}", row["value"], float(value), "", reason=reason)
        for row, value in zip(table["rows"], computed, strict=True)
    ]
    printed_values = experiment.paper["alpha"]["without_payload"]
    entries += per_joint(
        "exponent alpha",
        printed_values,
        experiment.model.joint_shape[:, 0],
        "",
        reason="joint by joint from the fit",
    )
    return Exhibit("Table VI", "Base parameters and exponents identified offline", tuple(entries))
