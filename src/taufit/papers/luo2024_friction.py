"""[Luo2024]: friction over speed and load, from friction tests (Figures 5 and 7).

The friction of the simulated robot is a Stribeck curve plus a fraction of the load, behind ripple,
noise and heat; none of the compared models is its form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from taufit.calibration import FrictionPairs
from taufit.calibration.friction_identification import collect_friction_pairs
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation import mounting_plane, scene_for
from taufit.excitation.line_friction_test import friction_test_along_line
from taufit.model import predicted_torque, rigid_torque
from taufit.model.fitted_model import FittedModel
from taufit.papers.exhibit import (
    ComparedRow,
    Exhibit,
    compare_columns,
    compare_joints,
    compare_order,
)
from taufit.report.charts import Series, chart
from taufit.signals import Samples, condition
from taufit.sim import CarriedPayload, Twin

if TYPE_CHECKING:
    from taufit.papers.luo2024 import Luo2024

# Friction per unit of load of the simulated robots: of the preset, and strong.
LOAD_FACTORS = {"weak": 0.004, "strong": 0.03}
# Duration of one friction test [min] and its speeds [deg/s]; the paper starts at 0.1 deg/s.
_MINUTES, _SPEEDS_DEG = 4.0, (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_STARTS = 8


@dataclass(frozen=True, slots=True)
class FrictionForm:
    """Friction model with bounds of its parameters.

    Attributes:
        torque: Friction at speeds v and loads l, of parameters p.
        lower, upper: Bounds of the parameters.
    """

    torque: Callable[[Array, Array, Array], Array]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


def _equation_8(v: Array, load: Array, p: Array) -> Array:
    viscous = p[0] * v + p[1] * v**2 + p[2] * v**3
    level = p[3] * (1.0 - np.exp(-((v / p[4]) ** 2))) + p[5] * np.exp(-((v / p[6]) ** 2))
    return viscous + level + p[7] * np.abs(load) + p[8] * np.exp(-p[9] * np.abs(load) / v)


def _load_on_both_levels(v: Array, load: Array, p: Array) -> Array:
    static = (p[3] + p[4] * np.abs(load)) * np.exp(-((v / p[5]) ** p[6]))
    return p[0] * v + p[1] + p[2] * np.abs(load) + static


def _load_on_level(v: Array, load: Array, p: Array) -> Array:
    return p[0] * v + p[1] + p[2] * np.exp(-((v / p[3]) ** 2)) + p[4] * np.abs(load)


def _load_times_level(v: Array, load: Array, p: Array) -> Array:
    level = p[1] + p[2] * np.exp(-((v / p[3]) ** 2))
    return (1.0 + p[5] * np.abs(load)) * level + p[0] * v ** p[4]


# Refs. 7, 14 and 25 are compared in the paper without their equations: forms of their kind.
FORMS = {
    "eq. (8)": FrictionForm(
        _equation_8,
        (-3, -5, -9, 0, 0.003, 0, 0.003, 0, -1, 1e-5),
        (3, 5, 9, 2, 0.5, 2, 0.5, 0.05, 1, 1),
    ),
    "kind of ref. 7": FrictionForm(
        _load_on_both_levels, (0, 0, 0, -1, -0.05, 0.003, 0.5), (3, 2, 0.05, 1, 0.05, 0.5, 3)
    ),
    "kind of ref. 14": FrictionForm(_load_on_level, (0, 0, -1, 0.003, 0), (3, 2, 1, 0.5, 0.05)),
    "kind of ref. 25": FrictionForm(
        _load_times_level, (0, 0, -1, 0.003, 0.3, 0), (3, 2, 1, 0.5, 1.5, 0.05)
    ),
    "Stribeck without load": FrictionForm(
        lambda v, load, p: p[0] * v + p[1] + p[2] * np.exp(-((v / p[3]) ** 2)),
        (0, 0, -1, 0.003),
        (3, 2, 1, 0.5),
    ),
    "Coulomb and viscous": FrictionForm(lambda v, load, p: p[0] * v + p[1], (-3, 0), (3, 2)),
}


@dataclass(frozen=True, slots=True, eq=False)
class PayloadFrictionTest:
    """Friction tests of one simulated robot at all payloads, and the fitted forms.

    Attributes:
        pairs: Friction pairs by payload [kg] and joint.
        parameters: Fitted parameters by form and joint; fitted to the first payload.
    """

    pairs: Mapping[float, tuple[FrictionPairs, ...]]
    parameters: Mapping[str, tuple[Float[Array, " k"], ...]]

    def rms(self, form: str, payload: float) -> Float[Array, " j"]:
        """Rms difference to the measured friction per joint [N m]."""
        function = FORMS[form].torque
        return np.array(
            [
                np.sqrt(np.mean((p.torque - function(p.velocity, p.load, x)) ** 2))
                for p, x in zip(self.pairs[payload], self.parameters[form], strict=True)
            ]
        )


def fit_form(form: FrictionForm, pairs: FrictionPairs, seed: int = 1) -> Float[Array, " k"]:
    """Nonlinear least squares with all terms, as in the paper, from several starts."""
    rng = np.random.default_rng(seed)
    lower, upper = np.array(form.lower, float), np.array(form.upper, float)
    weight = np.sqrt(np.maximum(pairs.seconds if pairs.seconds is not None else 1.0, 0.05))

    def residual(p: Array) -> Array:
        return weight * (form.torque(pairs.velocity, pairs.load, p) - pairs.torque)

    starts = lower + (upper - lower) * rng.uniform(0.02, 0.4, (_STARTS, len(lower)))
    fits = [least_squares(residual, x, bounds=(lower, upper), max_nfev=200) for x in starts]
    return np.asarray(min(fits, key=lambda fit: float(fit.cost)).x)


def run_payload_test(experiment: Luo2024, load_factor: float, number: int) -> PayloadFrictionTest:
    """Friction tests with the payload of the fit and those of the check."""
    from taufit.papers.luo2024 import CUTOFF_HZ, PAYLOAD_CENTRE, RATE_HZ

    robot, twin = experiment.robot, _twin(experiment, load_factor)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    speeds = np.radians(_SPEEDS_DEG)
    test = friction_test_along_line(robot, robot.limits, scene, minutes=_MINUTES, speeds=speeds)
    settings = experiment.paper["friction"]
    payloads = (settings["payload_kg"], *settings["verification_payloads_kg"])
    pairs = {}
    for k, mass in enumerate(payloads):
        run = twin.run(
            test.motion,
            seed=90 + k + 10 * number + 1000 * experiment.seed,
            rate_hz=RATE_HZ,
            payload=CarriedPayload.lump(mass, PAYLOAD_CENTRE),
        )
        samples = condition([run.recording], cutoff_hz=CUTOFF_HZ)
        pairs[mass] = collect_friction_pairs(robot, [samples]).pairs
    parameters = {
        name: tuple(fit_form(form, joint_pairs) for joint_pairs in pairs[payloads[0]])
        for name, form in FORMS.items()
    }
    return PayloadFrictionTest(pairs, parameters)


def _twin(experiment: Luo2024, load_factor: float) -> Twin:
    twin = experiment.preset.twin
    friction = twin.effects.friction
    assert friction is not None
    effects = replace(twin.effects, friction=replace(friction, load_factor=load_factor))
    return replace(twin, effects=effects)


def figure_5(experiment: Luo2024) -> Exhibit:
    """Friction against speed and load."""
    settings = experiment.paper["friction"]
    mass = settings["payload_kg"]
    grid = np.radians(np.linspace(1.0, 30.0, 200))
    rows: list[ComparedRow] = []
    pictures = []
    for name, tests in experiment.payload_tests.items():
        correlations = [
            [
                np.corrcoef(p.torque, FORMS["eq. (8)"].torque(p.velocity, p.load, x))[0, 1]
                for p, x in zip(test.pairs[mass], test.parameters["eq. (8)"], strict=True)
            ]
            for test in tests
        ]
        twin_name = f"{name} load dependence"
        reason = (
            "measured there; friction tests of the simulated arm here, whose sensors see 40 % of "
            "the friction; median and range of the seeds"
        )
        rms = [test.rms("eq. (8)", mass) for test in tests]
        rows += [
            compare_joints(
                f"rms of the fit, {twin_name}",
                settings["fit_rms_Nm"],
                np.array(rms),
                "N m",
                reason=reason,
            ),
            compare_joints(
                f"correlation, {twin_name}",
                settings["fit_correlation"],
                np.array(correlations),
                reason=reason,
            ),
        ]
        test = tests[0]
        for joint, (p, x) in enumerate(
            zip(test.pairs[mass], test.parameters["eq. (8)"], strict=True)
        ):
            loads = np.quantile(np.abs(p.load), [0.05, 0.5, 0.95])
            curves = [
                Series(
                    f"eq. (8), load {load:.1f} N m",
                    FORMS["eq. (8)"].torque(grid, np.full_like(grid, load), x),
                )
                for load in loads
            ]
            measured = Series("measured", p.torque, x=p.velocity, points=True)
            pictures.append(
                chart(
                    grid,
                    [measured, *curves],
                    caption=f"Joint {joint + 1}, {twin_name}",
                    xlabel="speed [rad/s]",
                    ylabel="friction [N m]",
                )
            )
    text = (
        f"A friction test of {_MINUTES:g} minutes with {mass} kg, all joints at once, on two "
        "simulated arms: friction per unit of load "
        + " and ".join(f"{x:g} ({name})" for name, x in LOAD_FACTORS.items())
        + ". Joint 1 turns about the vertical and carries no gravity. `taufit design panda --kind "
        "friction-test --minutes 20 --free-space -o strokes.json` plans such a test, "
        "`taufit friction` fits it.",
    )
    return Exhibit("Figure 5", "Friction over speed and load", tuple(rows), text, tuple(pictures))


def figure_7(experiment: Luo2024) -> Exhibit:
    """Errors of friction models at other payloads."""
    settings = experiment.paper["friction"]
    fit_mass, masses = settings["payload_kg"], settings["verification_payloads_kg"]
    rows: list[ComparedRow] = []
    pictures, text = [], []
    columns = [*(f"joint {j + 1}" for j in range(7)), "sum"]
    for name, tests in experiment.payload_tests.items():
        # Seeds, payloads, joints and their sum.
        table = {}
        for form in FORMS:
            rms = np.array([[test.rms(form, x) for x in (fit_mass, *masses)] for test in tests])
            table[form] = np.concatenate([rms, rms.sum(axis=2, keepdims=True)], axis=2)
        for k, mass in enumerate((fit_mass, *masses)):
            for form, values in table.items():
                rows.append(
                    compare_columns(
                        f"{form}, {mass:g} kg ({'check' if k else 'fit'}), {name} load dependence",
                        columns,
                        None,
                        values[:, k],
                        "N m",
                        reason="rms of measured less modelled friction, median and range of the "
                        "seeds; only drawn in the paper, where eq. (8) is best",
                    )
                )
        winner_row, summary = _winner(name, table)
        rows.append(winner_row)
        text.append(summary)
        pictures += [
            chart(
                np.array(masses),
                [
                    Series(form, np.median(values[:, 1:, joint], axis=0))
                    for form, values in table.items()
                ],
                caption=f"Joint {joint + 1}, {name} load dependence",
                xlabel="payload [kg]",
                ylabel="rms [N m]",
            )
            for joint in range(7)
        ]
    rows.sort(key=lambda row: len(row.columns))
    rows += _switch_rows(experiment)
    return Exhibit(
        "Figure 7", "Friction models at other payloads", tuple(rows), tuple(text), tuple(pictures)
    )


def _winner(name: str, table: Mapping[str, Float[Array, "s m c"]]) -> tuple[ComparedRow, str]:
    """Whether eq. (8) is best on the payloads of the check, as in print, and who is."""
    fit, check = (
        {form: values[:, part, -1].mean(axis=1) for form, values in table.items()}
        for part in (slice(0, 1), slice(1, None))
    )
    forms = list(table)
    best = [forms[k] for k in np.argmin([check[form] for form in forms], axis=0)]
    wins = {form: best.count(form) for form in forms if form in best}
    winner = max(wins, key=lambda form: wins[form])
    row = compare_order(
        f"eq. (8) is best on other payloads, {name} load dependence",
        [form == "eq. (8)" for form in best],
        "as drawn in the paper; best here: "
        + ", ".join(f"{form} ({count} of {len(best)})" for form, count in wins.items()),
    )
    fit_order = sorted(forms, key=lambda form: float(np.median(fit[form])))
    summary = (
        f"{name.capitalize()} load dependence ({LOAD_FACTORS[name]:g} N m per N m): winner on the "
        f"payloads of the check: {winner}, in {wins[winner]} of {len(best)} seeds, "
        f"{np.median(check[winner]):.3f} N m over seven joints; eq. (8): "
        f"{np.median(check['eq. (8)']):.3f} N m. On the payload of the fit the smallest error has "
        f"{fit_order[0]}."
    )
    return row, summary


def _switch_rows(experiment: Luo2024) -> list[ComparedRow]:
    """Torque with a known payload: eq. (16) with its switch, and models whose load is smooth."""
    from taufit.papers.luo2024 import CUTOFF_HZ, PAYLOAD_CENTRE

    mass = experiment.paper["friction"]["verification_payloads_kg"][1]
    run = experiment.run(23 + 10_000 * experiment.seed, payload=mass)
    samples = condition([run.recording], cutoff_hz=CUTOFF_HZ)
    polynomial, default = experiment.models["eq16"][0], experiment.default_model
    moving = samples.in_motion

    def error(predicted: Array) -> Float[Array, " j"]:
        return np.sqrt(np.mean((samples.torque - predicted)[moving] ** 2, axis=0))

    loaded: FittedModel = polynomial.with_payload(mass, PAYLOAD_CENTRE)
    switched = _with_stroke_friction(experiment, loaded, samples)
    predictions = {
        "eq. (16) with its switch: friction of eq. (8)": switched,
        "eq. (17) without a switch": predicted_torque(loaded, samples),
        "taufit's default fit": predicted_torque(
            default.with_payload(mass, PAYLOAD_CENTRE), samples
        ),
        "taufit's default fit, payload not told": predicted_torque(default, samples),
    }
    columns = [*(f"joint {j + 1}" for j in range(7)), "sum"]
    return [
        compare_columns(
            f"torque with {mass:g} kg, {name}",
            columns,
            None,
            [*error(predicted), float(error(predicted).sum())],
            "N m",
            reason="rms error along a new motion with the payload known; not in the paper",
        )
        for name, predicted in predictions.items()
    ]


def _with_stroke_friction(
    experiment: Luo2024, model: FittedModel, samples: Samples
) -> Float[Array, "n j"]:
    """Torque of the links and the payload with friction of eq. (8) instead of the model's."""
    velocity = samples.velocity
    links = rigid_torque(model, samples)
    offset = np.asarray(model.values)[model.layout.block_slice("offset")]
    friction = np.zeros_like(links)
    test = experiment.payload_tests["weak"][0]
    for j, x in enumerate(test.parameters["eq. (8)"]):
        speed = np.maximum(np.abs(velocity[:, j]), 1e-4)
        friction[:, j] = np.sign(velocity[:, j]) * FORMS["eq. (8)"].torque(speed, links[:, j], x)
    return links + friction + offset
