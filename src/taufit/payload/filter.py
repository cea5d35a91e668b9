"""The recommended estimator: everything unknown in one linear model, sample by sample.

Rows of joint i add to a sum of squares of their own,

    G_i = integral of [columns, y]' [columns, y] dt / S_i,

S_i the noise density of that joint. At read-out the sums are weighted by how large the residuals
turned out, a column per joint is added for the error of its drive gain (the payload's own torque,
scaled), everything but the payload is marginalised (Schur complement), and the most probable body
that can exist is returned. Parameters are constants, so this is the Kalman filter without its
process noise, in information form: exact, mergeable, and never losing definiteness.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr, ndtri_exp

from taufit.arrays import Array, Float
from taufit.dynamics import Engine
from taufit.errors import RecordingError, TaufitError
from taufit.estimation.residual_structure import EXTRAS, extra_columns
from taufit.payload.body import Body, most_probable_body
from taufit.payload.change import Belief, ChangeDetector, Chunk
from taufit.payload.dahl import FrictionStream
from taufit.payload.estimate import NORMAL_95, PayloadEstimate, interval
from taufit.payload.grid import Grid
from taufit.payload.lowpass import CausalLowpass
from taufit.payload.marginal import without_own
from taufit.payload.settings import PayloadSettings
from taufit.payload.unknowns import unknowns
from taufit.torque_model import TorqueModel

# Residuals of a run may be this much smaller than in training, in variance, and no less.
_QUIETEST = 0.5
# Weight of the training's noise level against the run's, in independent values.
_NOISE_TRUST = 20.0
# Seconds after a gap in which the low-pass still holds what was before.
_SETTLE = 4.0
# Each of the joints that carry the payload is to be seen this long in both directions [s].
_BOTH_WAYS = 0.3
# Joints whose payload torque is at least this share of the largest carry it.
_CARRIES = 0.3
# A body lighter than this many standard deviations may be none.
_EMPTY = 4.0
# Factor on the noise density of the training where changes are looked for; the alarm goes with it.
_WATCHFUL = 1.15
# An arm lighter than its model by this share of a light payload is another arm.
_LIGHTER = 0.2
# Speeds beyond those of the training data by this share count half.
_BEYOND = 0.1
# Positions beyond those of the training data by this much count half [rad or m].
_AWAY = 0.2
# Residual variance beyond this many times that of the training is another robot, or another world.
_STRANGE = 9.0
# Changes of mass smaller than this at the moment they show may go either way [kg].
_UNCLEAR = 0.3
# Weight of the drive gains' own standard deviations against what the joints say of each other.
_GAIN_TRUST = 2.0
# Less than this share of a motion within what the model was fitted to, and the rest is doubted.
_FAMILIAR = 0.6
# Two-sided noise bandwidth of a Butterworth of order 4, in cut-offs.
_BANDWIDTH = 2.053
# Drives whose gains differ by less than this are of one type, and their errors correlate so much.
_SAME_TYPE = 0.003
_OF_TYPE = 0.7
GRAVITY = 9.81
# Inertia with more than this share of prior in it is called so.
_PRIOR_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened on the way.

    Attributes:
        time: When it was noticed [s].
        kind: "pick", "drop", "change" (which of them is not clear yet) or "gap".
        text: In words.
        change: Of mass, where it is one [kg].
    """

    time: float
    kind: str
    text: str
    change: float = 0.0


@dataclass(slots=True)
class _Sums:
    """What the rows of one joint have said."""

    square: Array
    seconds: float = 0.0
    moving: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    load: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Information on the payload's ten parameters after all else was marginalised.

    Attributes:
        information, target: A and A phi_0.
        scale: Factor on each joint's noise variance, from its residuals.
        gain: Estimated relative error of each joint's drive gain.
    """

    information: Float[Array, "10 10"]
    target: Float[Array, " 10"]
    scale: Float[Array, " j"]
    gain: Float[Array, " j"] = field(default_factory=lambda: np.zeros(0))


class PayloadFilter:
    """Mass, centre of mass and inertia of what an arm carries, while it moves.

    Feed it with `update`, ask it with `estimate` (at about 10 Hz). The torque is that of the joints
    in newton metres, from the same drives and with the same gains as the model's training data.

    Attributes:
        model: Of the empty arm (or with the tool that stays on it).
        settings: How it works.
        gain_std: Relative standard deviation of each joint's drive gain.
        rate_hz: Of its grid.
        events: Picks, drops and gaps so far.
        ready_at: When the estimate became worth reading [s], or None.
        stopped_at: When the wanted accuracy was reached [s], or None.
    """

    def __init__(
        self,
        model: TorqueModel,
        settings: PayloadSettings | None = None,
        *,
        gain_std: Float[Array, " j"] | None = None,
    ) -> None:
        self.model = model
        self.settings = settings = settings or PayloadSettings()
        self.unknowns = unknowns(model, settings)
        joints = self.joints = model.robot.joints
        conditioning = model.meta.get("conditioning", {})
        rate = float(conditioning.get("rate_hz") or 100.0)
        self.rate_hz = rate / np.ceil(rate / settings.fastest_hz - 1e-9)
        self.step = 1.0 / self.rate_hz
        cutoff = float(conditioning.get("cutoff_hz") or 10.0)
        self.cutoff_hz = min(cutoff, 0.2 * self.rate_hz)
        self.gain_std = self._gain_std(gain_std)
        self._alike = _alike(conditioning.get("gain"), joints)
        self.engine = Engine(model.robot)
        self.lowpass = CausalLowpass(self.rate_hz, self.cutoff_hz)
        self.friction = FrictionStream(model)
        self.warm = model.friction is not None and model.friction.uses_temperature
        channels = joints * (4 if self.warm else 3)
        self.grid = Grid(self.step, channels, max(0.1, 3.5 / self.rate_hz))
        self._row = np.empty(channels)
        self._held = np.full(joints, np.nan)
        self._due = settings.chunk * self.step
        self._edges = [0, *np.cumsum([len(rows) + 1 for rows in self.unknowns.rows]).tolist()]
        p = len(self.unknowns)
        order = self.unknowns.order
        flat = [
            j * (p + 1) + np.append(order[rows], p) for j, rows in enumerate(self.unknowns.rows)
        ]
        self._flat = np.concatenate(flat)
        self._prior = self.unknowns.prior.copy()
        self._prior_target = self.unknowns.target.copy()
        first = 10 * joints
        self._inertial = np.asarray(model.values)[:first]
        self._rest = np.asarray(model.values)[first:]
        rotors = joints * model.rotor_inertia
        self._rotor = self._rest[:rotors]
        terms = len(model.friction.terms) if model.friction else 0
        self._friction = self._rest[rotors : rotors + joints * terms].reshape(joints, terms)
        self._offset = self._rest[rotors + joints * terms :]
        self._base_links = self.unknowns.base[self.unknowns.base < first]
        self._base_rest = self.unknowns.base[self.unknowns.base >= first] - first
        span = model.meta.get("range", {}).get("velocity")
        self._fastest = np.full(joints, np.inf)
        if span is not None:
            reach = np.maximum(np.abs(np.array(span["low"])), np.abs(np.array(span["high"])))
            self._fastest = np.maximum(reach, settings.standstill)
        span = model.meta.get("range", {}).get("position")
        self._lowest, self._highest = np.full(joints, -np.inf), np.full(joints, np.inf)
        if span is not None:
            self._lowest, self._highest = np.array(span["low"]), np.array(span["high"])
            # The first joint only turns the arm about gravity, unless it is tilted; the last one
            # turns what it carries. Neither shows the arm in another light.
            self._lowest[[0, -1]], self._highest[[0, -1]] = -np.inf, np.inf
        self.events: list[Event] = []
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self.time = np.nan
        self.samples = 0
        self._phi = np.zeros(10)
        self._body: Body | None = None
        self._last: PayloadEstimate | None = None
        self._gains = np.zeros(joints)
        self._scale = np.ones(joints)
        self._doubt = 1.0
        self._tied = False
        self._parts = np.array([*self.unknowns.parts, *["gains"] * joints])
        self._opened = np.nan
        self._state = np.zeros(p)
        self._faced = False
        self.template: Any = None
        self.kept: list[tuple[Array, Array, Array]] | None = None
        self.detector = ChangeDetector(max(settings.windows))
        self._restart_sums()
        self._restart_stream()

    # ---- what comes in -------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """One sample: time [s], joint positions, velocities and torques [N m].

        A sample with a value that is not finite counts as missing, and so does one whose torques
        repeat those before to the last digit while the arm moves: nothing was measured. Time must
        not run backwards.
        """
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self.warm:
            if temperature is None:
                raise RecordingError(
                    "this model's friction depends on temperature and the samples have none. "
                    "Record joint temperatures, or fit a model without them."
                )
            row[3 * joints :] = temperature
        # A sum is finite only where all its terms are.
        if not np.isfinite(row.sum() + time):
            return
        torques = row[2 * joints : 3 * joints]
        if np.array_equal(torques, self._held) and self._moves(row):
            return
        self._held[:] = torques
        last = self.grid.last
        if last is not None:
            step = time - last
            if step <= 0.0:
                if step < -self.grid.longest:
                    raise RecordingError(
                        f"time runs backwards: {time:.4f} s after {last:.4f} s. Start a new filter "
                        "for another run."
                    )
                return
            if step > self.grid.longest:
                self._gap(last, time)
        elif np.isnan(self._opened):
            self._opened = time
        self.samples += 1
        self.time = time
        self.grid.push(time, row)
        if self.grid.ahead >= self._due:
            self._work()

    def _moves(self, row: Float[Array, " c"]) -> bool:
        """Whether some joint moves in this sample."""
        speeds = row[self.joints : 2 * self.joints]
        return float(np.abs(speeds).max()) > self.settings.standstill

    def flush(self) -> None:
        """Work off what waits for the next chunk."""
        if self.grid.filled:
            self._work()

    def cancel_arm(self, share: float, density: Float[Array, " j"] | None, runs: int) -> None:
        """The arm's own errors cancel down to a share of their variance: a template is used.

        Args:
            share: What is left of them.
            density: Noise density of one run as the templates show it, or None with one only.
            runs: How many templates were averaged; their noise adds to that of the run.
        """
        u = self.unknowns
        names = [name.partition(".")[2] for name in u.names]
        same = np.array(
            [
                part == "links" or name.startswith(("cos_", "sin_"))
                for part, name in zip(u.parts, names, strict=True)
            ]
        )
        factor = np.where(same, 1.0 / np.sqrt(share), 1.0)
        factor[:10] = 1.0
        self._prior = self._prior * np.outer(factor, factor)
        self._prior_target = np.zeros(len(u))
        own = u.density if density is None else np.where(np.isnan(density), u.density, density)
        own = np.clip(own, 0.5 * u.density, 2.0 * u.density)
        own = own * (1.0 + 1.0 / runs)
        # White noise of that density behind the low-pass.
        rms = np.sqrt(own * _BANDWIDTH * self.cutoff_hz)
        self.unknowns = replace(u, density=own, rms=rms)
        # Where the template has been, nothing is new.
        self._lowest[:], self._highest[:], self._fastest[:] = -np.inf, np.inf, np.inf

    def _gap(self, last: float, time: float) -> None:
        self._work()
        self.events.append(
            Event(
                time,
                "gap",
                f"no samples from {last:.2f} s to {time:.2f} s: friction and low-pass start anew",
            )
        )
        self._restart_stream()

    def _restart_stream(self) -> None:
        self.grid.clear()
        self.lowpass.clear()
        self.friction.clear()
        self.detector.clear()
        self._tail: Array | None = None
        self._tail_time: Array | None = None
        self._settling = 0
        if self.samples:
            self._settling = int(_SETTLE / self.cutoff_hz * self.rate_hz)
            self._marginalise_starts()

    def _restart_sums(self) -> None:
        self._sums = [
            _Sums(np.zeros((len(rows) + 1, len(rows) + 1))) for rows in self.unknowns.rows
        ]

    def _marginalise_starts(self) -> None:
        """Where friction stood before the gap no longer matters: integrated out joint by joint."""
        names = self.unknowns.names
        for sums, rows in zip(self._sums, self.unknowns.rows, strict=True):
            gone = np.array(
                [k for k, i in enumerate(rows) if names[i].partition(".")[2].startswith("start_")]
            )
            kept = np.setdiff1d(np.arange(len(rows) + 1), gone)
            prior = np.diag(self._prior)[rows[gone]]
            inner = sums.square[np.ix_(gone, gone)] + np.diag(prior)
            cross = sums.square[np.ix_(gone, kept)]
            left = sums.square[np.ix_(kept, kept)] - cross.T @ np.linalg.solve(inner, cross)
            sums.square[:] = 0.0
            sums.square[np.ix_(kept, kept)] = left

    # ---- rows ----------------------------------------------------------------------------------

    def _work(self) -> None:
        time, cells = self.grid.take()
        if len(time) == 0:
            return
        if self._tail is not None:
            assert self._tail_time is not None
            time = np.concatenate([self._tail_time, time])
            cells = np.concatenate([self._tail, cells])
        # Acceleration is the central difference, so the newest cell waits.
        if len(time) < 3:
            self._tail, self._tail_time = cells, time
            return
        self._tail, self._tail_time = cells[-2:], time[-2:]
        joints, step = self.joints, self.step
        velocities = cells[:, joints : 2 * joints]
        q = np.ascontiguousarray(cells[1:-1, :joints])
        v = np.ascontiguousarray(velocities[1:-1])
        a = (velocities[2:] - velocities[:-2]) / (2.0 * step)
        torque = cells[1:-1, 2 * joints : 3 * joints]
        warm = cells[1:-1, 3 * joints :] if self.warm else None
        packed, speeds = self._rows(q, v, a, torque, warm)
        filtered = self.lowpass(packed)
        of_y = np.array(self._edges[1:]) - 1
        if self.kept is not None:
            self.kept.append((q, v, filtered[:, of_y].copy()))
        if self.template is not None:
            left, there = self.template.residual(q, v)
            filtered[:, of_y] -= left
            # Where the motion is another one nothing is known: as at standstill.
            filtered[:, -self.joints :] += (1.0 - there)[:, None]
        self._add(time[1:-1], filtered, speeds, q)

    def _rows(
        self, q: Array, v: Array, a: Array, torque: Array, warm: Array | None
    ) -> tuple[Float[Array, "n c"], Float[Array, "n j"]]:
        """Columns and y of all joints side by side, then how much each joint stands still."""
        model, joints, u = self.model, self.joints, self.unknowns
        n, p, b = len(q), len(u), len(u.base)
        links = self.engine.regressor(q, v, a)
        rigid = links @ self._inertial
        payload = links[..., -10:]
        load = rigid + payload @ self._phi
        motor, direction, left = self.friction.columns(v, load, warm, self.step)
        follows = self._load_slope(v, load, warm, direction)

        out = np.zeros((n, joints, p + 1))
        slope = follows[..., None] * payload
        out[..., :10] = payload + slope
        at = 10
        out[..., at : at + len(self._base_links)] = links[..., self._base_links]
        at += len(self._base_links)
        parts = []
        if model.rotor_inertia:
            parts.append(model.rotor_columns(a))
        parts.append(model.to_joints(motor))
        if model.offset:
            parts.append(np.broadcast_to(np.eye(joints), (n, joints, joints)))
        rest = np.concatenate(parts, -1)
        out[..., at : 10 + b] = rest[..., self._base_rest]
        speed = v if self.friction.coupling is None else v @ self.friction.coupling.T
        extra = np.empty((n, joints, len(EXTRAS) + 1 + u.fading.shape[1]))
        extra[..., : len(EXTRAS)] = extra_columns(q, speed, direction, load)
        extra[..., len(EXTRAS)] = rigid
        extra[..., len(EXTRAS) + 1 :] = u.fading * left
        out[..., 10 + b : p] = model.to_joints(extra)
        out[..., p] = torque - rigid - rest @ self._rest + slope @ self._phi
        still = np.abs(v) < self.settings.standstill
        return np.concatenate([out.reshape(n, -1)[:, self._flat], still], 1), v

    def _load_slope(self, v: Array, load: Array, warm: Array | None, direction: Array) -> Array:
        """d friction / d load at the joints: what one newton metre more costs in friction."""
        friction = self.model.friction
        if friction is None or not friction.uses_load:
            return np.zeros_like(v)
        if self.friction.remembers:
            own = load
            if self.friction.coupling is not None:
                own = load @ np.linalg.inv(self.friction.coupling)
            return self._friction[:, -1] * np.sign(own) * direction
        small = 1e-3
        up, down = (
            self.model.motor_friction(v, load=load + s * small, temperature=warm)
            for s in (1.0, -1.0)
        )
        return np.einsum("njk,jk->nj", up - down, self._friction) / (2.0 * small)

    def _add(self, time: Array, filtered: Array, speeds: Array, q: Array) -> None:
        if self._settling > 0:
            skip = min(self._settling, len(time))
            self._settling -= skip
            time, filtered = time[skip:], filtered[skip:]
            speeds, q = speeds[skip:], q[skip:]
            if len(time) == 0:
                return
        u, settings = self.unknowns, self.settings
        still = np.clip(filtered[:, -self.joints :], 0.0, 1.0)
        # At standstill friction is anywhere in its band, for as long as it lasts.
        band = (0.5 * u.level + 2.0 * u.rms) ** 2 * 2.0
        weight = 1.0 / (1.0 + band * still / u.density)
        if np.isfinite(settings.memory):
            fade = float(np.exp(-len(time) * self.step / settings.memory))
            for sums in self._sums:
                sums.square *= fade
                sums.seconds *= fade
        beyond = np.maximum(np.abs(speeds) / self._fastest - 1.0, 0.0)
        weight = weight / (1.0 + (beyond / _BEYOND) ** 2)
        # A pose the model has never seen is as strange for every joint that carries what moves.
        away = np.maximum(np.maximum(q - self._highest, self._lowest - q), 0.0)
        weight = weight / (1.0 + (away.max(axis=1) / _AWAY) ** 2)[:, None]
        chunk: list[tuple[Array, Array]] = []
        whole: list[Array] = []
        for j, sums in enumerate(self._sums):
            rows = filtered[:, self._edges[j] : self._edges[j + 1]]
            w = weight[:, j]
            square = rows.T @ (rows * (w * (self.step / u.density[j]))[:, None])
            sums.square += square
            sums.seconds += float(w.sum()) * self.step
            sums.moving += float((1.0 - still[:, j]).sum()) * self.step
            moving = w > 0.5
            sums.forward += np.count_nonzero(moving & (speeds[:, j] > 0)) * self.step
            sums.backward += np.count_nonzero(moving & (speeds[:, j] < 0)) * self.step
            sums.load += float((w * rows[:, 0] ** 2).sum()) * self.step
            # Changes are looked for in motion only: at standstill friction may do anything.
            chunk.append((rows, np.where(w > 0.5, w, 0.0)))
            whole.append(w)
        if settings.detect:
            self.detector.add(
                Chunk(float(time[-1]), len(time) * self.step, tuple(chunk), tuple(whole))
            )
            if self._faced:
                self._look_for_change(float(time[-1]))

    # ---- picks and drops -----------------------------------------------------------------------

    def _look_for_change(self, time: float) -> None:
        belief = self._belief()
        found = self.detector.look(belief, self.settings.windows, self.settings.light)
        if found.evidence > self.settings.alarm:
            self.events.append(_named_change(time, found.mass))
            self.reopen()

    def _belief(self) -> Belief:
        """What the last read-out says, column by column."""
        u, last = self.unknowns, self._last
        assert last is not None
        states, slow = [], []
        for j, rows in enumerate(u.rows):
            x = np.append(self._state[rows], -1.0)
            x[:10] *= 1.0 + self._gains[j]
            states.append(x)
            slow.append(int(np.argmax(rows == u.names.index(f"joint_{j + 1}.{EXTRAS[0]}"))))
        louder = np.maximum(self._scale, 1.0)
        density = u.density * louder * (_WATCHFUL / self.settings.noise_factor)
        # Friction of a joint that has not turned both ways yet may be taken for load.
        one_way = [min(sums.forward, sums.backward) < _BOTH_WAYS for sums in self._sums]
        mass, std = last.mass, last.mass_std
        moments = np.hypot(max(mass, std) * last.centre_std, last.centre * std)
        return Belief(
            states,
            np.where(one_way, np.inf, density),
            u.rms * np.sqrt(louder),
            u.level,
            slow,
            np.append(std, moments),
        )

    def reopen(self) -> None:
        """The payload is another one from now on; what was learnt about the arm stays.

        The last moments are taken back first: they belong to both.
        """
        u = self.unknowns
        for chunk in self.detector.chunks:
            # What has begun to be forgotten is taken back as far as it is still there.
            age = self.detector.chunks[-1].time - chunk.time
            left = float(np.exp(-age / self.settings.memory))
            for j, ((rows, _), w) in enumerate(zip(chunk.rows, chunk.weights, strict=True)):
                step = left * chunk.seconds / len(w)
                self._sums[j].square -= rows.T @ (rows * (w * (step / u.density[j]))[:, None])
                self._sums[j].seconds -= float(w.sum()) * step
        self.detector.clear()
        p = len(u)
        total, target = self._prior.copy(), self._prior_target.copy()
        for j, (sums, rows) in enumerate(zip(self._sums, u.rows, strict=True)):
            k = len(rows)
            own = sums.square / self._scale[j]
            total[np.ix_(rows, rows)] += own[:k, :k]
            target[rows] += own[:k, k]
        weak = np.diag([1e-4, *[4.0] * 3, *[25.0] * 6])
        inner = total[:10, :10] + weak
        solved = np.linalg.solve(inner, np.column_stack([total[:10, 10:], target[:10]]))
        self._prior = np.zeros((p, p))
        rest = total[10:, 10:] - total[10:, :10] @ solved[:, :-1]
        self._prior[10:, 10:] = 0.5 * (rest + rest.T)
        self._prior_target = np.zeros(p)
        self._prior_target[10:] = target[10:] - total[10:, :10] @ solved[:, -1]
        ways = [(sums.forward, sums.backward) for sums in self._sums]
        self._restart_sums()
        # Friction stays known: what the joints have shown of it counts on.
        for sums, (forward, backward) in zip(self._sums, ways, strict=True):
            sums.forward, sums.backward = forward, backward
        self._phi = np.zeros(10)
        self._gains = np.zeros(self.joints)
        self._body = None
        self._tied = True
        self._faced = False
        # Rows mix both so long as the low-pass still holds what was before.
        self._settling = int(_SETTLE / self.cutoff_hz * self.rate_hz)
        self._scale = np.maximum(self._scale, 1.0)
        self.ready_at = self.stopped_at = None

    # ---- what comes out ------------------------------------------------------------------------

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with everything else marginalised.

        Joint by joint what only that joint knows (ripple, low-speed friction, where friction stood)
        goes first, then the arm's base parameters and the gains together.

        Args:
            without: Sources of error taken as known: "links", "friction", "gains".
        """
        u, joints = self.unknowns, self.joints
        # Once a change has tied everything together, nothing is a joint's own.
        own_first = len(u) if self._tied else u.shared
        size = own_first + joints
        total, target = np.zeros((size, size)), np.zeros(size)
        total[:own_first, :own_first] = self._prior[:own_first, :own_first]
        total[own_first:, own_first:] = self._gain_information()
        target[:own_first] = self._prior_target[:own_first]
        parts = self._parts
        self._local: list[tuple[Array, Array]] = []
        for j, (sums, rows) in enumerate(zip(self._sums, u.rows, strict=True)):
            k, shared = len(rows), int(np.searchsorted(rows, own_first))
            if shared < k and not without:
                self._without_own(j, shared, own_first + j, total, target)
                continue
            # Columns, then the column of a wrong gain (the payload's torque as known), then y.
            square = np.empty((k + 2, k + 2))
            square[:k, :k] = sums.square[:k, :k]
            line = sums.square[:, :10] @ self._phi
            square[:k, k] = square[k, :k] = line[:k]
            square[:k, k + 1] = square[k + 1, :k] = sums.square[:k, k]
            square[k, k] = self._phi @ line[:10]
            square[k, k + 1] = square[k + 1, k] = line[k]
            square[k + 1, k + 1] = sums.square[k, k]
            square *= 1.0 / self._scale[j]
            kept = np.r_[0:shared, k, k + 1]
            if shared < k:
                mine = rows[shared:]
                inner = square[shared:k, shared:k] + self._prior[np.ix_(mine, mine)]
                cross = square[shared:k][:, kept]
                cross[:, :shared] += self._prior[np.ix_(mine, rows[:shared])]
                cross[:, -1] += self._prior_target[mine]
                if "friction" in without or "links" in without:
                    known = np.isin(parts[mine], without)
                    inner, cross = inner[np.ix_(~known, ~known)], cross[~known]
                solved = np.linalg.solve(inner, cross)
                square = square[np.ix_(kept, kept)] - cross.T @ solved
                self._local.append((rows[shared:], solved))
            else:
                square = square[np.ix_(kept, kept)]
                self._local.append((rows[:0], np.zeros((0, len(kept)))))
            at = np.append(rows[:shared], own_first + j)
            total[np.ix_(at, at)] += square[:-1, :-1]
            target[at] += square[:-1, -1]
        keep = np.ones(size, bool)
        if without:
            keep = ~np.isin(np.concatenate([parts[:own_first], parts[-joints:]]), without)
        keep[:10] = False
        index = np.flatnonzero(keep)
        inner = total[np.ix_(index, index)]
        unit = 1.0 / np.sqrt(np.diag(inner))
        cross = total[index, :10] * unit[:, None]
        right = np.column_stack([cross, target[index] * unit])
        factor = cho_factor(inner * np.outer(unit, unit), lower=True, check_finite=False)
        solved = cho_solve(factor, right, check_finite=False)
        information = total[:10, :10] - cross.T @ solved[:, :10]
        information = 0.5 * (information + information.T)
        aim = target[:10] - cross.T @ solved[:, 10]
        self._inner = (index, solved * unit[:, None], own_first)
        if "gains" not in without:
            # All drives may be off alike (motors warm up together): along phi itself.
            line = information @ self._phi
            alike = max(self.settings.gain_common, 1e-9)
            share = 1.0 / (1.0 / alike**2 + self._phi @ line)
            aim = aim - line * (share * float(self._phi @ aim))
            information = information - np.outer(line, line) * share
        doubt = max(1.0, _FAMILIAR / max(self.familiar, 0.05))
        return Posterior(information / doubt, aim / doubt, self._scale, self._gains)

    @property
    def familiar(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        loads = np.array([s.load / max(s.seconds, 1e-9) for s in self._sums])
        shares = [
            s.seconds / s.moving
            for s, load in zip(self._sums, loads, strict=True)
            if load >= _CARRIES**2 * loads.max() and s.moving > self.step
        ]
        return float(min([1.0, *shares]))

    def _without_own(self, j: int, shared: int, gain: int, total: Array, target: Array) -> None:
        """Add one joint's information on what it shares and its gain, its own marginalised."""
        rows = self.unknowns.rows[j]
        solved = np.empty((len(rows) - shared, shared + 2))
        without_own(
            self._sums[j].square,
            self._prior,
            self._prior_target,
            rows,
            shared,
            self._phi,
            1.0 / self._scale[j],
            gain,
            total,
            target,
            solved,
        )
        self._local.append((rows[shared:], solved))

    def _gain_information(self) -> Float[Array, "j j"]:
        """Of the relative errors of the payload's torque at the joints: gains and levers.

        Drives of one type (of one nominal gain) are off together for the larger part.
        """
        levers = np.array([self._lever(j) for j in range(self.joints)])
        geometry = self.settings.lever_std / np.maximum(levers, self.settings.lever_std)
        spread = np.outer(self.gain_std, self.gain_std) * self._alike + np.diag(geometry**2 + 1e-12)
        return np.linalg.inv(self._doubt * spread)

    def _lever(self, j: int) -> float:
        """Arm of the payload's weight about joint j, rms over the run [m]."""
        sums, phi = self._sums[j], self._phi
        if phi[0] <= 0.0:
            return float(np.sqrt(sums.load / max(sums.seconds, 1e-9))) / GRAVITY
        square = float(phi @ sums.square[:10, :10] @ phi) * self.unknowns.density[j]
        return float(np.sqrt(square / max(sums.seconds, 1e-9))) / (phi[0] * GRAVITY)

    def _after(self, phi: Array) -> None:
        """Nuisances at phi: gains, and how large each joint's residuals turned out."""
        u = self.unknowns
        index, solved, own_first = self._inner
        shared = np.zeros(own_first + self.joints)
        shared[:10] = phi
        shared[index] = solved[:, 10] - solved[:, :10] @ phi
        self._gains = shared[own_first:]
        self._state = np.zeros(len(u))
        self._state[:own_first] = shared[:own_first]
        for j, ((mine, inner), rows) in enumerate(zip(self._local, u.rows, strict=True)):
            known = np.append(shared[rows[: len(rows) - len(mine)]], self._gains[j])
            self._state[mine] = inner[:, -1] - inner[:, :-1] @ known
        # Joints that contradict each other by more than their gains may differ doubt all gains.
        strange = float(self._gains @ self._gain_information() @ self._gains) * self._doubt
        self._doubt = max(1.0, (_GAIN_TRUST + strange) / (_GAIN_TRUST + self.joints))
        for j, (sums, rows) in enumerate(zip(self._sums, u.rows, strict=True)):
            x = np.append(self._state[rows], -1.0)
            x[:10] *= 1.0 + self._gains[j]
            left = max(float(x @ sums.square @ x), 0.0)
            expected = sums.seconds * u.rms[j] ** 2 / u.density[j]
            self._scale[j] = max((_NOISE_TRUST + left) / (_NOISE_TRUST + expected), _QUIETEST)

    @property
    def gain_errors(self) -> Float[Array, " j"]:
        """What the joints say about each other's drive gains, relative."""
        return self._gains.copy()

    def budget(self) -> dict[str, float]:
        """Share of noise, links, friction and gains in the variance of the mass."""
        sources = ("links", "friction", "gains")

        def variance(without: tuple[str, ...]) -> float:
            return float(_linear(self.posterior(without), self.settings)[1][0, 0])

        whole = variance(())
        parts = {name: max(whole - variance((name,)), 0.0) for name in sources}
        parts = {"noise": variance(sources), **parts}
        self.posterior()
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items()}

    def estimate(self) -> PayloadEstimate:
        """What is carried, as far as the chunks worked off so far tell; `flush` for the rest."""
        found = self.posterior()
        seen = sum(sums.seconds for sums in self._sums) > 0.0
        linear, spread = _linear(found, self.settings)
        self._after(linear)
        mass, std = float(linear[0]), float(np.sqrt(spread[0, 0]))
        warnings: list[str] = []
        empty = not seen or mass < _EMPTY * std
        if empty:
            out = self._empty(linear, spread)
        else:
            start = None if self._body is None else self._body.x
            body = most_probable_body(found.information, found.target, self.settings, start)
            self._body = body
            out = self._full(body)
        lighter = mass < -max(_EMPTY * std, _LIGHTER * self.settings.light)
        if lighter and seen:
            warnings.append(
                f"the arm is {-mass:.1f} kg lighter at its end than its model says. Was a tool on "
                "it when the model was fitted that is gone now? Fit a model of the arm as it is."
            )
        ready = self._ready(out.mass, out.mass_std) and not lighter
        self._faced = ready
        if ready:
            self._phi = out.parameters.copy()
        elif seen:
            self._phi = np.where(std < 0.5 * mass, 1.0, 0.0) * out.parameters
        goal = max(out.mass, self.settings.light)
        accurate = self.stopped_at is not None or (
            ready
            and self._reducible(out) <= self.settings.mass_accuracy * goal
            and bool(np.all(out.centre_std <= self.settings.com_accuracy) or out.empty)
        )
        if ready and self.ready_at is None:
            self.ready_at = self.time
        if accurate and self.stopped_at is None:
            self.stopped_at = self.time
        warnings += self._warnings(out, ready or lighter)
        self._last = replace(out, ready=ready, accurate=accurate, warnings=tuple(warnings))
        return self._last

    def _reducible(self, out: PayloadEstimate) -> float:
        """Standard deviation of the mass without the part of the gains, which no motion shrinks."""
        if out.mass_std <= self.settings.mass_accuracy * max(out.mass, self.settings.light):
            return out.mass_std
        known = _linear(self.posterior(without=("gains",)), self.settings)[1]
        return float(np.sqrt(known[0, 0]))

    def _full(self, body: Body) -> PayloadEstimate:
        std = np.sqrt(np.maximum(np.diag(body.covariance), 0.0))
        low, high = interval(body.mass, std[0])
        six = np.array(
            [
                body.inertia[0, 0],
                body.inertia[0, 1],
                body.inertia[1, 1],
                body.inertia[0, 2],
                body.inertia[1, 2],
                body.inertia[2, 2],
            ]
        )
        least, most = interval(six, std[4:])
        # Moments of inertia are never negative, whatever the normal law says.
        least[[0, 2, 5]] = np.maximum(least[[0, 2, 5]], 0.0)
        return PayloadEstimate(
            self.time,
            body.parameters,
            body.mass,
            float(std[0]),
            (max(float(low), 0.0), float(high)),
            body.centre,
            std[1:4],
            interval(body.centre, std[1:4]),
            body.inertia,
            (least, most),
            empty=False,
            from_prior=body.prior_share > _PRIOR_SHARE,
        )

    def _empty(self, linear: Array, spread: Array) -> PayloadEstimate:
        """Perhaps nothing: the mass is a normal quantity cut off at zero."""
        m, s = float(linear[0]), float(np.sqrt(spread[0, 0]))
        # P(mass > high | mass > 0) = 2.5 %.
        value = max(m, 0.0)
        high = max(m - s * float(ndtri_exp(np.log(0.025) + log_ndtr(m / s))), m + NORMAL_95 * s)
        wide = np.full(3, self.settings.com_spread)
        zero = np.zeros(3)
        lengths = (max(high, 1e-3) / 1000.0) ** (2.0 / 3.0) * max(high, 1e-3)
        six = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
        small = max(value, 0.0) * (max(value, 1e-6) / 3500.0) ** (2.0 / 3.0) / 6.0
        parameters = np.zeros(10)
        parameters[0] = value
        parameters[4:] = small * six
        return PayloadEstimate(
            self.time,
            parameters,
            value,
            s,
            (0.0, high),
            zero,
            wide,
            interval(zero, wide),
            small * np.eye(3),
            (np.zeros(6) - (1 - six) * lengths, np.ones(6) * lengths),
            empty=True,
            from_prior=True,
        )

    def _ready(self, mass: float, std: float) -> bool:
        """The joints that carry the payload were seen in both directions, and it shows."""
        loads = np.array([np.sqrt(s.load / max(s.seconds, 1e-9)) for s in self._sums])
        if not np.any(loads > 0.0):
            return False
        for j, (sums, load) in enumerate(zip(self._sums, loads, strict=True)):
            carries = load >= _CARRIES * loads.max()
            if carries and min(sums.forward, sums.backward) < _BOTH_WAYS:
                return False
            if carries and self._scale[j] > _STRANGE:
                return False
        return std <= self.settings.ready_mass * max(mass, self.settings.light)

    def _warnings(self, out: PayloadEstimate, ready: bool) -> list[str]:
        told = [f"{event.time:.2f} s: {event.text}" for event in self.events]
        if not self.unknowns.covariance:
            told.append(
                "the model has no covariance: its base parameters are taken as known to "
                "5 %, so the intervals are wide. Fit it with `taufit fit`."
            )
        if ready and self.familiar < _FAMILIAR:
            told.append(
                f"only {100 * self.familiar:.0f} % of this motion lies within the poses and speeds "
                "the model was fitted to; the interval is wider for it. Fit the model to a motion "
                "like this one, or record this one empty and give it as a template."
            )
        strange = np.flatnonzero(self._scale > _STRANGE)
        if len(strange):
            which = ", ".join(str(j + 1) for j in strange)
            told.append(
                f"the model does not explain the torque of joint {which}: "
                f"{np.sqrt(self._scale.max()):.0f} times what it left over in training. Is it this "
                "robot, mounted so, with these gains? Nothing here is to be believed before that "
                "is clear."
            )
        elif not ready:
            told.append(
                "not ready: the joints that carry the payload have to move both ways before "
                "friction can be told from load."
            )
        return told

    def _gain_std(self, given: Any) -> Float[Array, " j"]:
        joints = self.joints
        if given is not None:
            out = np.broadcast_to(np.asarray(given, float), (joints,)).copy()
            if not np.all(np.isfinite(out)) or np.any(out < 0.0):
                raise TaufitError("standard deviations of drive gains are finite and positive.")
            return out
        conditioning = self.model.meta.get("conditioning", {})
        gain, std = conditioning.get("gain"), conditioning.get("gain_std")
        if gain is None or std is None or any(x is None for x in (*gain, *std)):
            return np.full(joints, self.settings.gain_std)
        relative = np.abs(np.array(std, float) / np.array(gain, float))
        return np.maximum(relative, self.settings.gain_std)


def _alike(gain: Any, joints: int) -> Float[Array, "j j"]:
    """Correlation of the errors of drive gains."""
    out = np.eye(joints)
    if gain is None or len(gain) != joints or any(x is None for x in gain):
        return out
    value = np.array(gain, float)
    same = np.abs(np.subtract.outer(value, value)) <= _SAME_TYPE * np.abs(value)
    out[same & ~np.eye(joints, dtype=bool)] = _OF_TYPE
    return 0.5 * (out + out.T)


def _named_change(time: float, mass: float) -> Event:
    """A change of payload; which way is not always clear at the moment it shows."""
    if abs(mass) < _UNCLEAR:
        return Event(time, "change", "the payload changed", mass)
    kind = "pick" if mass > 0.0 else "drop"
    return Event(time, kind, f"{kind}: the payload changed by at least {abs(mass):.1f} kg", mass)


def _linear(found: Posterior, settings: PayloadSettings) -> tuple[Array, Array]:
    """Mean and covariance of the ten parameters under a wide normal prior."""
    weak = np.diag([1e-4, *[4.0] * 3, *[25.0] * 6])
    total = found.information + weak
    size = np.sqrt(np.diag(total))
    covariance = np.linalg.inv(total / np.outer(size, size)) / np.outer(size, size)
    return covariance @ found.target, covariance
