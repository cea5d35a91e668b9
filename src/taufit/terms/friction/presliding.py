"""Pre-sliding friction: builds up over a displacement after each reversal (Dahl)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.parameters import BY_LOAD, COULOMB, viscous_parameter
from taufit.terms.input import TermInput
from taufit.terms.term import LOAD, MEMORY, Parameter

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# A decade apart from a few seconds of arc to a fifth of a turn, the range of grease, teeth,
# flexsplines and torque sensors. The data determine the coefficient of each.
DEFAULT_WIDTHS = (3e-5, 3e-4, 3e-3, 3e-2, 0.3)


class DahlState(NamedTuple):
    """State of a joint's pre-sliding elements, and its last motion.

    Attributes:
        z: Dahl state per width, in [-1, 1].
        travel: Travel of the last sample; None before the first.
    """

    z: Float[Array, " w"]
    travel: float | None


@dataclass(frozen=True, slots=True)
class Presliding(Friction):
    """F z_1 + sum_k P_k (z_k - z_1) + Fv v + Fv2 v |v| / (1 + |v| / b) + k |tau| z_1.

    z_k in [-1, 1] is Dahl's state of an element that yields over a displacement w_k: along the
    path x of the joint

        dz/dx = (1 - z sign(dx)) / w,       so z -> sign(v) after a few w in one direction.

    F is the Coulomb friction of steady motion; the P_k are the parts that build up slowly. Viscous
    friction is nonlinear at low speed and linear again well above b, so that a curve fitted at low
    speed does not decrease towards the rated speed.

    Attributes:
        widths: Pre-sliding displacements w_1 < w_2 < ... [rad or m].
        load: Whether Coulomb friction is load-dependent (k).
        quadratic: Whether viscous friction is nonlinear (Fv2).
        bend: Speed b above which viscous friction becomes linear [rad/s or m/s]; 0 for v |v| at all
            speeds.
    """

    widths: tuple[float, ...] = DEFAULT_WIDTHS
    load: bool = True
    quadratic: bool = True
    bend: float = 1.0

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) <= 0.0 or sorted(self.widths) != list(self.widths):
            raise ValueError("widths are positive and rise")
        if self.bend < 0.0:
            raise ValueError("bend is a speed, or 0")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"velocity", "travel", *(("load",) if self.load else ())})

    @property
    def memory(self) -> tuple[float, ...]:
        return self.widths

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (
            COULOMB,
            *(
                Parameter(f"presliding_{k}", True, group=MEMORY, optional="presliding")
                for k in range(2, len(self.widths) + 1)
            ),
            viscous_parameter(1, nonnegative=True),
            *((viscous_parameter(2),) if self.quadratic else ()),
            *((BY_LOAD,) if self.load else ()),
        )

    @property
    def by_load(self) -> tuple[int, ...]:
        return tuple(i for i, parameter in enumerate(self.parameters) if parameter.group == LOAD)

    def start(self, shape: Float[Array, " s"]) -> DahlState:
        return DahlState(np.zeros(len(self.widths)), None)

    def scan(
        self, state: DahlState, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], DahlState]:
        travel = inputs.travel
        z, last = dahl_states(travel, self.widths, state.travel, state.z)
        after = DahlState(last, state.travel if len(travel) == 0 else travel[-1])
        first = z[:, 0]
        differences = [z[:, k] - first for k in range(1, len(self.widths))]
        return self._columns_from_states(inputs, first, differences), after

    def with_memory(self, widths: tuple[float, ...]) -> Presliding:
        return replace(self, widths=widths)

    def steady_state(self) -> SteadyPresliding:
        return SteadyPresliding(self.widths, self.load, self.quadratic, self.bend)

    def _columns_from_states(
        self, inputs: TermInput, first: Any, differences: list[Any]
    ) -> Float[Array, "n k"]:
        """Columns, given z_1 and z_k - z_1."""
        velocity = inputs.velocity
        columns = [first, *differences, velocity]
        if self.quadratic:
            speed = np.abs(velocity)
            square = speed * velocity
            columns.append(square / (1.0 + speed / self.bend) if self.bend else square)
        if self.load:
            columns.append(np.abs(inputs.load) * first)
        return np.stack(columns, -1)


@dataclass(frozen=True, slots=True)
class SteadyPresliding(Presliding):
    """`Presliding` at constant speed: every z is sign(v) and the P_k have no effect."""

    @property
    def needs(self) -> frozenset[str]:
        return Presliding(self.widths, self.load).needs - {"travel"}

    @property
    def memory(self) -> tuple[float, ...]:
        return ()

    def start(self, shape: Float[Array, " s"]) -> None:  # type: ignore[override]
        return None

    def scan(  # type: ignore[override]
        self, state: None, inputs: TermInput, shape: Float[Array, " s"]
    ) -> tuple[Float[Array, "n k"], None]:
        velocity = inputs.velocity
        slow = [0.0 * velocity for _ in self.widths[1:]]
        return self._columns_from_states(inputs, np.sign(velocity), slow), None


def dahl_states(
    travel: Float[Array, " n"],
    widths: tuple[float, ...],
    before: float | None = None,
    state: Float[Array, " k"] | None = None,
) -> tuple[Float[Array, "n k"], Float[Array, " k"]]:
    """Dahl state z of each width at each sample, and the final state.

    Velocity is linear between samples. Along a displacement d in one direction

        z -> a z + (1 - a) sign(d),      a = exp(-|d| / w),

    is exact; between two samples there is one such displacement, or two if the joint reverses. The
    scan may be split anywhere and continued from the state and the last travel.

    Args:
        travel: Velocity times sampling period, u = v h.
        widths: Pre-sliding displacements w of the elements.
        before: Travel of the sample before the first; by default that of the first.
        state: z at that sample; 0 by default.
    """
    if not isinstance(travel, np.ndarray):
        return dahl_step(travel, widths, before, state)
    travel = np.ascontiguousarray(travel, float)
    z = np.zeros(len(widths)) if state is None else np.array(state, float)
    out = np.empty((len(travel), len(widths)))
    if len(travel) == 0:
        return out, z
    initial_travel = float(travel[0] if before is None else before)
    if _kernel is not None:
        _kernel.dahl_scan(travel, np.array(widths, float), initial_travel, z, out)
        return out, z
    forward, backward, reversals = split_at_reversal(
        np.concatenate([[initial_travel], travel[:-1]]), travel
    )
    w = np.array(widths, float)
    change = -np.expm1(-np.abs(forward)[:, None] / w)
    decay, pull = 1.0 - change, change * np.sign(forward)[:, None]
    change = -np.expm1(-np.abs(backward)[:, None] / w)
    decay[reversals] *= 1.0 - change
    pull[reversals] = pull[reversals] * (1.0 - change) + change * np.sign(backward)[:, None]
    from scipy.linalg import solve_banded

    pull[0] += decay[0] * z
    for k in range(len(w)):  # one bidiagonal system each, solved in one pass
        bands = np.ones((2, len(travel)))
        bands[1, :-1] = -decay[1:, k]
        out[:, k] = solve_banded((1, 0), bands, pull[:, k], check_finite=False)
    return out, out[-1].copy()


def dahl_step(travel: Any, widths: tuple[float, ...], before: Any, state: Any) -> tuple[Any, Any]:
    """Dahl state of the next sample, in operations that can be traced.

    Args:
        travel: Travel of the sample.
        widths: Pre-sliding displacements of the elements.
        before: Travel of the sample before.
        state: z at that sample, one per width.
    """
    is_reversal = before * travel < 0.0
    # The bound avoids 0/0 at standstill, where there is no reversal.
    twice_sum = np.maximum(2.0 * (np.abs(before) + np.abs(travel)), 1e-300)
    forward = np.where(is_reversal, before * np.abs(before) / twice_sum, 0.5 * (before + travel))
    backward = np.where(is_reversal, travel * np.abs(travel) / twice_sum, 0.0 * travel)
    out = []
    for z, width in zip(state, widths, strict=True):
        at_reversal = z - np.expm1(-np.abs(forward) / width) * (np.sign(forward) - z)
        out.append(
            at_reversal - np.expm1(-np.abs(backward) / width) * (np.sign(backward) - at_reversal)
        )
    return np.stack(out, -1), out


def dahl_state(travel: Float[Array, " n"], width: float) -> Float[Array, " n"]:
    """Dahl state z of one width at each sample of a motion, from z = 0."""
    return dahl_states(travel, (width,))[0][:, 0]


def split_at_reversal(
    before: Float[Array, "*n"], after: Float[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, " t"], tuple[Int[Array, " t"], ...]]:
    """Displacement between two samples: before a reversal, after it, and indices of reversals.

    With velocity linear in time from u to u' (in displacements per sample) it is (u + u')/2, or,
    for opposite signs, u|u| / (2 (|u| + |u'|)) forward and u'|u'| / (2 (|u| + |u'|)) backward.
    """
    forward = 0.5 * (before + after)
    reversals = np.nonzero(before * after < 0.0)
    u, next_travel = before[reversals], after[reversals]
    twice_sum = 2.0 * (np.abs(u) + np.abs(next_travel))
    forward[reversals] = u * np.abs(u) / twice_sum
    return forward, next_travel * np.abs(next_travel) / twice_sum, reversals
