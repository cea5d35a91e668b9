"""Small pages of every kind, from arms that are computed without a simulator."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "health"))

import worn_arm

import taufit


@cache
def warm_runs():
    """Samples of four runs at four temperatures."""
    return [worn_arm.samples(t, k, path=k) for k, t in enumerate((20.0, 27.0, 33.0, 40.0))]


@cache
def warm_model():
    """Model of these runs, friction with temperature."""
    from taufit.estimators.wls import Wls
    from taufit.fitting import fitted_model
    from taufit.fitting.fit_samples import fit_samples
    from taufit.model import TorqueModel
    from taufit.signals import Samples

    joined = Samples.concatenate(warm_runs())
    truth = worn_arm.truth()
    free = TorqueModel(truth.robot, truth.friction_model)
    return fitted_model(free, fit_samples(free, joined, Wls()), joined)


def temperature() -> str:
    from taufit.model import TorqueModel
    from taufit.report.temperature_page import temperature_page
    from taufit.temperature.runwise_fits import repeat_identification
    from taufit.terms.friction import Linear

    plain = TorqueModel(warm_model().robot, Linear(0.02))
    return temperature_page(warm_model(), repeat_identification(plain, warm_runs()), warm_runs()[0])


def health() -> str:
    from taufit.health import start_history
    from taufit.report.health_page import health_page

    runs = [(f"day {k}", worn_arm.samples(22.0 + k, k)) for k in range(10)]
    history = start_history(warm_model(), runs)
    for k in range(8):
        worn = worn_arm.samples(30.0, 20 + k, wear=(0.0, 0.02 * k, 0.0))
        history = history.with_run(f"later {k}", worn)
    return health_page(history)


def tracking() -> str:
    from taufit.health.tracker import score_tracking, track
    from taufit.model.predict import predicted_torque
    from taufit.report.tracking_page import TrackedRun, tracking_page

    model, samples = warm_model(), worn_arm.samples(30.0, 7, wear=(0.0, 0.3, 0.0))
    predicted = predicted_torque(model, samples)
    course = track(model, samples, predicted=predicted)
    run = TrackedRun("run.parquet", samples, course, score_tracking(samples, predicted, course))
    return tracking_page(model, [run])


def servo() -> str:
    from tests.servo.servo_arms import recording

    from taufit.report.servo_page import servo_page

    runs = [recording(seed, seconds=20.0) for seed in range(3)]
    return servo_page(taufit.identify_servo("so101", runs[:2], holdout=runs[2:], stage="linear"))


def friction() -> str:
    from taufit.calibration.friction_identification import identify_friction
    from taufit.report.friction_page import friction_page

    robot = worn_arm.three_joints()
    result = identify_friction(
        robot, [_strokes(seed) for seed in (0, 1)], friction="linear", beside=("stribeck",)
    )
    return friction_page(robot, result)


def _strokes(seed: int):
    """Joints one after the other to and fro at six speeds."""
    from taufit.model import TorqueModel
    from taufit.signals import Samples
    from taufit.terms.friction import Linear

    rate, parts, pose = 100.0, [], np.array([0.0, -1.2, 0.8])
    for joint in range(3):
        for speed in np.geomspace(0.05, 1.0, 6):
            half = np.arange(-0.3, 0.3, speed / rate)[:400]
            half = half * 0.3 / max(-half[0], half[-1])
            for way in (half, half[::-1]):
                q = np.tile(pose + 0.2 * seed, (len(way), 1))
                q[:, joint] += way
                parts.append(q)
    q = np.concatenate(parts)
    v = np.gradient(q, 1.0 / rate, axis=0)
    robot = worn_arm.three_joints()
    terms = np.array([[6.0, 10.0], [8.0, 14.0], [5.0, 9.0]])
    values = np.concatenate([robot.parameters, np.zeros(3), terms.ravel(), np.zeros(3)])
    torque = TorqueModel(robot, Linear(0.02)).with_values(values).torque(q, v, 0 * q)
    torque += 0.1 * np.random.default_rng(seed).normal(size=torque.shape)
    return Samples.from_arrays(q, v, 0 * q, torque, rate_hz=rate)


def fleet(folder: Path) -> str:
    from taufit.fleet import study_fleet
    from taufit.report.fleet_page import fleet_page

    for k in range(6):
        wear = (0.0, 1.5 if k == 3 else 0.05 * k, 0.0)
        for day in (1, 2):
            name = f"2026-03-0{day}.parquet"
            run = worn_arm.run(30.0, 10 * k + day, wear=wear, path=k, name=name)
            place = folder / f"cell_{k}"
            place.mkdir(parents=True, exist_ok=True)
            taufit.write_recording(run, place / name)
    return fleet_page(study_fleet(worn_arm.three_joints(), str(folder)))


def paper() -> str:
    from taufit.papers.exhibit import (
        Exhibit,
        Paper,
        compare_joints,
        compare_order,
        compare_value,
    )
    from taufit.papers.paper_page import paper_page
    from taufit.report.charts import Series, chart

    time = np.arange(50.0)
    drawn = chart(
        time,
        [Series("ours", np.sin(time))],
        caption="Joint 1: a long caption that a narrow screen has to break into lines",
        xlabel="time [s]",
        ylabel="torque [N m]",
    )
    exhibits = [
        Exhibit(
            "Table I",
            "Masses",
            (
                compare_joints(
                    "mass", (1.0, 2.0), (1.0, 2.5), "kg", within=0.1, reason="a misprint"
                ),
                compare_value("error", 3.0, (2.9, 3.1, 3.2), "%", within=0.5),
                compare_order("first before second", (True, True, False)),
            ),
            ("Explanation.",),
        ),
        Exhibit("Figure 1", "Torque", figures=(drawn,)),
        Exhibit("Figure 2", "Drawing", missing="a drawing"),
    ]
    about = Paper("name", "Title of the paper", "A. Author", "Journal", ("a misprint",), ())
    return paper_page(about, exhibits)


PAGES = {
    "temperature": temperature,
    "health": health,
    "tracking": tracking,
    "servo": servo,
    "friction": friction,
    "paper": paper,
}
