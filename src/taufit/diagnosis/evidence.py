"""How well an arm explains rows, with one set of links for all joints: what hypotheses are
compared by.

With W the rigid columns, F the friction columns of each joint (direction, direction after a
reversal, speed, drag, load, rotor, offset), theta0 the nominal links and Q what 100 % on each link
is worth, a hypothesis is worth

    min over theta, phi of   n_e sum_j log(|tau_j - W_j theta - F_j phi_j|^2 / |tau_j|^2)
                             + (theta - theta0)' Q (theta - theta0),

n_e the number of independent rows per joint. Friction that would drive a joint (whose power summed
over the rows is negative) is not accepted: its columns are left out. `own_shares` are the same with
links of its own for every joint: the floor below which no parameters come.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.diagnosis.change import Change, Rows
from taufit.dynamics import regressor
from taufit.friction.presliding import dahl_state
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.selection.friction_terms import gaussian_prior
from taufit.signals.filtering import lowpass
from taufit.signals.samples import Samples

_MOST_ROWS = 1200
_ROUNDS = 3
_LEAST_SECONDS = 5.0
# Independent residuals per second of motion: those of real arms are correlated over about 0.5 s.
_PER_SECOND = 2.0
# Shares below this are noise; to reach one that is smaller still is no evidence.
_FLOOR = 0.01
# Columns of a joint of its own, the first of which are friction.
_OWN, _DRAG = 8, 6
# Displacements over which friction builds up after a reversal [rad].
_WIDTHS = (3e-3, 3e-2)


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """How well one hypothesis explains the rows.

    Attributes:
        shares: Unexplained torque over its spread, per joint.
        cost: As above; differences are logarithms of odds, twice.
        prior: The part of the cost that is distance from the nominal links.
        links: theta.
        friction: phi, per joint: direction, speed, drag, load, after reversals, rotor, offset.
    """

    shares: Float[Array, " j"]
    cost: float
    prior: float
    links: Float[Array, " p"]
    friction: Float[Array, "j f"]

    @property
    def share(self) -> float:
        """Mean over the joints."""
        return float(np.mean(self.shares))


class Evidence:
    """Thinned rows of samples, and what any hypothesis is worth on them."""

    def __init__(
        self,
        robot: Robot,
        samples: Samples,
        gain: Float[Array, " j"] | None = None,
        most_rows: int = _MOST_ROWS,
    ) -> None:
        moving = np.flatnonzero(samples.in_motion & samples.keep.any(axis=1))
        self.picked = moving[:: max(1, len(moving) // most_rows)]
        at = self.picked
        slip = lowpass(samples, np.tanh(samples.friction_velocity / 0.01))[at]
        slow = np.stack([_lagging(samples, width)[at] for width in _WIDTHS], axis=-1)
        self.keep: Bool[Array, "n j"] = samples.keep[at]
        self.rows = Rows(
            robot,
            samples.position[at],
            samples.velocity[at],
            samples.acceleration[at],
            slip,
            slow,
            np.where(self.keep, samples.torque[at], 0.0),
            np.ones(samples.joints) if gain is None else gain,
        )
        self.samples = samples
        # By identity; the links are kept so that no other object gets their address.
        self._priors: dict[int, tuple[Float[Array, "p p"], Float[Array, " p"]]] = {}
        self._links: list[object] = []
        self.seconds = len(moving) / samples.rate_hz
        self.independent = max(20.0, _PER_SECOND * self.seconds)
        self.plain = self.worth()

    def thinned(self, most_rows: int) -> Evidence:
        """The same on fewer rows, for many hypotheses."""
        step = max(1, len(self.picked) // most_rows)
        if step == 1:
            return self
        few = copy(self)
        few.picked, few.keep = self.picked[::step], self.keep[::step]
        per_row = ("position", "velocity", "acceleration", "slip", "slow", "torque")
        few.rows = replace(
            self.rows, **{name: getattr(self.rows, name)[::step] for name in per_row}
        )
        few.plain = few.worth()
        return few

    @property
    def enough(self) -> bool:
        """Whether there is motion enough to tell causes apart."""
        return len(self.picked) >= 100 and self.seconds >= _LEAST_SECONDS

    def worth(self, change: Change | None = None, rows: Rows | None = None) -> Worth:
        """The worth of the rows as they are, or as a change would make them."""
        rows = self.rows if rows is None else rows
        return self._solve(rows if change is None else change.rows(rows))

    def shifted(self, lag: float) -> Rows:
        """The rows with torque taken `lag` seconds later than the motion."""
        samples = self.samples
        torque = np.empty_like(self.rows.torque)
        step = lag * samples.rate_hz
        for run in samples.run_slices():
            inside = (self.picked >= run.start) & (self.picked < run.stop)
            at = self.picked[inside] + step
            grid = np.arange(run.start, run.stop)
            for j in range(samples.joints):
                torque[inside, j] = np.interp(at, grid, samples.torque[run, j])
        return replace(self.rows, torque=np.where(self.keep, torque, 0.0))

    def own_shares(self) -> Float[Array, "j j"]:
        """Unexplained share of torque channel i by the columns of joint k alone, links free."""
        rigid, friction = _columns(self.rows)
        torque = self.rows.torque
        joints = torque.shape[1]
        out = np.ones((joints, joints))
        for k in range(joints):
            block = np.concatenate([rigid[:, k], friction[:, k]], axis=1)
            size = np.linalg.norm(block, axis=0)
            block = block[:, size > 1e-9 * max(size.max(), 1e-300)]
            left, values, _ = np.linalg.svd(block / np.linalg.norm(block, axis=0), False)
            left = left[:, values > 1e-6 * values[0]]
            for i in range(joints):
                fine = self.keep[:, i]
                if not fine.any():
                    continue
                y = torque[:, i] - torque[fine, i].mean() * fine
                total = float(y @ y)
                if total > 0.0:
                    rest = y - left @ (left.T @ y)
                    out[i, k] = np.sqrt(float(rest @ rest) / total)
        return out

    def _solve(self, rows: Rows) -> Worth:
        rigid, friction = _columns(rows)
        joints, p = rows.torque.shape[1], rigid.shape[2]
        prior, centre = self._prior(rows.robot)
        grams, spread = [], np.ones(joints)
        for j in range(joints):
            fine = self.keep[:, j]
            block = np.concatenate([rigid[fine, j], friction[fine, j]], axis=1)
            y = rows.torque[fine, j]
            grams.append((block.T @ block, block.T @ y, float(y @ y), max(1, len(y))))
            spread[j] = max(float(np.sum((y - y.mean()) ** 2)) if len(y) else 0.0, 1e-12)
        squares = 0.05 * spread
        allowed = np.ones(joints, bool)
        theta, phi = centre, np.zeros((joints, _OWN))
        for _ in range(_ROUNDS):
            theta, phi = _normal(grams, squares, self.independent, prior, centre, allowed, p)
            power = np.einsum("njf,jf,nj->j", friction[:, :, :_DRAG], phi[:, :_DRAG], rows.velocity)
            allowed &= power >= 0.0
            new = np.array(
                [_left(gram, np.concatenate([theta, phi[j]])) for j, gram in enumerate(grams)]
            )
            squares = np.maximum(new, _FLOOR**2 * spread)
        shares = np.sqrt(squares / spread)
        distance = float((theta - centre) @ prior @ (theta - centre))
        cost = self.independent * float(np.sum(np.log(squares / spread))) + distance
        return Worth(shares, cost, distance, theta, phi)

    def _prior(self, robot: Robot) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Of the links alone: a change of mounting or motion leaves it as it is."""
        known = self._priors.get(id(robot.links))
        if known is not None:
            return known
        model = TorqueModel(robot, None, rotor_inertia=False, offset=False)
        prior, centre, guessed = gaussian_prior(model)
        self._links.append(robot.links)
        self._priors[id(robot.links)] = (prior * (1e-3 if guessed else 1.0), centre)
        return self._priors[id(robot.links)]


def _columns(rows: Rows) -> tuple[Float[Array, "n j p"], Float[Array, "n j f"]]:
    rigid = regressor(rows.robot, rows.position, rows.velocity, rows.acceleration)
    v = rows.velocity
    load = np.abs(rows.torque) * rows.slip
    ones = np.ones_like(v)
    parts = [rows.slip, v, np.abs(v) * v, load]
    drag = np.concatenate([np.stack(parts, axis=-1), rows.slow], axis=-1)
    return rigid, np.concatenate([drag, np.stack([rows.acceleration, ones], axis=-1)], axis=-1)


def _lagging(samples: Samples, width: float) -> Float[Array, "n j"]:
    """Friction that builds up over a displacement after each reversal."""
    travel = samples.friction_velocity / samples.rate_hz
    out = np.empty_like(travel)
    for run in samples.run_slices():
        for j in range(travel.shape[1]):
            out[run, j] = dahl_state(travel[run, j], width)
    return lowpass(samples, out)


def _left(gram: tuple[Array, Array, float, int], x: Float[Array, " c"]) -> float:
    square, right, power, _ = gram
    return max(power - 2.0 * float(right @ x) + float(x @ square @ x), 0.0)


def _normal(
    grams: list[tuple[Array, Array, float, int]],
    squares: Float[Array, " j"],
    independent: float,
    prior: Float[Array, "p p"],
    centre: Float[Array, " p"],
    allowed: Bool[Array, " j"],
    p: int,
) -> tuple[Float[Array, " p"], Float[Array, "j f"]]:
    """theta and phi of the weighted least squares, friction of each joint eliminated first."""
    left, right = prior.copy(), prior @ centre
    kept = []
    for j, (square, target, _, _) in enumerate(grams):
        weight = independent / squares[j]
        own = np.arange(p, p + _OWN) if allowed[j] else np.arange(p + _DRAG, p + _OWN)
        s_ff = square[np.ix_(own, own)]
        size = np.sqrt(np.maximum(np.diag(s_ff), 1e-30))
        inverse = np.linalg.pinv(s_ff / np.outer(size, size) + 1e-9 * np.eye(len(own)))
        inverse = inverse / np.outer(size, size)
        s_lf = square[:p, own]
        left = left + weight * (square[:p, :p] - s_lf @ inverse @ s_lf.T)
        right = right + weight * (target[:p] - s_lf @ (inverse @ target[own]))
        kept.append((own, inverse, s_lf, target[own]))
    size = np.sqrt(np.maximum(np.diag(left), 1e-30))
    scaled = left / np.outer(size, size) + 1e-10 * np.eye(p)
    theta = np.linalg.solve(scaled, right / size) / size
    phi = np.zeros((len(grams), _OWN))
    for j, (own, inverse, s_lf, target) in enumerate(kept):
        phi[j, own - p] = inverse @ (target - s_lf.T @ theta)
    return theta, phi
