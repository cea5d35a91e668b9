"""[Xu2024]: friction without and with payload (Tables VIII, IX, Figures 7, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from taufit.core.arrays import Array, Float
from taufit.dynamics import inverse_dynamics
from taufit.papers.exhibit import Entry, Exhibit, per_joint
from taufit.payload.stream import stream
from taufit.report.charts import Series, chart
from taufit.sim import SimulatedRun
from taufit.terms import TermInput, friction_model
from taufit.terms.friction import Friction

if TYPE_CHECKING:
    from taufit.papers.xu2024 import Xu2024

# Speed above which a joint counts as moving [rad/s]; below, friction is pre-sliding.
_MOVING = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class FittedCurve:
    """Friction curve fitted to one joint.

    Attributes:
        friction: Friction model.
        shape: Exponent, or empty.
        values: Coefficients, the offset last.
        rmse: RMSE of the fit [N m].
    """

    friction: Friction
    shape: Float[Array, " s"]
    values: Float[Array, " k"]
    rmse: float

    def torque(self, velocity: Float[Array, " n"]) -> Float[Array, " n"]:
        """Friction and offset at a velocity [N m]."""
        return _columns(self.friction, velocity, self.shape) @ self.values


def _columns(friction: Friction, velocity: Array, shape: Array) -> Array:
    own = friction.columns(TermInput(velocity), shape)
    return np.column_stack([own, np.ones(len(velocity))])


def curve(friction: Friction, velocity: Array, torque: Array) -> FittedCurve:
    """Fit a friction model and an offset to the friction torque of one joint.

    The exponent of the power law, if there is one, is searched between 0.02 and 2.
    """

    def fitted(exponent: float | None) -> FittedCurve:
        shape = np.array([] if exponent is None else [exponent])
        columns = _columns(friction, velocity, shape)
        values, *_ = np.linalg.lstsq(columns, torque, rcond=None)
        left = torque - columns @ values
        return FittedCurve(friction, shape, values, float(np.sqrt(np.mean(left**2))))

    if not friction.shapes:
        return fitted(None)
    grid = np.linspace(0.02, 2.0, 45)
    best = int(np.argmin([fitted(x).rmse for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda x: fitted(x).rmse, bounds=(low, high), method="bounded")
    return fitted(float(found.x))


def friction_of(
    own: Xu2024, run: SimulatedRun, loaded: bool
) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
    """Velocity and friction of one mean period: torque minus links, rotors and payload."""
    model = own.model
    source = stream(model, run.recording)
    assert source.commanded is not None
    period = round(own.paper["trajectory"]["period_s"] * own.paper["control_rate_Hz"])
    first = int(np.argmax(np.abs(source.commanded[1]).max(axis=1) > 0.0))
    count = (len(source.time) - first) // period

    def mean(values: Array) -> Array:
        rows = np.asarray(values)[first : first + count * period]
        return np.nanmean(rows.reshape(count, period, -1), axis=0)

    q, v, a = (mean(values) for values in source.commanded)
    layout = model.layout
    links = np.asarray(model.values)[layout.links].copy()
    if loaded:
        links[layout.link(-1)] += own.payload.parameters
    rigid = inverse_dynamics(model.robot.with_parameters(links), q, v, a)
    rotors = np.asarray(model.values)[layout.of("rotor")] * a
    return v, mean(source.torque) - rigid - rotors


def curves(own: Xu2024, loaded: bool) -> dict[str, list[FittedCurve]]:
    """Curves of both friction models, by joint."""
    v, torque = friction_of(own, own.loaded if loaded else own.empty, loaded)
    out: dict[str, list[FittedCurve]] = {}
    for name, friction in (
        ("linear", friction_model("linear")),
        ("nonlinear", friction_model("power_law")),
    ):
        out[name] = []
        for j in range(v.shape[1]):
            rows = np.abs(v[:, j]) > _MOVING
            out[name].append(curve(friction, v[rows, j], torque[rows, j]))
    return out


def table_8(own: Xu2024) -> Exhibit:
    """Errors of both friction models, without and with payload."""
    table = own.paper["friction_rmse_Nm"]
    entries: list[Entry] = []
    why = "measured there, simulated here; one mean period"
    for loaded, key in ((False, "without_payload"), (True, "with_payload")):
        found = curves(own, loaded)
        for form in ("linear", "nonlinear"):
            ours = [one.rmse for one in found[form]]
            label = f"{form}, {key.replace('_', ' ')}"
            entries += per_joint(label, table[key][form], ours, "N m", why=why)
        better = sum(
            b.rmse < a.rmse for a, b in zip(found["linear"], found["nonlinear"], strict=True)
        )
        printed_better = sum(
            b < a for a, b in zip(table[key]["linear"], table[key]["nonlinear"], strict=True)
        )
        entries.append(
            Entry(
                f"joints where the power law is better, {key.replace('_', ' ')}",
                printed_better,
                better,
                "",
                1.0,
                "joint 4 is a tie in the paper: .3914 and .3913 N m",
            )
        )
    return Exhibit("Table VIII", "Errors of linear and power-law friction", tuple(entries))


def table_9(own: Xu2024) -> Exhibit:
    """Exponents without and with payload."""
    table = own.paper["alpha"]
    why = "the simulated arm has the printed exponents without payload, loaded or not"
    without = [float(one.shape[0]) for one in curves(own, False)["nonlinear"]]
    loaded = [float(one.shape[0]) for one in curves(own, True)["nonlinear"]]
    return Exhibit(
        "Table IX",
        "Exponents of the power law without and with payload",
        (
            *per_joint("without payload", table["without_payload"], without, "", why=why),
            *per_joint("with payload", table["with_payload"], loaded, "", why=why),
        ),
    )


def figure_7(own: Xu2024) -> Exhibit:
    """Friction of joint 2, without and with payload."""
    pictures, entries = [], []
    table = own.paper["joint2_friction"]
    for loaded, key in ((False, "without"), (True, "with")):
        v, torque = friction_of(own, own.loaded if loaded else own.empty, loaded)
        found = curves(own, loaded)
        at = np.linspace(v[:, 1].min(), v[:, 1].max(), 400)
        pictures.append(
            chart(
                at,
                [
                    Series("measured", torque[:, 1], x=v[:, 1], points=True),
                    Series("linear", found["linear"][1].torque(at)),
                    Series("power law", found["nonlinear"][1].torque(at)),
                ],
                caption=f"Friction of joint 2 {key} payload",
                xlabel="velocity [rad/s]",
                ylabel="torque [N m]",
            )
        )
        for form, names in (("linear", ("Fc", "Fv", "B")), ("nonlinear", ("Fc", "Fv", "B"))):
            one = found[form][1]
            for name, value in zip(names, one.values, strict=True):
                entries.append(
                    Entry(
                        f"{form} {name}, {key} payload",
                        table[f"{form}_{key}"][name],
                        float(value),
                        "",
                        why="of another arm: Coulomb friction of joint 2 is negative in print",
                    )
                )
    return Exhibit(
        "Figure 7", "Linear and power-law friction of joint 2", tuple(entries), (), tuple(pictures)
    )


def figure_8(own: Xu2024) -> Exhibit:
    """Temperatures were measured; the simulated robot of this experiment has none."""
    low, high = own.paper["temperature_degC"]["mean_range"]
    return Exhibit(
        "Figure 8",
        "Mean temperature of the joints over ten runs",
        (
            Entry("coolest", low, None, "degC", why="measured on the real arm"),
            Entry("warmest", high, None, "degC", why="measured on the real arm"),
        ),
        missing="the course was measured on the real arm and no numbers but its range are printed; "
        "`taufit reproduce raviola2021` has an arm that warms up.",
    )
