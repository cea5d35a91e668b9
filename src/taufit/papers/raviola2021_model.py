"""[Raviola2021]: base parameters, excitation, identification and mounting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from taufit.calibration import move_model
from taufit.core.arrays import Array, Float
from taufit.dynamics import base_parameters, inverse_dynamics
from taufit.estimators import Ols, Wls
from taufit.fitting.fit_samples import fit_samples
from taufit.model import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.papers.exhibit import ComparedValue, Exhibit, outside_row_space, per_joint, row_matrix
from taufit.report.charts import Series, chart
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass
from taufit.signals import Samples
from taufit.validation import score

if TYPE_CHECKING:
    from taufit.papers.raviola2021 import Raviola2021, WarmUpExperiment

# Number of states stacked by the paper for the rank.
_STATE_COUNT = 25


def table_1(experiment: Raviola2021) -> Exhibit:
    """Torque constants; the gear ratio converts them to drive gains."""
    table = experiment.paper["torque_constants_Nm_per_A"]
    entries: list[ComparedValue] = []
    for arm in experiment.arms:
        entries += per_joint(
            f"{arm.name.upper()} torque constant",
            table[arm.name.upper()],
            None,
            "N m/A",
            reason="an input of the experiment; the simulated arms report torque",
        )
    return Exhibit("Table 1", "Torque constants", tuple(entries))


def _random_stack(model: TorqueModel, seed: int = 0) -> Float[Array, "r p"]:
    rng = np.random.default_rng(seed)
    q, v, a = (
        rng.uniform(-1.0, 1.0, (3, _STATE_COUNT, model.robot.joints))
        * np.array([3, 3, 8])[:, None, None]
    )
    return model.regressor(q, v, a).reshape(-1, len(model.names))


def figure_1(experiment: Raviola2021) -> Exhibit:
    """Singular values of the stacked regressor and their energy; counts and printed rows."""
    entries: list[ComparedValue] = []
    curves, energies = [], []
    correct = experiment.paper["base_parameters"]["classification"]["correct"]
    misprint = experiment.paper["base_parameters"]["classification"]["printed"]
    for arm in experiment.arms:
        for mounting, count, key in (("ground", 52, "ground"), ("wall", 54, "wall")):
            robot = arm.preset.twin.robot.with_mounting(mounting)
            model = TorqueModel(robot, arm.structure.friction, rotor_inertia=True, offset=False)
            values = np.linalg.svd(_random_stack(model), compute_uv=False)
            base = base_parameters(model)
            label = f"{arm.name.upper()} on the {mounting}"
            entries.append(ComparedValue(f"base parameters, {label}", count, base.rank, "", 0.0))
            entries.append(
                ComparedValue(
                    f"singular values above rounding, {label}",
                    count,
                    int(np.sum(values > 1e-10 * values[0])),
                    "",
                    0.0,
                )
            )
            axis_case = "first_axis_vertical" if mounting == "ground" else "first_axis_not_vertical"
            kinds = ("individually_identifiable", "in_combinations", "no_effect")
            counts = _count_classes(base)
            for k, kind in enumerate(kinds):
                entries.append(
                    ComparedValue(
                        f"{kind.replace('_', ' ')}, {label}",
                        misprint[key][k],
                        counts[k],
                        "",
                        reason=f"counted here; the appendix has {correct[axis_case][kind]}: "
                        "erratum",
                    )
                )
            rows = experiment.paper["base_parameters"][f"{arm.name.upper()}_rows"]
            rows = rows if mounting == "wall" else rows[2:]
            printed_rows = row_matrix([row["coefficients"] for row in rows], model.names)
            entries.append(
                ComparedValue(
                    f"printed rows outside the identifiable space, {label}",
                    0.0,
                    outside_row_space(printed_rows, base.mapping),
                    "",
                    1e-9,
                    "errata corrected",
                )
            )
            index = np.arange(1, len(values) + 1, dtype=float)
            curves.append(Series(label, np.log10(np.maximum(values, 1e-18)), x=index, points=True))
            energies.append(Series(label, np.cumsum(values**2) / np.sum(values**2), x=index))
    index_axis = np.arange(1, 79, dtype=float)
    pictures = (
        chart(
            index_axis,
            curves,
            caption="Singular values of 25 stacked states",
            xlabel="number",
            ylabel="log10",
        ),
        chart(index_axis, energies, caption="Cumulative energy", xlabel="number", ylabel="share"),
    )
    return Exhibit(
        "Figure 1", "How many parameters a motion can show", tuple(entries), (), pictures
    )


def _count_classes(base: object) -> tuple[int, int, int]:
    """Number of parameters identifiable alone, in combination, and without effect."""
    mapping = base.mapping  # type: ignore[attr-defined]
    has_effect = np.any(mapping != 0.0, axis=0)
    single_count = sum(int(np.count_nonzero(row) == 1) for row in mapping)
    return single_count, int(has_effect.sum()) - single_count, int((~has_effect).sum())


def figure_2(experiment: Raviola2021) -> Exhibit:
    """Excitation on ground and ceiling: the same robot, mirrored."""
    arm = experiment.ur5
    robot = arm.preset.twin.robot
    models = {
        mounting: TorqueModel(
            robot.with_mounting(mounting), arm.structure.friction, rotor_inertia=True, offset=False
        )
        for mounting in ("ground", "ceiling")
    }
    rng = np.random.default_rng(3)
    q, v, a = rng.uniform(-1.0, 1.0, (3, 40, 6))
    mirror = np.array([-1.0, 1, 1, 1, 1, 1])
    ceiling_regressor = models["ceiling"].regressor(q, v, a)
    ground_regressor = models["ground"].regressor(
        q * mirror + np.array([0, np.pi, 0, 0, 0, 0]), v * mirror, a * mirror
    )
    ratios = []
    for seed in range(30):
        motion = arm.preset.motion(seed, periods=1)
        states = [np.asarray(x) for x in motion.at(np.linspace(0.0, motion.duration, 200))[:3]]
        conditions = [_condition(models[m], states) for m in ("ground", "ceiling")]
        ratios.append(conditions[1] / conditions[0])
    entries = (
        ComparedValue(
            "condition number on the ceiling over that on the ground",
            0.5,
            float(np.median(ratios)),
            "",
            reason="median of 30 random motions; the paper says about half for its own designs. "
            "What "
            "changes is where joint 2 is centred, not the ceiling: see the next line",
        ),
        ComparedValue(
            "ceiling regressor against the ground's at (-q1, q2 + pi)",
            None,
            float(np.abs(np.abs(ceiling_regressor) - np.abs(ground_regressor)).max()),
            "",
            reason="the same but for signs, to rounding",
        ),
    )
    motion = arm.preset.motion(1, periods=1)
    times = np.linspace(0.0, motion.duration, 400)
    position = np.asarray(motion.at(times)[0])
    picture = chart(
        times,
        [Series(f"joint {j + 1}", position[:, j]) for j in range(6)],
        caption="An excitation of the UR5",
        xlabel="time [s]",
        ylabel="rad",
    )
    text = ("Designed motions of any mounting: `taufit design ur5 --mounting ceiling`.",)
    return Exhibit("Figure 2", "Excitation on ground and ceiling", entries, text, (picture,))


def _condition(model: TorqueModel, states: list[Array]) -> float:
    columns = np.asarray(base_parameters(model).columns)
    return float(np.linalg.cond(model.regressor(*states)[:, :, columns].reshape(-1, len(columns))))


def figure_3(experiment: Raviola2021) -> Exhibit:
    """Base parameters of both robots."""
    pictures = []
    for arm in experiment.arms:
        base = base_parameters(arm.weighted.structure)
        values = base.mapping @ np.asarray(arm.weighted.values)
        index = np.arange(1, len(values) + 1, dtype=float)
        pictures.append(
            chart(
                index,
                [Series("weighted least squares", values, points=True)],
                caption=f"{arm.name.upper()}: base parameters",
                xlabel="number",
                ylabel="kg m^2, kg m, N m, N m s/rad",
            )
        )
    text = ("Only drawn in the paper; of simulated arms here.",)
    return Exhibit("Figure 3", "Base parameters", (), text, tuple(pictures))


def table_2(experiment: Raviola2021) -> Exhibit:
    """Torque limits of the bundled robots."""
    table = experiment.paper["max_joint_torque_Nm"]
    entries: list[ComparedValue] = []
    for arm in experiment.arms:
        limits = arm.preset.twin.robot.limits.torque
        entries += per_joint(
            f"{arm.name.upper()} largest torque",
            table[arm.name.upper()],
            limits,
            "N m",
            within=1e-9,
        )
    return Exhibit("Table 2", "Largest joint torques", tuple(entries))


def figure_4(experiment: Raviola2021) -> Exhibit:
    """Validation motions."""
    pictures = tuple(
        chart(
            arm.validation.time,
            [Series(f"joint {j + 1}", arm.validation.position[:, j]) for j in range(6)],
            caption=f"{arm.name.upper()}: validation motion",
            xlabel="time [s]",
            ylabel="rad",
        )
        for arm in experiment.arms
    )
    return Exhibit("Figure 4", "Validation motions", (), (), pictures)


def _torque_charts(arm: WarmUpExperiment) -> tuple[str, ...]:
    samples = arm.validation
    predicted = predicted_torque(arm.weighted, samples)
    return tuple(
        chart(
            samples.time,
            [Series("measured", samples.torque[:, j]), Series("model", predicted[:, j])],
            caption=f"{arm.name.upper()}, joint {j + 1}",
            xlabel="time [s]",
            ylabel="torque [N m]",
            group=f"{arm.name}-validation",
        )
        for j in range(6)
    )


def figure_5(experiment: Raviola2021) -> Exhibit:
    """Torques of the UR3."""
    return Exhibit(
        "Figure 5", "UR3: torque measured and modelled", (), (), _torque_charts(experiment.arms[0])
    )


def figure_6(experiment: Raviola2021) -> Exhibit:
    """Torques of the UR5."""
    return Exhibit(
        "Figure 6", "UR5: torque measured and modelled", (), (), _torque_charts(experiment.ur5)
    )


def e_n(measured: Array, expected: Array) -> float:
    """Error of the paper: root of the sum of squares, divided by the number of samples."""
    return float(np.linalg.norm(measured - expected)) / len(measured)


def _manufacturer_robot(experiment: Raviola2021, arm: WarmUpExperiment) -> Robot:
    table = experiment.paper["manufacturer"][arm.name.upper()]
    bodies = [
        from_centre_of_mass(mass, np.array(centre), np.zeros((3, 3)))
        for mass, centre in zip(table["mass_kg"], table["com_m"], strict=True)
    ]
    return arm.preset.twin.robot.with_parameters(np.concatenate(bodies))


def table_3(experiment: Raviola2021) -> Exhibit:
    """Errors before and after identification."""
    entries: list[ComparedValue] = []
    table = experiment.paper["normalised_error"]
    for arm in experiment.arms:
        s, key = arm.validation, arm.name.upper()
        moving = s.in_motion
        start = time.process_time()
        fit_samples(arm.structure, arm.training, Ols())
        middle = time.process_time()
        fit_samples(arm.structure, arm.training, Wls())
        cpu_times = (middle - start, time.process_time() - middle)
        nominal_torque = inverse_dynamics(
            _manufacturer_robot(experiment, arm), s.position, s.velocity, s.acceleration
        )
        errors = {"before": e_n(s.torque[moving], nominal_torque[moving])}
        for name, model in (
            ("LS", arm.ordinary),
            ("WLS", arm.weighted),
            ("own", arm.presliding_fit),
        ):
            errors[name] = e_n(s.torque[moving], predicted_torque(model, s)[moving])
        reason = f"simulated; N = {int(moving.sum())} here, not printed there: e_N falls with N"
        entries += [
            ComparedValue(
                f"{key}: e_N {name}",
                table["table3_Nm"][key][name],
                errors[name],
                "N m",
                reason=reason,
            )
            for name in ("before", "LS", "WLS")
        ]
        entries.append(
            ComparedValue(
                f"{key}: e_N with friction that builds up over a displacement",
                None,
                errors["own"],
                "N m",
                reason="taufit's own friction on the same samples",
            )
        )
        reduction = 100.0 * (1.0 - errors["LS"] / errors["before"])
        entries.append(
            ComparedValue(
                f"{key}: less error by identification",
                table["reduction_percent"]["computed"][key],
                reduction,
                "%",
                12.0,
                "'about 90 %' is printed; 87.3 and 87.4 follow from Table 3",
            )
        )
        printed_times = experiment.paper["least_squares"]["stated_time_s"]
        entries.append(
            ComparedValue(
                f"{key}: time of WLS over that of LS",
                printed_times["WLS"] / printed_times["LS"],
                cpu_times[1] / max(cpu_times[0], 1e-9),
                "",
                reason="a dense weight matrix there, rows scaled here; same result",
            )
        )
    return Exhibit("Table 3", "Errors before and after identification", tuple(entries))


def _ground_and_ceiling(experiment: Raviola2021) -> tuple[Samples, Samples]:
    return experiment.ur5.samples(7), experiment.ur5.samples(7, mounting="ceiling")


def table_8(experiment: Raviola2021) -> Exhibit:
    """Errors of a ground model moved to the ceiling, and of one that was not."""
    ground, ceiling = _ground_and_ceiling(experiment)
    model = experiment.ur5.presliding_fit
    ground_error = score(model, ground).e_n
    moved_error = score(move_model(model, "ceiling").model, ceiling).e_n
    unmoved_error = score(model, ceiling).e_n
    table = experiment.paper["normalised_error"]["table8_URSim_Nm"]
    reason = "simulated in both; their simulator has neither friction nor noise"
    return Exhibit(
        "Table 8",
        "Errors on ground and ceiling",
        (
            ComparedValue("e_N on the ground", table["ground"], ground_error, "N m", reason=reason),
            ComparedValue(
                "e_N on the ceiling, model moved",
                table["ceiling"],
                moved_error,
                "N m",
                reason=reason,
            ),
            ComparedValue(
                "e_N on the ceiling, model not moved",
                table["ground_model_on_ceiling_data"],
                unmoved_error,
                "N m",
                reason=reason,
            ),
            ComparedValue(
                "ceiling over ground",
                table["ceiling"] / table["ground"],
                moved_error / ground_error,
                "",
                0.5,
                "the moved model is as good as on the ground",
            ),
        ),
    )


def figure_9(experiment: Raviola2021) -> Exhibit:
    """Torques on the ceiling by the moved and by the ground model."""
    _, ceiling = _ground_and_ceiling(experiment)
    model = experiment.ur5.presliding_fit
    moved_torque = predicted_torque(move_model(model, "ceiling").model, ceiling)
    unmoved_torque = predicted_torque(model, ceiling)
    pictures = tuple(
        chart(
            ceiling.time,
            [
                Series("measured on the ceiling", ceiling.torque[:, j]),
                Series("model moved", moved_torque[:, j]),
                Series("model of the ground", unmoved_torque[:, j], dash=(5, 4)),
            ],
            caption=f"UR5, joint {j + 1}",
            xlabel="time [s]",
            ylabel="torque [N m]",
            group="ceiling",
        )
        for j in range(6)
    )
    return Exhibit("Figure 9", "Torque on the ceiling", (), (), pictures)
