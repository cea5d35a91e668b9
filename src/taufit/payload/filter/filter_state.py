"""What the rows so far say of payload, arm and noise, and how it is read out.

At read-out the joints' sums are weighted by how large the residuals turned out, a column per joint
is added for the error of its drive gain (the payload's own torque, scaled: `gain_uncertainty`),
everything but the payload is marginalised (Schur complement: `posterior`), and the most probable
body that can exist is returned (`body`, `read_out`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import PER_LINK, parse_name
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter.arm_rows import PayloadRows
from taufit.payload.filter.body import Body, most_probable_body
from taufit.payload.filter.change_detector import RowBlock
from taufit.payload.filter.event import PayloadEvent
from taufit.payload.filter.gain_uncertainty import GainUncertainty
from taufit.payload.filter.joint_sums import JointSums, loaded_joints
from taufit.payload.filter.nuisance_model import NuisanceModel
from taufit.payload.filter.posterior import (
    FilterInformation,
    NuisancePosterior,
    Posterior,
    marginalise_nuisances,
    marginalise_payload,
)
from taufit.payload.filter.posterior_summary import (
    STRANGE,
    body_estimate,
    lighter_robot_warning,
    no_load_estimate,
    unexplained,
    warnings,
)
from taufit.payload.filter.training_coverage import coverage_inflation, covered_share
from taufit.payload.settings import PayloadSettings

# Contacts are over after this long [s].
_CONTACT_S = 1.0
# Masses are the same within this many standard deviations.
_SAME = 2.0


class MassHistory:
    """The masses of the last second, and the one before it."""

    __slots__ = ("_past",)

    def __init__(self) -> None:
        self._past: deque[tuple[float, float, float]] = deque()

    def add(self, time: float, mass: float, std: float) -> None:
        """A mass that is not worth anything yet, or is so since now.

        Args:
            time: [s].
            mass, std: As read [kg].
        """
        self._past.append((time, mass, std))
        while len(self._past) > 1 and self._past[1][0] <= time - _CONTACT_S:
            self._past.popleft()

    def ended_contact(self, time: float, mass: float, std: float) -> bool:
        """Whether a change was the end of a contact.

        Args:
            time: When it was noticed [s].
            mass, std: What is carried since then [kg].
        """
        if not self._past:
            return False
        # The last reading is that with which the payload became known.
        earlier, before, spread = self._past[0]
        known = self._past[-1][0]
        if time - known > _CONTACT_S or earlier > known - _CONTACT_S:
            return False
        return abs(mass - before) < _SAME * float(np.hypot(std, spread))


# Residuals of a run may be this much smaller than in training, in variance, and no less.
_QUIETEST = 0.5
# Weight of the training's noise level against the run's, in independent values.
_NOISE_TRUST = 20.0
# A body lighter than this many standard deviations may be none.
_EMPTY = 4.0
# An arm lighter than its model by this share of a light payload is another arm.
_LIGHTER = 0.2


class PayloadFilterState:
    """Of one payload; another one begins with what is known of all but the payload (`anew`).

    Args:
        unknowns: Columns, their prior, noise.
        settings: Of the filter.
        gains: How uncertain the drive gains are.
        step: Time between two rows [s].

    Attributes:
        sums: Of squares, one per joint.
        prior, prior_target: Of all unknowns, in information form.
        phi: Payload parameters that columns may depend on.
        gains, gain_inflation: Errors of the drive gains, and how much wider they are taken.
        scale: Variance of each joint's residuals over that in training.
        state: The unknowns at the last read-out.
        tied: Whether the prior is one of all unknowns together.
        faced: Whether the last estimate was worth reading.
        last: The last estimate, or None.
        readings: Estimates before one was worth reading.
        ready_at, stopped_at: When it was, and when as accurate as wanted [s], or None.
    """

    def __init__(
        self,
        unknowns: NuisanceModel,
        settings: PayloadSettings,
        gains: GainUncertainty,
        step: float,
    ) -> None:
        self.unknowns, self.settings, self.step = unknowns, settings, step
        self._gain_uncertainty = gains
        self.joints = len(unknowns.rows)
        self.prior, self.prior_target = unknowns.prior.copy(), unknowns.target.copy()
        self.scale = np.ones(self.joints)
        self.state = np.zeros(len(unknowns))
        self.gain_inflation = 1.0
        self.tied = False
        self.last: PayloadEstimate | None = None
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of the payload."""
        sizes = [len(rows) + 1 for rows in self.unknowns.rows]
        self.sums = [JointSums(np.zeros((size, size))) for size in sizes]
        self.phi, self.gains = np.zeros(PER_LINK), np.zeros(self.joints)
        self.body: Body | None = None
        self.faced = False
        self.readings = MassHistory()
        self.ready_at: float | None = None
        self.stopped_at: float | None = None
        self._lighter: float | None = None

    def anew(self) -> PayloadFilterState:
        """Of the next payload: all but the payload is known as well as now. This one stays."""
        new = copy(self)
        new.prior, new.prior_target = marginalise_payload(self._evidence())
        new._begin()
        # Friction stays known: what the joints have shown of it counts on.
        for sums, before in zip(new.sums, self.sums, strict=True):
            sums.forward, sums.backward = before.forward, before.backward
        new.tied = True
        new.scale = np.maximum(self.scale, 1.0)
        return new

    # ---- what comes in -------------------------------------------------------------------------

    def add(self, rows: PayloadRows, weight: Float[Array, "n j"]) -> None:
        """Rows with a weight each; what was before fades."""
        if np.isfinite(self.settings.memory):
            left = float(np.exp(-len(rows) * self.step / self.settings.memory))
            for sums in self.sums:
                sums.fade(left)
        for j, sums in enumerate(self.sums):
            own, w, still = rows.of(j), weight[:, j], rows.still[:, j]
            density = self.unknowns.density[j]
            sums.add(own, w, still, rows.velocity[:, j], self.step, density)

    def take_back(self, chunks: Sequence[RowBlock]) -> None:
        """The last chunks that were added are not of what was there before them."""
        for chunk in chunks:
            # What has begun to be forgotten is taken back as far as it is still there.
            age = chunks[-1].time - chunk.time
            left = float(np.exp(-age / self.settings.memory))
            for j, ((rows, _), w) in enumerate(zip(chunk.rows, chunk.weights, strict=True)):
                step = left * chunk.seconds / len(w)
                self.sums[j].take_back(rows, w, step, self.unknowns.density[j])

    def marginalise_starts(self) -> None:
        """Where friction stood before a gap no longer matters: integrated out joint by joint."""
        names = self.unknowns.names
        for sums, rows in zip(self.sums, self.unknowns.rows, strict=True):
            gone = np.array(
                [k for k, i in enumerate(rows) if parse_name(names[i]).what.startswith("start_")]
            )
            sums.marginalise(gone, np.diag(self.prior)[rows[gone]])

    def cancel_arm(self, share: float, density: Float[Array, " j"], rms: Array) -> None:
        """The arm's own errors are a share of their variance, and noise is of this density."""
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
        self.prior = self.prior * np.outer(factor, factor)
        self.prior_target = np.zeros(len(u))
        self.unknowns = replace(u, density=density, rms=rms)

    # ---- what comes out ------------------------------------------------------------------------

    @property
    def seen(self) -> bool:
        """Whether any row has come."""
        return sum(sums.seconds for sums in self.sums) > 0.0

    @property
    def familiar(self) -> float:
        """Share of the motion, at the joints that carry, within what the model was fitted to."""
        return covered_share(self.sums, self.step)

    def posterior(self, without: tuple[str, ...] = ()) -> Posterior:
        """Information on the payload with all but the payload and `without` marginalised."""
        return self._posterior(self._gain_covariance(), without)[0]

    def read(self, time: float) -> PayloadEstimate:
        """What is carried, without `warnings`."""
        settings = self.settings
        gains = self._gain_covariance()
        found, rest = self._posterior(gains)
        seen = self.seen
        linear, spread = found.linear()
        self._face(linear, rest, gains)
        mass, std = float(linear[0]), float(np.sqrt(spread[0, 0]))
        if not seen or mass < _EMPTY * std:
            out = no_load_estimate(time, mass, std, settings.com_spread)
        else:
            start = None if self.body is None else self.body.x
            self.body = most_probable_body(found.information, found.target, settings, start)
            out = body_estimate(time, self.body)
        lighter = mass < -max(_EMPTY * std, _LIGHTER * settings.light)
        self._lighter = mass if lighter else None
        ready = self._ready(out.mass, out.mass_std) and not lighter
        self.faced = ready
        if ready:
            self.phi = out.parameters.copy()
        elif seen:
            self.phi = np.where(std < 0.5 * mass, 1.0, 0.0) * out.parameters
        accurate = self.stopped_at is not None or (ready and self._accurate(out))
        if seen and self.ready_at is None:
            self.readings.add(time, mass, std)
        if ready and self.ready_at is None:
            self.ready_at = time
        if accurate and self.stopped_at is None:
            self.stopped_at = time
        return replace(out, ready=ready, accurate=accurate)

    def warnings(self, ready: bool, events: list[PayloadEvent]) -> tuple[str, ...]:
        """What a user of the last reading has to know."""
        messages = warnings(
            events,
            covariance=self.unknowns.covariance,
            ready=ready or self._lighter is not None,
            familiar=self.familiar,
            scale=self.scale,
        )
        if self._lighter is not None and self.seen:
            messages = [lighter_robot_warning(self._lighter), *messages]
        return tuple(messages)

    @property
    def unexplained(self) -> str:
        """Why the model is not that of this arm, where it is not; else ""."""
        if self._lighter is not None and self.seen:
            return lighter_robot_warning(self._lighter)
        return unexplained(self.scale)

    def explained(self, j: int) -> Float[Array, " c"]:
        """x with [columns, y] x what is left of joint j's torque, its sign turned."""
        x = np.append(self.state[self.unknowns.rows[j]], -1.0)
        x[:PER_LINK] *= 1.0 + self.gains[j]
        return x

    def _posterior(
        self, gains: Float[Array, "j j"], without: tuple[str, ...] = ()
    ) -> tuple[Posterior, NuisancePosterior]:
        information, target, rest = marginalise_nuisances(
            self._evidence(),
            self.phi,
            np.linalg.inv(self.gain_inflation * gains),
            self.settings.gain_common,
            without,
        )
        inflation = coverage_inflation(self.familiar)
        found = Posterior(information / inflation, target / inflation, self.scale, self.gains)
        return found, rest

    def _evidence(self) -> FilterInformation:
        return FilterInformation(
            self.unknowns,
            self.prior,
            self.prior_target,
            [sums.square for sums in self.sums],
            self.scale,
            self.tied,
        )

    def _gain_covariance(self) -> Float[Array, "j j"]:
        """Of the errors of the drive gains, at the levers of the run: rms arms of the weight."""
        pairs = zip(self.sums, self.unknowns.density, strict=True)
        levers = np.array([sums.lever(self.phi, density) for sums, density in pairs])
        return self._gain_uncertainty.covariance(levers)

    def _face(
        self, phi: Float[Array, " 10"], rest: NuisancePosterior, gains: Float[Array, "j j"]
    ) -> None:
        """Everything else with payload phi: gains, and how large each joint's residuals are."""
        u = self.unknowns
        self.state, self.gains = rest.at(phi, u.rows, len(u))
        # Joints that contradict each other by more than their gains may differ widen all gains.
        self.gain_inflation = self._gain_uncertainty.factor(self.gains, gains)
        scale = np.empty(self.joints)
        for j, sums in enumerate(self.sums):
            x = self.explained(j)
            left = max(float(x @ sums.square @ x), 0.0)
            expected = sums.seconds * u.rms[j] ** 2 / u.density[j]
            scale[j] = max((_NOISE_TRUST + left) / (_NOISE_TRUST + expected), _QUIETEST)
        self.scale = scale

    def _ready(self, mass: float, std: float) -> bool:
        """The joints that carry the payload were seen in both directions, and it shows."""
        if not any(sums.load > 0.0 for sums in self.sums):
            return False
        carries = np.flatnonzero(loaded_joints(self.sums))
        if not all(self.sums[j].both_ways and self.scale[j] <= STRANGE for j in carries):
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
