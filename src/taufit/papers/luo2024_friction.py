"""[Luo2024]: friction over speed and load, from pairs of strokes (Figures 5 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from taufit.calibration import FrictionPairs, fit_friction
from taufit.calibration.friction_test import FrictionFit
from taufit.papers.exhibit import ComparedValue, Exhibit
from taufit.report.charts import Series, chart
from taufit.terms import TermInput, friction_model
from taufit.terms.friction import Friction

if TYPE_CHECKING:
    from taufit.papers.luo2024 import Luo2024

_NOISE, _PAIRS = 0.03, 20
# Coefficients of a joint with friction as in the paper: viscous 1 to 3, Coulomb, static, load,
# static load; then the widths in speed and that of load over speed.
_TERMS = np.array([0.4, 0.05, 0.02, 0.45, 0.7, 0.015, 0.2])
_SHAPE = np.array([0.03, 0.05, 0.004])
# Load torque per kilogram of payload at the reach of the joint [N m/kg].
_LEVER = 6.0
# Compared models: that of the paper first, then simpler ones of the literature.
_MODELS: tuple[tuple[str, Friction], ...] = (
    ("Stribeck with load, eq. (8)", friction_model("stribeck_load")),
    ("Stribeck", friction_model("stribeck")),
    ("polynomial", friction_model("polynomial")),
    ("Coulomb and viscous with load", friction_model("linear_load")),
    ("Coulomb and viscous", friction_model("linear")),
)


def strokes(experiment: Luo2024, payload: float, seed: int) -> FrictionPairs:
    """Pairs of strokes at the paper's speeds: friction and load torque."""
    rng = np.random.default_rng(seed)
    speeds = np.radians(experiment.paper["friction"]["speeds_deg_s"])
    velocity = np.repeat(speeds, _PAIRS)
    load = rng.uniform(0.2, 1.0, velocity.shape) * (4.0 + _LEVER * payload)
    torque = (
        friction_model("stribeck_load").columns(TermInput(velocity, load=load), _SHAPE) @ _TERMS
    )
    return FrictionPairs(velocity, torque + _NOISE * rng.normal(size=torque.shape), load)


def fits(experiment: Luo2024) -> dict[str, FrictionFit]:
    """Fits of every model to the strokes with the paper's payload."""
    pairs = strokes(experiment, experiment.paper["friction"]["payload_kg"], 1)
    return {name: fit_friction(pairs, model) for name, model in _MODELS}


def figure_5(experiment: Luo2024) -> Exhibit:
    """Friction against speed and load."""
    fit = fits(experiment)["Stribeck with load, eq. (8)"]
    grid = np.linspace(0.002, float(np.radians(30)), 200)
    loads = (2.0, 8.0, 14.0, 20.0)
    picture = chart(
        grid,
        [
            Series(f"load {load:g} N m", fit.torque(grid, np.full_like(grid, load)))
            for load in loads
        ],
        caption="Friction of one joint against speed, at four loads",
        xlabel="speed [rad/s]",
        ylabel="friction [N m]",
        tall=True,
    )
    printed_values = experiment.paper["friction"]
    entries = (
        ComparedValue(
            "rms of the fit, median joint",
            float(np.median(printed_values["fit_rms_Nm"])),
            fit.rms,
            "N m",
            reason=f"noise of {_NOISE} N m was simulated; strokes of the real arm are averaged",
        ),
        ComparedValue(
            "correlation, median joint",
            float(np.median(printed_values["fit_correlation"])),
            fit.correlation,
            "",
            0.05,
        ),
    )
    text = (
        "`taufit design panda --kind friction-test` plans strokes, `taufit friction` fits them. "
        + (f"Terms without support here: {', '.join(fit.dropped)}." if fit.dropped else ""),
    )
    return Exhibit("Figure 5", "Friction over speed and load", entries, text, (picture,))


def figure_7(experiment: Luo2024) -> Exhibit:
    """Errors of friction models at other payloads."""
    entries: list[ComparedValue] = []
    payloads = experiment.paper["friction"]["verification_payloads_kg"]
    model_fits = fits(experiment)
    table = np.zeros((len(model_fits), len(payloads)))
    for column, payload in enumerate(payloads):
        pairs = strokes(experiment, payload, 10 + column)
        for row, (name, fit) in enumerate(model_fits.items()):
            residual = pairs.torque - fit.torque(pairs.velocity, pairs.load)
            table[row, column] = float(np.sqrt(np.mean(residual**2)))
            entries.append(
                ComparedValue(
                    f"rms at {payload:g} kg, {name}",
                    None,
                    table[row, column],
                    "N m",
                    reason="only drawn in the paper",
                )
            )
    entries.append(
        ComparedValue(
            "payloads at which eq. (8) is best",
            3.0,
            float(np.sum(table.argmin(axis=0) == 0)),
            "",
            0.0,
        )
    )
    picture = chart(
        np.array(payloads),
        [Series(name, table[k]) for k, name in enumerate(model_fits)],
        caption="Error of friction models at payloads they were not fitted to",
        xlabel="payload [kg]",
        ylabel="rms [N m]",
    )
    return Exhibit("Figure 7", "Friction models at other payloads", tuple(entries), (), (picture,))
