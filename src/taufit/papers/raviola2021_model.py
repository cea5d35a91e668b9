"""[Raviola2021]: base parameters, excitation, identification and mounting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from taufit.calibration import move_model
from taufit.core.arrays import Array, Float
from taufit.dynamics import base_parameters, inverse_dynamics
from taufit.estimators import Ols, Wls
from taufit.excitation import design
from taufit.fitting import fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.model import predicted_torque
from taufit.model.torque_model import TorqueModel
from taufit.papers.exhibit import (
    GIVEN,
    ComparedRow,
    Exhibit,
    compare_columns,
    compare_joints,
    compare_order,
    compare_value,
    outside_row_space,
    row_matrix,
)
from taufit.report.charts import Series, chart
from taufit.robot import Robot
from taufit.robot.inertia import from_centre_of_mass
from taufit.signals import Samples, condition
from taufit.validation import score

if TYPE_CHECKING:
    from taufit.papers.raviola2021 import Raviola2021, WarmUpExperiment

GEAR_RATIO = 101.0
# Number of states stacked by the paper for the rank.
_STATE_COUNT = 25


def table_1(experiment: Raviola2021) -> Exhibit:
    """Torque constants; times the gear ratio they are the drive gains of the recordings."""
    table = experiment.paper["torque_constants_Nm_per_A"]
    rows = []
    for arm in experiment.arms:
        run = arm.run(1, 1, "ground")
        rows.append(
            compare_joints(
                f"{arm.name.upper()} torque constant",
                table[arm.name.upper()],
                np.asarray(run.recording.gain) / GEAR_RATIO,
                "N m/A",
                within=1e-9,
                reason=f"given to the simulated arms: gain of their recordings [N m/A] over the "
                f"gear ratio {GEAR_RATIO:g}",
                kind=GIVEN,
            )
        )
    return Exhibit("Table 1", "Torque constants", tuple(rows))


def _random_stack(model: TorqueModel, seed: int = 0) -> Float[Array, "r p"]:
    rng = np.random.default_rng(seed)
    q, v, a = (
        rng.uniform(-1.0, 1.0, (3, _STATE_COUNT, model.robot.joints))
        * np.array([3, 3, 8])[:, None, None]
    )
    return model.regressor(q, v, a).reshape(-1, len(model.names))


def figure_1(experiment: Raviola2021) -> Exhibit:
    """Singular values of the stacked regressor and their energy; counts and printed rows."""
    entries: list[ComparedRow] = []
    curves, energies = [], []
    correct = experiment.paper["base_parameters"]["classification"]["correct"]
    misprint = experiment.paper["base_parameters"]["classification"]["printed"]
    for arm in experiment.arms:
        for mounting, count, key in (("ground", 52, "ground"), ("wall", 54, "wall")):
            robot = experiment.robot(arm).with_mounting(mounting)
            model = TorqueModel(robot, arm.structure.friction, rotor_inertia=True, offset=False)
            values = np.linalg.svd(_random_stack(model), compute_uv=False)
            base = base_parameters(model)
            label = f"{arm.name.upper()} on the {mounting}"
            entries.append(compare_value(f"base parameters, {label}", count, base.rank, "", 0.0))
            entries.append(
                compare_value(
                    f"singular values above rounding, {label}",
                    count,
                    int(np.sum(values > 1e-10 * values[0])),
                    "",
                    0.0,
                )
            )
            axis_case = "first_axis_vertical" if mounting == "ground" else "first_axis_not_vertical"
            kinds = ("individually_identifiable", "in_combinations", "no_effect")
            appendix = [correct[axis_case][kind] for kind in kinds]
            for kind, in_text, in_appendix, counted in zip(
                kinds, misprint[key], appendix, _count_classes(base), strict=True
            ):
                is_erratum = in_text != in_appendix
                entries.append(
                    compare_value(
                        f"{kind.replace('_', ' ')}, {label}",
                        in_appendix,
                        counted,
                        "",
                        0.0,
                        f"by the printed rows of the appendix; {in_text} in the text: erratum"
                        if is_erratum
                        else "",
                    )
                )
            rows = experiment.paper["base_parameters"][f"{arm.name.upper()}_rows"]
            rows = rows if mounting == "wall" else rows[2:]
            printed_rows = row_matrix([row["coefficients"] for row in rows], model.names)
            entries.append(
                compare_value(
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
            xlabel="number [-]",
            ylabel="log10 [-]",
        ),
        chart(
            index_axis,
            energies,
            caption="Cumulative energy",
            xlabel="number [-]",
            ylabel="share [-]",
        ),
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
    designed = _design_ratios(models, experiment.repetitions)
    entries = (
        compare_value(
            "condition number on the ceiling over that on the ground, designs",
            0.5,
            designed,
            reason=f"designed anew for each mounting, same start pose, {len(designed)} seeds; the "
            "half of the paper is not found",
        ),
        compare_value(
            "condition number on the ceiling over that on the ground, random motions",
            0.5,
            float(np.median(ratios)),
            reason="median of 30 random motions. What changes is where joint 2 is centred, not the "
            "ceiling: see the next line",
        ),
        compare_value(
            "ceiling regressor against the ground's at (-q1, q2 + pi)",
            None,
            float(np.abs(np.abs(ceiling_regressor) - np.abs(ground_regressor)).max()),
            reason="not in the paper: the same but for signs, to rounding",
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
        ylabel="position [rad]",
    )
    text = (
        "Designed motions of any mounting: `taufit design ur5 --mounting ceiling -o motion.json`.",
    )
    return Exhibit("Figure 2", "Excitation on ground and ceiling", entries, text, (picture,))


def _design_ratios(models: dict[str, TorqueModel], count: int) -> list[float]:
    """Condition number of designs on the ceiling over that of designs on the ground."""
    pose = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])

    def condition_of(mounting: str, seed: int) -> float:
        return design(
            models[mounting].robot,
            model=models[mounting],
            criterion="cond",
            start=pose,
            iterations=200,
            seed=seed,
        ).condition_number

    return [condition_of("ceiling", seed) / condition_of("ground", seed) for seed in range(count)]


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
                xlabel="number [-]",
                ylabel="kg m^2, kg m, N m, N m s/rad",
            )
        )
    text = ("Only drawn in the paper; of simulated arms here.",)
    return Exhibit("Figure 3", "Base parameters", (), text, tuple(pictures))


def table_2(experiment: Raviola2021) -> Exhibit:
    """Torque limits of the bundled robots."""
    table = experiment.paper["max_joint_torque_Nm"]
    entries: list[ComparedRow] = []
    for arm in experiment.arms:
        limits = experiment.robot(arm).limits.torque
        entries.append(
            compare_joints(
                f"{arm.name.upper()} largest torque",
                table[arm.name.upper()],
                limits,
                "N m",
                within=1e-9,
                reason="of the bundled arms, from the manufacturer's data sheet",
            )
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
            ylabel="position [rad]",
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


def _errors(experiment: Raviola2021, arm: WarmUpExperiment, number: int) -> dict[str, float]:
    """e_N on a new motion before and after identification, for one pair of seeds."""
    training = arm.training if number == 0 else arm.samples(1 + 100 * number, periods=3)
    judged = arm.validation if number == 0 else arm.samples(7 + 100 * number)
    moving = judged.in_motion
    state = (judged.position, judged.velocity, judged.acceleration)
    nominal = inverse_dynamics(_manufacturer_robot(experiment, arm), *state)
    errors = {"before": e_n(judged.torque[moving], nominal[moving]), "N": float(moving.sum())}
    presliding = arm.presliding_fit.structure
    for name, structure, estimator in (
        ("LS", arm.structure, Ols()),
        ("WLS", arm.structure, Wls()),
        ("own", presliding, Wls()),
    ):
        start = time.process_time()
        estimate = fit_samples(structure, training, estimator)
        errors[f"{name} time"] = time.process_time() - start
        predicted = predicted_torque(fitted_model(structure, estimate, training), judged)
        errors[name] = e_n(judged.torque[moving], predicted[moving])
    return errors


def table_3(experiment: Raviola2021) -> Exhibit:
    """Errors before and after identification."""
    rows: list[ComparedRow] = []
    table = experiment.paper["normalised_error"]
    printed_times = experiment.paper["least_squares"]["stated_time_s"]
    for arm in experiment.arms:
        key = arm.name.upper()
        trials = [_errors(experiment, arm, number) for number in range(experiment.repetitions)]
        errors = {name: np.array([trial[name] for trial in trials]) for name in trials[0]}
        reason = (
            f"simulated, {len(trials)} seeds; N = {errors['N'][0]:.0f} here, not printed there: "
            "e_N falls with N"
        )
        printed = [table["table3_Nm"][key][name] for name in ("before", "LS", "WLS")]
        names = ("before", "LS", "WLS", "own")
        rows += [
            compare_columns(
                f"{key}: e_N",
                ("before", "LS", "WLS", "taufit's pre-sliding friction"),
                [*printed, None],
                np.stack([errors[name] for name in names], axis=1),
                "N m",
                reason=reason,
            ),
            compare_value(
                f"{key}: less error by identification",
                table["reduction_percent"]["computed"][key],
                100.0 * (1.0 - errors["LS"] / errors["before"]),
                "%",
                12.0,
                "'about 90 %' is printed; 87.3 and 87.4 follow from Table 3",
            ),
            compare_order(f"{key}: error of LS < before", list(errors["LS"] < errors["before"])),
            compare_order(
                f"{key}: error of LS < WLS",
                list(errors["LS"] < errors["WLS"]),
                f"as printed; median ratio {np.median(errors['LS'] / errors['WLS']):.3f}",
            ),
            compare_value(
                f"{key}: time of WLS over that of LS",
                printed_times["WLS"] / printed_times["LS"],
                float(np.median(errors["WLS time"]) / max(np.median(errors["LS time"]), 1e-9)),
                reason="a dense weight matrix there, rows scaled here; same result",
            ),
        ]
    rows.sort(key=lambda row: -len(row.columns))
    return Exhibit("Table 3", "Errors before and after identification", tuple(rows))


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
            compare_value("e_N on the ground", table["ground"], ground_error, "N m", reason=reason),
            compare_value(
                "e_N on the ceiling, model moved",
                table["ceiling"],
                moved_error,
                "N m",
                reason=reason,
            ),
            compare_value(
                "e_N on the ceiling, model not moved",
                table["ground_model_on_ceiling_data"],
                unmoved_error,
                "N m",
                reason=reason,
            ),
            compare_value(
                "ceiling over ground",
                table["ceiling"] / table["ground"],
                moved_error / ground_error,
                "",
                0.5,
                "the moved model is as good as on the ground",
            ),
            *_wall_rows(experiment),
        ),
        (
            "On a wall two more parameters of the first link matter, which no run on the ground "
            "shows. The simulated arm of the wall rows has a first link whose centre is 20 mm off "
            "the nominal one.",
        ),
    )


def _wall_rows(experiment: Raviola2021) -> list[ComparedRow]:
    """Errors on a wall: with the two unknown parameters nominal, and fitted to a run there."""
    arm = experiment.ur5
    robot = arm.preset.twin.robot
    parameters = np.array(robot.parameters)
    first = robot.layout.link(0)
    parameters[first][1:4] += parameters[first][0] * np.array([0.02, 0.0, 0.0])
    moved_link = robot.with_parameters(parameters)
    seed = 8 + 10_000 * arm.seed
    training, judged = (
        condition([arm.run(seed + k, 1, "wall", moved_link).recording], cutoff_hz=10.0)
        for k in (0, 1)
    )
    ground_model = arm.presliding_fit
    moved_model = move_model(ground_model, "wall").model
    structure = TorqueModel(robot.with_mounting("wall"), ground_model.structure.friction)
    fitted = fitted_model(structure, fit_samples(structure, training, Wls()), training)
    reason = "not in the paper; e_N falls with N"
    return [
        compare_value(
            "e_N on a wall, ground model moved: two parameters nominal",
            None,
            score(moved_model, judged).e_n,
            "N m",
            reason=reason,
        ),
        compare_value(
            "e_N on a wall, fitted to a run there",
            None,
            score(fitted, judged).e_n,
            "N m",
            reason=reason,
        ),
    ]


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
