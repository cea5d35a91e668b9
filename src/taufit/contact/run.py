"""Whole recordings through the watch: contacts of a run, and noise of contact-free ones.

A file is fed to `ContactWatch` sample by sample: what it says is what a stream would have said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.contact.calibrate import alarm_tail
from taufit.contact.contact import Contact, ContactEvent, ContactReading
from taufit.contact.contact_detector import ContactDetector
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.contact.noise import default_noise, learn_contact_free_noise
from taufit.contact.settings import ContactSettings
from taufit.core.arrays import Array, Float, Int
from taufit.core.errors import RecordingError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import require_temperature
from taufit.model.noise_by_state import NoiseByState
from taufit.payload.filter.time_grid import TimeGrid
from taufit.payload.stream import Stream, stream
from taufit.recording import Recording
from taufit.terms.friction.states import STATES

# External torque beyond so many standard deviations, at all but this share of a joint's moving
# samples, of which there are so many, is no contact.
_STRANGE, _SELDOM, _ENOUGH = 6.0, 0.3, 100


@dataclass(frozen=True, slots=True, eq=False)
class ContactRun:
    """A recording worked through.

    Attributes:
        contacts: In order of time.
        events: Everything that happened.
        time: Of each step [s].
        torque, torque_std: External joint torque and its standard deviation there [N m].
        state: Friction state of each joint.
        evidence: 2 ln B for a contact.
        threshold: That an alarm needed.
        noise: Residuals by friction state that it was judged by.
        settings: How contacts were looked for.
        seconds: Of the recording.
        warnings: What the user should know.
    """

    contacts: tuple[Contact, ...]
    events: tuple[ContactEvent, ...]
    time: Float[Array, " n"]
    torque: Float[Array, "n j"]
    torque_std: Float[Array, "n j"]
    state: Int[Array, "n j"]
    evidence: Float[Array, " n"]
    threshold: float
    noise: NoiseByState
    settings: ContactSettings
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Why the contacts must not be used, where they must not; else "".

        A contact comes and goes. Torque that is far beyond the noise nearly all of the time the
        joint moves is another arm, gain, sign or load than the model's.
        """
        moving = self.state < STATES.index("standing")
        excess = np.zeros(self.torque.shape[1])
        for j in range(len(excess)):
            if np.count_nonzero(moving[:, j]) >= _ENOUGH:
                size = np.abs(self.torque[moving[:, j], j]) / self.torque_std[moving[:, j], j]
                excess[j] = np.quantile(size, _SELDOM)
        strange = np.flatnonzero(~(excess < _STRANGE))
        if not len(strange):
            return ""
        which = ", ".join(str(j + 1) for j in strange)
        return (
            f"the model does not explain the torque of joint {which}: {100 * (1 - _SELDOM):.0f} % "
            f"of the time it is more than {np.max(excess):.0f} standard deviations off. Is it this "
            "robot, mounted so, with these gains, and does it carry what the model has on it?"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; no contact is named where the model does not explain the torque."""
        tail = self.noise.tail
        contacts = () if self.refusal else self.contacts
        return {
            "refused": self.refusal or None,
            "events": [contact.to_dict() for contact in contacts],
            "log": [event.to_dict() for event in self.events],
            "threshold": detectable_torque_steps(self.noise, self.threshold).tolist(),
            "evidence_threshold": self.threshold,
            "false_alarms_per_hour": self.settings.alarms_per_hour,
            "rests_on_minutes": 0.0 if tail is None else tail.minutes,
            "free_runs": self.noise.runs,
            "seconds": self.seconds,
            "state_shares": {
                name: float(np.mean(self.state == k)) if len(self.state) else 0.0
                for k, name in enumerate(STATES)
            },
            "sign": "what the outside does to the joints",
            "safety_function": False,
            "warnings": list(self.warnings),
        }


def find_contacts(
    model: FittedModel,
    recording: Recording,
    *,
    noise: NoiseByState | None = None,
    settings: ContactSettings | None = None,
    watch: Callable[[ContactReading], None] | None = None,
) -> ContactRun:
    """What touched the arm in a recording.

    Args:
        model: Of the arm with all that is on it.
        recording: Of the same arm.
        noise: Residuals by friction state; the model's by default.
        settings: Rate of false alarms, tool.
        watch: Called whenever something new is felt, for displays.
    """
    source = stream(model, recording)
    live = ContactDetector(model, noise, settings=settings)
    kept: list[ContactReading] = []
    last: ContactReading | None = None
    for sample in _samples(source):
        seen = live.feed(*sample)
        if seen is not None and seen is not last:
            kept.append(seen)
            last = seen
            if watch is not None:
                watch(seen)
    if not kept:
        raise RecordingError(f"{source.name} is too short to say anything about contact.")
    return ContactRun(
        tuple(live.contacts),
        tuple(live.events),
        np.array([seen.time for seen in kept]),
        np.array([seen.torque for seen in kept]),
        np.array([seen.torque_std for seen in kept]),
        np.array([seen.state for seen in kept]),
        np.array([seen.evidence for seen in kept]),
        live.threshold,
        live.noise,
        live.settings,
        float(source.time[-1]),
        _warnings(model, live, source),
    )


def refine_noise(model: FittedModel, recordings: Sequence[Recording]) -> NoiseByState:
    """Noise by friction state and the tail of false evidence, from contact-free recordings.

    Args:
        model: Of the arm with all that is on it.
        recordings: In which nothing touched it, best of its daily work and of several days.
    """
    base = model.training.noise or default_noise(model)
    sources = [stream(model, one) for one in recordings]
    noise = learn_contact_free_noise(
        model, [one for s in sources for one in external_torque_blocks(model, s, base)], base
    )
    noise = replace(noise, runs=len(sources), tail=None)
    evidence = [contact_free_evidence(model, source, noise) for source in sources]
    return replace(noise, tail=alarm_tail(evidence, 1.0 / noise.rate_hz))


def external_torque_blocks(
    model: FittedModel, source: Stream, noise: NoiseByState
) -> list[ExternalTorqueBlock]:
    """External torque of a recording, one part between two gaps."""
    sensed = ExternalTorque.of(model, noise)
    grid = TimeGrid(1.0 / noise.rate_hz, sensed.channels, max(0.1, 3.5 / noise.rate_hz))
    out: list[ExternalTorqueBlock] = []

    def close() -> None:
        time, cells = grid.take()
        felt = sensed(time, cells) if len(time) else None
        if felt is not None:
            out.append(felt)
        grid.clear()
        sensed.clear()

    for time, position, velocity, torque, temperature in source.samples():
        parts = [position, velocity, torque]
        if sensed.warm:
            parts.append(require_temperature(temperature))
        row = np.concatenate(parts)
        if grid.gap_before(time) is not None:
            close()
        grid.push(time, row)
    close()
    return out


def contact_free_evidence(
    model: FittedModel, source: Stream, noise: NoiseByState
) -> Float[Array, " n"]:
    """Evidence for contact in a run that has none; starts and stops beyond training left out."""
    live = ContactDetector(model, noise)
    # Nothing is told here, so that every peak is seen.
    live.threshold = np.inf
    out: list[float] = []
    last: ContactReading | None = None
    for sample in _samples(source):
        seen = live.feed(*sample)
        if seen is None or seen is last:
            continue
        last = seen
        # At rest an alarm is judged by work, not by evidence alone.
        out.append(seen.evidence if bool((seen.state < STATES.index("standing")).any()) else 0.0)
    return np.array(out)


def detectable_torque_steps(noise: NoiseByState, threshold: float, seconds: float = 0.2) -> Array:
    """Step of external torque at one joint, sliding fast, that reaches the threshold [N m].

    With n cells of white noise and a level followed until then, A = n / (white^2 + P) about.
    """
    white, walk = noise.white[0] ** 2, noise.walk[0] ** 2 / noise.rate_hz
    n = seconds * noise.rate_hz
    settled = 0.5 * (walk + np.sqrt(walk**2 + 4.0 * walk * white))
    information = n / (white + settled + n * walk / 3.0)
    # 2 ln B = theta^2 A - ln(1 + A P), with P so wide that its logarithm is about 6.
    return np.sqrt((threshold + 6.0) / information)


Sample = tuple[float, Array, Array, Array, Array | None, Array | None]


def _samples(source: Stream) -> Iterator[Sample]:
    """Samples of a stream, each with the commanded velocity where it was recorded."""
    commanded = None if source.commanded is None else source.commanded[1]
    for i, sample in enumerate(source.samples()):
        yield (*sample, None if commanded is None else commanded[i])


def _warnings(model: FittedModel, live: ContactDetector, source: Stream) -> tuple[str, ...]:
    out = list(source.warnings)
    noise = live.noise
    if noise.runs == 0:
        out.append(
            "no contact-free recording was given: the threshold is that of arms in general, and "
            "noise of standing joints is taken from friction. Give some with --free."
        )
    elif noise.tail is not None and noise.tail.minutes < 60.0 / live.settings.alarms_per_hour:
        out.append(
            f"{live.settings.alarms_per_hour:g} false alarms per hour are extrapolated from "
            f"{noise.tail.minutes:.1f} contact-free minutes: record more of the robot's own work "
            "to be sure."
        )
    if model.training.noise is None:
        out.append("the model was fitted without noise by friction state: fit it again.")
    return tuple(dict.fromkeys(out))
