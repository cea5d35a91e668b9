"""[Xu2024]: robot, motion, offline identification (Tables II to VI, Figures 1, 2, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.calibration.gains import gains_from_mass
from taufit.core.arrays import Array, Float
from taufit.dynamics import base_parameters, forward_kinematics
from taufit.excitation import design
from taufit.model import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.papers.exhibit import (
    GIVEN,
    Exhibit,
    compare_columns,
    compare_joints,
    compare_value,
    outside_row_space,
)
from taufit.report.charts import Series, chart
from taufit.robot import from_dh
from taufit.signals import condition
from taufit.terms import friction_model

if TYPE_CHECKING:
    from taufit.papers.xu2024 import Xu2024

# Cut-off just below half the sampling rate: measured torque as it is [Hz].
_NO_CUTOFF_HZ = 62.0
_SIMULATED_REASON = "simulated arm: its noise was chosen so that a power-law fit leaves this much"


def figure_1(experiment: Xu2024) -> Exhibit:
    """Acceleration from measured velocity is far noisier than the commanded one."""
    record = experiment.empty.recording
    rows = slice(0, 1250)
    time = np.asarray(record.time)[rows]
    commanded = np.asarray(record.commanded_acceleration)[rows]
    actual = np.gradient(np.asarray(record.velocity)[rows], time, axis=0)
    noise = np.std(actual - commanded, axis=0)
    entries = (
        compare_joints(
            "noise of differentiated velocity",
            None,
            noise,
            "rad/s^2",
            reason="only drawn in the paper; the reason why commanded motion goes into the "
            "recursion",
        ),
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
            ylabel="acceleration [rad/s²]",
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
    """Rms of measured less predicted torque, before the low-pass on the measured torque."""
    samples = experiment.empty_samples
    measured = condition([experiment.empty.recording], cutoff_hz=_NO_CUTOFF_HZ).torque
    residual = measured - predicted_torque(experiment.model, samples)
    return np.sqrt(np.mean(residual[samples.keep.all(axis=1)] ** 2, axis=0))


def table_2(experiment: Xu2024) -> Exhibit:
    """Root mean square error of the predicted torque."""
    printed_values = experiment.paper["torque_rmse_Nm"]["values"]
    return Exhibit(
        "Table II",
        "Root mean square error of torque, power-law friction",
        (
            compare_joints(
                "error",
                printed_values,
                _residual(experiment),
                "N m",
                within=[0.2 * x for x in printed_values],
                reason=_SIMULATED_REASON,
                kind=GIVEN,
            ),
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
        forward_kinematics(arm, pose)[:, -1] for arm in (experiment.robot, printed_robot)
    )
    return Exhibit(
        "Table III",
        "Modified Denavit-Hartenberg parameters",
        (
            compare_value(
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
    motion = experiment.motion(periods=1)
    table = experiment.paper["trajectory"]
    time = np.linspace(0.0, motion.duration, 1251)
    q, v, a = (np.asarray(x) for x in motion.at(time)[:3])
    start = np.array(table["q0_rad"])
    regressor = experiment.model.structure.regressor(q, v, a)
    columns = np.asarray(base_parameters(experiment.model.structure).columns)
    stacked = regressor[:, :, columns].reshape(-1, len(columns))
    scaled = stacked / np.linalg.norm(stacked, axis=0)
    weighted = (
        regressor[:, :, columns] / np.array(experiment.paper["torque_rmse_Nm"]["values"])[:, None]
    ).reshape(-1, len(columns))
    entries = (
        compare_value(
            "period",
            table["period_s"],
            motion.duration,
            "s",
            1e-9,
            "from the printed coefficients",
            GIVEN,
        ),
        compare_value(
            "start off the stated pose",
            0.0,
            float(np.abs(q[0] - start).max()),
            "rad",
            5e-4,
            "coefficients are printed to four digits",
        ),
        compare_value("speed at the start", 0.0, float(np.abs(v[0]).max()), "rad/s", 5e-4),
        compare_value("acceleration at the start", 0.0, float(np.abs(a[0]).max()), "rad/s^2", 5e-4),
        compare_value(
            "condition number",
            table["stated_condition_number"],
            float(np.linalg.cond(stacked)),
            "",
            reason="the paper weights the rows with a noise covariance it does not print; "
            "unweighted "
            f"here; weighted by Table II {np.linalg.cond(weighted):.0f}, columns scaled "
            f"{np.linalg.cond(scaled):.1f}",
        ),
        compare_value(
            "condition number of a motion designed by eq. (18)",
            table["stated_condition_number"],
            [_condition_of_design(experiment, seed) for seed in range(3)],
            reason="`taufit design ur10 --criterion weighted_blocks --friction power_law "
            "--rotor-inertia -o motion.json`, three seeds; unweighted rows",
        ),
    )
    return Exhibit("Table IV", "Coefficients of the excitation", entries)


def _condition_of_design(experiment: Xu2024, seed: int) -> float:
    """Condition number of a motion designed by the criterion of eq. (18)."""
    return design(
        experiment.robot,
        model=TorqueModel(experiment.robot, friction_model("power_law")),
        criterion="weighted_blocks",
        iterations=150,
        seed=seed + 100 * experiment.seed,
    ).condition_number


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
            ("Position", q, "position [rad]"),
            ("Velocity", v, "velocity [rad/s]"),
            ("Acceleration", a, "acceleration [rad/s²]"),
        )
    )
    return Exhibit("Figure 4", "The excitation", (), (), pictures)


def table_5(experiment: Xu2024) -> Exhibit:
    """Drive gains found from runs with and without the known payload."""
    gains = gains_from_mass(
        experiment.twin.robot,
        [experiment.empty.recording],
        [experiment.loaded.recording],
        float(experiment.payload.parameters[0]),
    )
    # The concentric payload has no moment about the last axis: that gain does not show.
    values = [*(float(x) for x in gains.value[:-1]), None]
    return Exhibit(
        "Table V",
        "Drive gains",
        (
            compare_joints(
                "gain",
                experiment.paper["joint_drive_gains_Nm_per_A"]["K"],
                values,
                "N m/A",
                reason="the simulated arm has the printed gains; found by `taufit gains` from runs "
                "with and without the known mass. Friction that grows with load takes a part of "
                "the small torque of the wrist, and joint 6 carries none",
            ),
        ),
    )


def table_6(experiment: Xu2024) -> Exhibit:
    """The 58 base parameters."""
    base = base_parameters(experiment.model.structure)
    rows = experiment.rows
    computed = rows @ np.asarray(experiment.model.values)
    table = experiment.paper["base_parameters"]
    entries = [
        compare_value("standard parameters", 84, len(experiment.model.names), "", 0.0),
        compare_value("base parameters", table["count"], base.rank, "", 0.0),
        compare_value("rank of the printed rows", 58, int(np.linalg.matrix_rank(rows)), "", 0.0),
        compare_value(
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
    rows_of_table = table["rows"]
    for first in range(0, len(rows_of_table), 6):
        part = rows_of_table[first : first + 6]
        entries.append(
            compare_columns(
                "value",
                [f"pi_{row['index']}" for row in part],
                [row["value"] for row in part],
                computed[first : first + 6],
                "SI",
                reason=reason,
            )
        )
    entries.append(
        compare_joints(
            "exponent alpha",
            experiment.paper["alpha"]["without_payload"],
            experiment.model.joint_shape[:, 0],
            reason="joint by joint from the fit",
        )
    )
    return Exhibit("Table VI", "Base parameters and exponents identified offline", tuple(entries))
