"""Does the twin look like the robot it imitates? One ordinary fit, on real and simulated runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.signal import welch

from benchmarks import Row
from taufit.dynamics import inverse_dynamics
from taufit.estimators import Ols
from taufit.fitting import fit_samples as fit_samples
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, read_recording
from taufit.regression import SampleRows
from taufit.robot import Robot, bundled_robots, read_robot
from taufit.signals import condition
from taufit.sim import Twin, random_fourier, read_preset, typical_rotor
from taufit.sim.replay import motion_of_recording
from taufit.terms.friction import Linear

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "ur10e" / "identification_data"
MAP = ROOT / "examples" / "columns" / "ur10e_csv.yaml"
# The preset was matched to the first six; the last three it has never seen.
MATCHED = (
    "ur-20_02_05-20sec_8harm",
    "ur-20_02_06-20sec_5harm",
    "ur-20_02_10-20sec_7harm",
    "ur-20_02_10-30sec_12harm",
    "ur-20_02_12-40sec_12harm",
    "ur-20_02_19_14harm50sec",
)
UNSEEN = ("ur-20_01_31-unload", "ur-19_12_23_free", "ur-20_02_05-20sec_12harm")
BANDS = ((0.0, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 5.0), (5.0, 10.0), (10.0, 20.0), (20.0, 45.0))


def ordinary_fit(
    robot: Robot, recording: Recording, gain: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """nrmse per joint at 10 Hz, and the residual's amplitude per band and joint [N m/sqrt(Hz)].

    Least squares with Coulomb and viscous friction, offset and rotor inertia; the spectrum is that
    of the unfiltered torque minus the 10 Hz model.
    """
    samples = condition(recording, cutoff_hz=10.0, gains=gain)
    model = TorqueModel(robot, Linear())
    estimate = fit_samples(model, samples, Ols(), require_excitation=False)
    rows = SampleRows(model, samples)
    residual = rows.residuals(estimate.values)
    moving = rows.keep.all(1)
    nrmse = np.sqrt((residual[moving] ** 2).mean(0)) / samples.torque[moving].std(0)
    raw = condition(recording, cutoff_hz=None, gains=gain)
    n = min(len(raw), len(samples))
    span = np.flatnonzero(moving[:n])
    # Rows left out of the fit (a joint standing still) have no residual.
    left = np.where(rows.keep[:n], raw.torque[:n] - (samples.torque - residual)[:n], 0.0)
    f, power = welch(left[span[0] : span[-1]], samples.rate_hz, nperseg=512, axis=0)
    bands = [np.sqrt(power[(f >= low) & (f < high)].mean(0)) for low, high in BANDS]
    return nrmse, np.array(bands)


def clean_difference(name: str) -> float:
    """Largest difference of MuJoCo's torque and ours along a simulated run, over the largest."""
    robot = typical_rotor(read_robot(name))
    trace = Twin(robot).run(random_fourier(robot, seed=1), rate_hz=100).trace
    ours = inverse_dynamics(robot, trace.position, trace.velocity, trace.acceleration)
    return float(np.abs(trace.link_torque - ours).max() / np.abs(ours).max())


def rows() -> Iterator[Row]:
    names = bundled_robots()
    yield Row(
        "all effects off: MuJoCo's torque against ours, worst bundled arm",
        max(clean_difference(name) for name in names),
        "",
        "<= 1e-6",
        f"relative to the largest torque; {len(names)} arms, closed loop",
    )
    if not DATA.is_dir():
        yield Row("the shared recordings are not beside this checkout", 0.0)
        return
    preset = read_preset("ur10e-real")
    robot, gain = read_robot("ur10e"), preset.twin.robot.drives.gain
    for kind, names in (("matched", MATCHED), ("unseen", UNSEEN)):
        errors, spectra = [], []
        for name in names:
            real = read_recording(DATA / f"{name}.csv.gz", column_map=MAP)
            made = preset.twin.run(motion_of_recording(real), seed=1, rest=(0.0, 0.0)).recording
            (mine, my_bands), (other, their_bands) = (
                ordinary_fit(robot, recording, gain) for recording in (made, real)
            )
            errors.append(mine / other)
            spectra.append(my_bands / their_bands)
            worst = float(np.exp(np.abs(np.log(mine / other)).max()))
            yield Row(
                f"nrmse, {name}: worst joint, factor",
                worst,
                "x",
                "<= 1.5",
                f"real {np.round(other, 3)}, simulated {np.round(mine, 3)}",
            )
        factor = np.exp(np.abs(np.log(errors)).max())
        yield Row(f"nrmse, {kind} runs: worst joint of all, factor", float(factor), "x", "<= 1.5")
        ratio = np.exp(np.mean(np.log(spectra), 0))
        for (low, high), band in zip(BANDS, ratio, strict=True):
            yield Row(
                f"residual amplitude {low:g}-{high:g} Hz, {kind} runs: worst joint, factor",
                float(np.exp(np.abs(np.log(band)).max())),
                "x",
                "<= 1.5",
                f"simulated over real, joints 1-6: {np.round(band, 2)}",
            )
