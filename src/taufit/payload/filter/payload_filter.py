"""The recommended estimator: everything unknown in one linear model, sample by sample.

Rows of joint i (`arm_rows`) add to a sum of squares of their own (`joint_sums`),

    G_i = integral of [columns, y]' [columns, y] dt / S_i,

S_i the noise density of that joint. At read-out the sums are weighted by how large the residuals
turned out, a column per joint is added for the error of its drive gain (the payload's own torque,
scaled: `gain_uncertainty`), everything but the payload is marginalised (Schur complement:
`posterior`), and the most probable body that can exist is returned (`body`, `read_out`).
Parameters are constants, so this is the Kalman filter without its process noise, in information
form: exact, mergeable, and never losing definiteness.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.model.fitted_model import FittedModel
from taufit.model.intake import intake_of, required_temperature
from taufit.parameters import PER_LINK, joint_parameter, parse_name
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.arm_rows import ArmRows, Rows
from taufit.payload.filter.body import Body, most_probable_body
from taufit.payload.filter.change import Belief, ChangeDetector, Chunk, quick_density
from taufit.payload.filter.event import (
    Event,
    contact,
    earlier_contact,
    gap,
    known_change,
    payload_change,
    pick_or_contact,
)
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.grid import Grid
from taufit.payload.filter.joint_sums import JointSums, carrying
from taufit.payload.filter.lowpass import BANDWIDTH
from taufit.payload.filter.posterior import (
    Evidence,
    Nuisances,
    Posterior,
    all_but_payload,
    payload_alone,
)
from taufit.payload.filter.read_out import STRANGE, carried, lighter_arm, perhaps_nothing, warnings
from taufit.payload.filter.readings import Readings
from taufit.payload.filter.rival import Rival
from taufit.payload.filter.training_coverage import Familiar, coverage_inflation, familiar_share
from taufit.payload.filter.unknowns import unknowns
from taufit.payload.settings import PayloadSettings
from taufit.regression.residual_structure import EXTRAS
from taufit.signals.intake import Intake

__all__ = ["Event", "PayloadFilter", "Posterior"]

# Residuals of a run may be this much smaller than in training, in variance, and no less.
_QUIETEST = 0.5
# Weight of the training's noise level against the run's, in independent values.
_NOISE_TRUST = 20.0
# Seconds after a gap in which the low-pass still holds what was before, times its cut-off.
_SETTLE = 4.0
# A body lighter than this many standard deviations may be none.
_EMPTY = 4.0
# Factor on the noise density of the training where changes are looked for; the alarm goes with it.
_WATCHFUL = 1.15
# An arm lighter than its model by this share of a light payload is another arm.
_LIGHTER = 0.2
# What is known of payload, arm and noise: kept aside until a change is told from a contact.
_KNOWN = (
    *("_sums", "_prior", "_prior_target", "_phi", "_gains", "_body", "_tied", "_faced", "_scale"),
    *("_state", "_last", "_gain_inflation", "_readings", "ready_at", "stopped_at"),
)


class PayloadFilter:
    """Mass, centre of mass and inertia of what an arm carries, while it moves.

    Feed it with `update`, ask it with `estimate` (at about 10 Hz). The torque is that of the joints
    in newton metres, from the same drives and with the same gains as the model's training data.

    Attributes:
        model: Of the empty arm (or with the tool that stays on it).
        settings: How it works.
        gain_std: Relative standard deviation of each joint's drive gain.
        rate_hz: Of its grid.
        samples, cells: Samples that came, and cells of the grid worked off.
        intake: Of the samples given to `update`, once there was one.
        events: Picks, drops and gaps so far.
        ready_at: When the estimate became worth reading [s], or None.
        stopped_at: When the wanted accuracy was reached [s], or None.
    """

    def __init__(
        self,
        model: FittedModel,
        settings: PayloadSettings | None = None,
        *,
        gain_std: Float[Array, " j"] | None = None,
    ) -> None:
        self.model = model
        self.settings = settings = settings or PayloadSettings()
        self.unknowns = unknowns(model, settings)
        joints = self.joints = model.robot.joints
        # Per joint, which of its columns is friction at low speed.
        self._slow = [
            int(np.argmax(rows == self.unknowns.names.index(joint_parameter(j, EXTRAS[0]))))
            for j, rows in enumerate(self.unknowns.rows)
        ]
        conditioning = model.training.conditioning
        rate = conditioning.rate_hz
        self.rate_hz = rate / np.ceil(rate / settings.fastest_hz - 1e-9)
        self.step = 1.0 / self.rate_hz
        self.cutoff_hz = min(conditioning.cutoff_hz, 0.2 * self.rate_hz)
        self._gain_uncertainty = GainUncertainty.of(model, settings, gain_std)
        self.gain_std = self._gain_uncertainty.std
        self._known = Familiar.of(model, settings.standstill)
        self._arm = ArmRows(
            model,
            self.unknowns,
            rate_hz=self.rate_hz,
            cutoff_hz=self.cutoff_hz,
            standstill=settings.standstill,
        )
        self.grid = Grid(self.step, self._arm.channels, max(0.1, 3.5 / self.rate_hz))
        self._row = np.empty(self._arm.channels)
        self.intake: Intake | None = None
        self._prior = self.unknowns.prior.copy()
        self._prior_target = self.unknowns.target.copy()
        self.events: list[Event] = []
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self.time = np.nan
        self.samples = self.cells = 0
        self._phi = np.zeros(10)
        self._body: Body | None = None
        self._last: PayloadEstimate | None = None
        self._gains = np.zeros(joints)
        self._scale = np.ones(joints)
        self._gain_inflation = 1.0
        self._tied = False
        self._state = np.zeros(len(self.unknowns))
        self._faced = False
        self._readings = Readings()
        self.template: Any = None
        self.kept: list[tuple[Array, Array, Array]] | None = None
        self.detector = ChangeDetector(max(settings.windows))
        self._rival: Rival | None = None
        # The change of payload whose size is not known yet, and the mass before it.
        self._unmeasured: tuple[int, float] | None = None
        self._restart_sums()
        self._restart_stream()

    # ---- what comes in -------------------------------------------------------------------------

    def update(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"] | None,
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """One sample as it comes: time [s], joint positions, velocities and torques [N m].

        It goes through an intake (`taufit.signals.intake`): what is no measurement, late or a spike
        is left out, noisy velocity is replaced, and motion is shifted by the model's delay.
        """
        if self.intake is None:
            self.intake = intake_of(self.model)
        for sample in self.intake.push(time, position, velocity, torque, temperature):
            self.feed(*sample[:5])

    def feed(
        self,
        time: float,
        position: Float[Array, " j"],
        velocity: Float[Array, " j"],
        torque: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> None:
        """One clean sample, later than the last, as an intake hands it on."""
        row, joints = self._row, self.joints
        row[:joints] = position
        row[joints : 2 * joints] = velocity
        row[2 * joints : 3 * joints] = torque
        if self._arm.warm:
            row[3 * joints :] = required_temperature(temperature)
        since = self.grid.gap_before(time)
        if since is not None:
            self._work()
            self.events.append(gap(since, time))
            self._restart_stream()
        self.samples += 1
        self.time = time
        self.grid.push(time, row)
        if self.grid.complete >= self.settings.chunk:
            self._work()

    def flush(self) -> None:
        """Work off what waits for the next sample or chunk."""
        if self.intake is not None:
            for sample in self.intake.flush():
                self.feed(*sample[:5])
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
        names = [parse_name(name).what for name in u.names]
        same = np.array(
            [
                part == "links" or name.startswith(("cos_", "sin_"))
                for part, name in zip(u.parts, names, strict=True)
            ]
        )
        factor = np.where(same, 1.0 / np.sqrt(share), 1.0)
        factor[:PER_LINK] = 1.0
        self._prior = self._prior * np.outer(factor, factor)
        self._prior_target = np.zeros(len(u))
        own = u.density if density is None else np.where(np.isnan(density), u.density, density)
        own = np.clip(own, 0.5 * u.density, 2.0 * u.density)
        own = own * (1.0 + 1.0 / runs)
        # White noise of that density behind the low-pass.
        rms = np.sqrt(own * BANDWIDTH * self.cutoff_hz)
        self.unknowns = replace(u, density=own, rms=rms)
        # Where the template has been, nothing is new.
        self._known = Familiar.everywhere(self.joints)

    def _restart_stream(self) -> None:
        # Whether a change has ended is not known across a gap.
        self._rival = None
        self.grid.clear()
        self._arm.clear()
        self.detector.clear()
        self._settling = 0
        if self.samples:
            self._settle()
            self._marginalise_starts()

    def _settle(self) -> None:
        """Rows to come mix both so long as the low-pass still holds what was before."""
        self._settling = int(_SETTLE / self.cutoff_hz * self.rate_hz)

    def _restart_sums(self) -> None:
        sizes = [len(rows) + 1 for rows in self.unknowns.rows]
        self._sums = [JointSums(np.zeros((size, size))) for size in sizes]

    def _marginalise_starts(self) -> None:
        """Where friction stood before the gap no longer matters: integrated out joint by joint."""
        names = self.unknowns.names
        for sums, rows in zip(self._sums, self.unknowns.rows, strict=True):
            gone = np.array(
                [k for k, i in enumerate(rows) if parse_name(names[i]).what.startswith("start_")]
            )
            sums.marginalise(gone, np.diag(self._prior)[rows[gone]])

    def _work(self) -> None:
        """Rows of the cells that are complete, into the sums."""
        time, cells = self.grid.take()
        self.cells += len(time)
        rows = self._arm(time, cells, self._phi) if len(time) else None
        if rows is None:
            return
        if self.kept is not None:
            self.kept.append((rows.position, rows.velocity, rows.y))
        if self.template is not None:
            rows = rows.less(*self.template.residual(rows.position, rows.velocity))
        if self._rival is not None:
            self._decide(self._chunk(rows, self._weight(rows)))
        skip = min(self._settling, len(rows))
        self._settling -= skip
        if skip < len(rows):
            self._add(rows.after(skip) if skip else rows)

    def _add(self, rows: Rows) -> None:
        u, settings = self.unknowns, self.settings
        seconds, still = len(rows) * self.step, rows.still
        weight = self._weight(rows)
        if np.isfinite(settings.memory):
            left = float(np.exp(-seconds / settings.memory))
            for sums in self._sums:
                sums.fade(left)
        for j, sums in enumerate(self._sums):
            own, w = rows.of(j), weight[:, j]
            sums.add(own, w, still[:, j], rows.velocity[:, j], self.step, u.density[j])
        if settings.detect:
            chunk = self._chunk(rows, weight)
            self.detector.add(chunk)
            if self._faced and self._rival is None:
                self._look_for_change(chunk.time)

    def _weight(self, rows: Rows) -> Float[Array, "n j"]:
        """Of each row: at standstill friction is anywhere in its band, for as long as it lasts."""
        u = self.unknowns
        band = (0.5 * u.level + 2.0 * u.rms) ** 2 * 2.0
        weight = 1.0 / (1.0 + band * rows.still / u.density)
        return self._known.discounted(weight, rows.position, rows.velocity)

    def _chunk(self, rows: Rows, weight: Float[Array, "n j"]) -> Chunk:
        """Rows to look for changes in: in motion only, at standstill friction may do anything."""
        each = [(rows.of(j), weight[:, j]) for j in range(self.joints)]
        return Chunk(
            float(rows.time[-1]),
            len(rows) * self.step,
            tuple((own, np.where(w > 0.5, w, 0.0)) for own, w in each),
            tuple(w for _, w in each),
        )

    # ---- picks and drops -----------------------------------------------------------------------

    def _look_for_change(self, time: float) -> None:
        belief = self._belief()
        found = self.detector.look(belief, self.settings.windows, self.settings.light)
        if found.evidence > self.settings.alarm:
            self.events.append(pick_or_contact(time))
            self._take_back()
            kept = {name: deepcopy(getattr(self, name)) for name in _KNOWN}
            place, light = len(self.events) - 1, self.settings.light
            self._rival = Rival(time, place, found, belief, light, kept)
            self._start_anew()

    def _decide(self, chunk: Chunk) -> None:
        """Whether the last change was a pick or a contact, once that is clear."""
        rival = self._rival
        assert rival is not None
        was_contact = rival.look(chunk)
        if was_contact is None:
            return
        self._rival = None
        if not was_contact and self._was_read_in_contact(rival):
            self.events[rival.event] = earlier_contact(rival.time)
            return
        if not was_contact:
            self.events[rival.event] = payload_change(rival.time, rival.mass)
            before = rival.kept["_last"]
            if before is not None and before.ready:
                self._unmeasured = (rival.event, before.mass)
            return
        self.events[rival.event] = contact(rival.time, chunk.time)
        for name, value in rival.kept.items():
            setattr(self, name, value)
        self.detector.clear()
        self._settle()

    def _was_read_in_contact(self, rival: Rival) -> bool:
        """Whether what has changed was no payload but a push while the payload was first read."""
        mass, spread = self.posterior().linear()
        readings: Readings = rival.kept["_readings"]
        return readings.ended_contact(rival.time, float(mass[0]), float(np.sqrt(spread[0, 0])))

    def _belief(self) -> Belief:
        """What the last read-out says, column by column."""
        u, last = self.unknowns, self._last
        assert last is not None
        louder = np.maximum(self._scale, 1.0)
        density = quick_density(u.density / self.settings.noise_factor, u.rms, self.cutoff_hz)
        density = density * louder * _WATCHFUL
        # Friction of a joint that has not turned both ways yet may be taken for load.
        one_way = [not sums.both_ways for sums in self._sums]
        mass, std = last.mass, last.mass_std
        moments = np.hypot(max(mass, std) * last.centre_std, last.centre * std)
        return Belief(
            [self._explained(j) for j in range(self.joints)],
            np.where(one_way, np.inf, density),
            u.rms * np.sqrt(louder),
            u.level,
            self._slow,
            np.append(std, moments),
        )

    def _explained(self, j: int) -> Float[Array, " c"]:
        """x with [columns, y] x what is left of joint j's torque, its sign turned."""
        x = np.append(self._state[self.unknowns.rows[j]], -1.0)
        x[:PER_LINK] *= 1.0 + self._gains[j]
        return x

    @property
    def undecided(self) -> bool:
        """Whether the last change may still turn out to be a contact."""
        return self._rival is not None

    def _take_back(self) -> None:
        """The last moments are not of what was there before them."""
        for chunk in self.detector.chunks:
            # What has begun to be forgotten is taken back as far as it is still there.
            age = self.detector.chunks[-1].time - chunk.time
            left = float(np.exp(-age / self.settings.memory))
            for j, ((rows, _), w) in enumerate(zip(chunk.rows, chunk.weights, strict=True)):
                step = left * chunk.seconds / len(w)
                self._sums[j].take_back(rows, w, step, self.unknowns.density[j])
        self.detector.clear()

    def _start_anew(self) -> None:
        self._prior, self._prior_target = all_but_payload(self._evidence())
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
        self._readings = Readings()
        self._settle()
        self._scale = np.maximum(self._scale, 1.0)
        self.ready_at = self.stopped_at = None

    # ---- what comes out ------------------------------------------------------------------------

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with everything else marginalised.

        Args:
            without: Sources of error taken as known: "links", "friction", "gains".
        """
        return self._posterior(self._gain_covariance(), without)[0]

    def _posterior(
        self, gains: Float[Array, "j j"], without: tuple[str, ...] = ()
    ) -> tuple[Posterior, Nuisances]:
        information, target, rest = payload_alone(
            self._evidence(),
            self._phi,
            np.linalg.inv(self._gain_inflation * gains),
            self.settings.gain_common,
            without,
        )
        inflation = coverage_inflation(self.familiar)
        found = Posterior(information / inflation, target / inflation, self._scale, self._gains)
        return found, rest

    def _evidence(self) -> Evidence:
        return Evidence(
            self.unknowns,
            self._prior,
            self._prior_target,
            [sums.square for sums in self._sums],
            self._scale,
            self._tied,
        )

    def _gain_covariance(self) -> Float[Array, "j j"]:
        """Of the errors of the drive gains, at the levers of the run: rms arms of the weight."""
        pairs = zip(self._sums, self.unknowns.density, strict=True)
        levers = np.array([sums.lever(self._phi, density) for sums, density in pairs])
        return self._gain_uncertainty.covariance(levers)

    @property
    def familiar(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        return familiar_share(self._sums, self.step)

    @property
    def gain_errors(self) -> Float[Array, " j"]:
        """What the joints say about each other's drive gains, relative."""
        return self._gains.copy()

    def budget(self) -> dict[str, float]:
        """Share of noise, links, friction and gains in the variance of the mass."""
        sources = ("links", "friction", "gains")

        def variance(without: tuple[str, ...]) -> float:
            return float(self.posterior(without).linear()[1][0, 0])

        whole = variance(())
        parts = {name: max(whole - variance((name,)), 0.0) for name in sources}
        parts = {"noise": variance(sources), **parts}
        total = sum(parts.values())
        return {name: value / total for name, value in parts.items()}

    def estimate(self) -> PayloadEstimate:
        """What is carried, as far as the chunks worked off so far tell; `flush` for the rest."""
        settings = self.settings
        gains = self._gain_covariance()
        found, rest = self._posterior(gains)
        seen = sum(sums.seconds for sums in self._sums) > 0.0
        linear, spread = found.linear()
        self._face(linear, rest, gains)
        mass, std = float(linear[0]), float(np.sqrt(spread[0, 0]))
        if not seen or mass < _EMPTY * std:
            out = perhaps_nothing(self.time, mass, std, settings.com_spread)
        else:
            start = None if self._body is None else self._body.x
            self._body = most_probable_body(found.information, found.target, settings, start)
            out = carried(self.time, self._body)
        lighter = mass < -max(_EMPTY * std, _LIGHTER * settings.light)
        ready = self._ready(out.mass, out.mass_std) and not lighter
        self._faced = ready
        if ready:
            self._phi = out.parameters.copy()
        elif seen:
            self._phi = np.where(std < 0.5 * mass, 1.0, 0.0) * out.parameters
        accurate = self.stopped_at is not None or (ready and self._accurate(out))
        if seen and self.ready_at is None:
            self._readings.add(self.time, mass, std)
        if ready and self.ready_at is None:
            self.ready_at = self.time
        if ready and self._unmeasured is not None and self._rival is None:
            place, before = self._unmeasured
            self.events[place] = known_change(self.events[place], before, out.mass)
            self._unmeasured = None
        if accurate and self.stopped_at is None:
            self.stopped_at = self.time
        messages = warnings(
            self.events,
            covariance=self.unknowns.covariance,
            ready=ready or lighter,
            familiar=self.familiar,
            scale=self._scale,
        )
        if lighter and seen:
            messages = [lighter_arm(mass), *messages]
        self._last = replace(out, ready=ready, accurate=accurate, warnings=tuple(messages))
        return self._last

    def _face(self, phi: Float[Array, " 10"], rest: Nuisances, gains: Float[Array, "j j"]) -> None:
        """Everything else with payload phi: gains, and how large each joint's residuals are."""
        u = self.unknowns
        self._state, self._gains = rest.at(phi, u.rows, len(u))
        # Joints that contradict each other by more than their gains may differ widen all gains.
        self._gain_inflation = self._gain_uncertainty.factor(self._gains, gains)
        scale = np.empty(self.joints)
        for j, sums in enumerate(self._sums):
            x = self._explained(j)
            left = max(float(x @ sums.square @ x), 0.0)
            expected = sums.seconds * u.rms[j] ** 2 / u.density[j]
            scale[j] = max((_NOISE_TRUST + left) / (_NOISE_TRUST + expected), _QUIETEST)
        self._scale = scale

    def _ready(self, mass: float, std: float) -> bool:
        """The joints that carry the payload were seen in both directions, and it shows."""
        if not any(sums.load > 0.0 for sums in self._sums):
            return False
        carries = np.flatnonzero(carrying(self._sums))
        if not all(self._sums[j].both_ways and self._scale[j] <= STRANGE for j in carries):
            return False
        return std <= self.settings.ready_mass * max(mass, self.settings.light)

    def _accurate(self, out: PayloadEstimate) -> bool:
        """Mass and centre as well known as wanted, what no motion shrinks (the gains) apart."""
        settings = self.settings
        if not (out.empty or np.all(out.centre_std <= settings.com_accuracy)):
            return False
        goal = settings.mass_accuracy * max(out.mass, settings.light)
        if out.mass_std <= goal:
            return True
        known = self.posterior(without=("gains",)).linear()[1]
        return bool(np.sqrt(known[0, 0]) <= goal)
