"""Contact detection in recordings, and noise of contact-free ones.

Recordings are fed to `ContactDetector` sample by sample, as a live robot is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.contact.alarm_calibration import alarm_tail
from taufit.contact.contact import Contact, ContactEvent, ContactReading
from taufit.contact.contact_detector import ContactDetector
from taufit.contact.external_torque import ExternalTorque, ExternalTorqueBlock
from taufit.contact.regime_noise import default_noise, learn_contact_free_noise
from taufit.contact.settings import ContactSettings, alarm_rate_text
from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.model.accuracy_statement import has_alarm_rate
from taufit.model.fitted_model import FittedModel
from taufit.model.model_stream import require_temperature
from taufit.model.noise_by_state import NoiseByState
from taufit.payload.filter.time_grid import TimeGrid
from taufit.payload.stream import Stream, stream
from taufit.recording import Recording
from taufit.terms.friction.states import STATES

# External torque beyond this many standard deviations, at all but this fraction of a joint's moving
# samples, if there are at least this many, contradicts the model.
_MAX_DEVIATION, _DEVIATION_QUANTILE, _MIN_MOVING_SAMPLES = 6.0, 0.3, 100


@dataclass(frozen=True, slots=True, eq=False)
class ContactRun:
    """Contacts of a recording.

    Attributes:
        contacts: Contacts in order of time.
        events: All events.
        time: Time of each reading [s].
        torque, torque_std: External joint torque and its standard deviation [N m].
        state: Friction regime of each joint.
        evidence: 2 ln B of a contact.
        threshold: Detection threshold of `evidence`.
        noise: Residual noise by friction regime used.
        settings: Settings of contact detection used.
        seconds: Duration of the recording [s].
        warnings: Messages for the user.
        has_alarm_rate: Whether the false alarm rate of the settings can be stated.
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
    has_alarm_rate: bool = True

    @property
    def alarms_per_hour(self) -> float | None:
        """False alarm rate that the threshold stands for [1/h]; None if it cannot be stated."""
        return self.settings.alarms_per_hour if self.has_alarm_rate else None

    @property
    def refusal(self) -> str:
        """Reason why the contacts must not be used; "" if they may.

        Contacts are temporary. External torque far above noise during nearly all of a joint's
        motion means another robot, gain, sign or load than the model's.
        """
        moving = self.state < STATES.index("standing")
        excess = np.zeros(self.torque.shape[1])
        for j in range(len(excess)):
            if np.count_nonzero(moving[:, j]) >= _MIN_MOVING_SAMPLES:
                size = np.abs(self.torque[moving[:, j], j]) / self.torque_std[moving[:, j], j]
                excess[j] = np.quantile(size, _DEVIATION_QUANTILE)
        contradicting = np.flatnonzero(~(excess < _MAX_DEVIATION))
        if not len(contradicting):
            return ""
        numbers = ", ".join(str(j + 1) for j in contradicting)
        return (
            f"the model does not explain the torque of joint {numbers}: "
            f"{100 * (1 - _DEVIATION_QUANTILE):.0f} % "
            f"of the time it is more than {np.max(excess):.0f} standard deviations off. Is it this "
            "robot, mounted so, with these gains, and does it carry what the model has on it?"
        )

    def to_dict(self) -> dict[str, Any]:
        """Contacts for JSON; none if the model does not explain the torque."""
        tail = self.noise.tail
        contacts = () if self.refusal else self.contacts
        return {
            "refused": self.refusal or None,
            "events": [contact.to_dict() for contact in contacts],
            "log": [event.to_dict() for event in self.events],
            "threshold": detectable_torque_steps(self.noise, self.threshold).tolist(),
            "evidence_threshold": self.threshold,
            "false_alarms_per_hour": self.alarms_per_hour,
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
    callback: Callable[[ContactReading], None] | None = None,
) -> ContactRun:
    """Detect contacts in a recording.

    Args:
        model: Model of the robot including its tool.
        recording: Recording of the same robot.
        noise: Residual noise by friction regime; default that of the model.
        settings: False alarm rate, tool.
        callback: Called with every new reading.
    """
    source = stream(model, recording)
    detector = ContactDetector(model, noise, settings=settings)
    readings: list[ContactReading] = []
    last: ContactReading | None = None
    for sample in _samples(source):
        reading = detector.update_clean(*sample)
        if reading is not None and reading is not last:
            readings.append(reading)
            last = reading
            if callback is not None:
                callback(reading)
    if not readings:
        raise RecordingError(f"{source.name} is too short to say anything about contact.")
    return ContactRun(
        tuple(detector.contacts),
        tuple(detector.events),
        np.array([reading.time for reading in readings]),
        np.array([reading.torque for reading in readings]),
        np.array([reading.torque_std for reading in readings]),
        np.array([reading.state for reading in readings]),
        np.array([reading.evidence for reading in readings]),
        detector.threshold,
        detector.noise,
        detector.settings,
        float(source.time[-1]),
        _warnings(model, detector, source),
        has_alarm_rate(model, detector.noise),
    )


def refine_noise(model: FittedModel, recordings: Sequence[Recording]) -> NoiseByState:
    """Noise by friction regime and tail of the evidence, from contact-free recordings.

    Args:
        model: Model of the robot including its tool.
        recordings: Recordings without contact, preferably of daily work on several days.
    """
    base = model.training.noise or default_noise(model)
    sources = [stream(model, recording) for recording in recordings]
    noise = learn_contact_free_noise(
        model,
        [block for source in sources for block in external_torque_blocks(model, source, base)],
        base,
    )
    noise = replace(noise, runs=len(sources), tail=None)
    evidence = [contact_free_evidence(model, source, noise) for source in sources]
    return replace(noise, tail=alarm_tail(evidence, 1.0 / noise.rate_hz))


def external_torque_blocks(
    model: FittedModel, source: Stream, noise: NoiseByState
) -> list[ExternalTorqueBlock]:
    """External torque of a recording, one block between two gaps."""
    external_torque = ExternalTorque.from_noise(model, noise)
    grid = TimeGrid(1.0 / noise.rate_hz, external_torque.channels, max(0.1, 3.5 / noise.rate_hz))
    out: list[ExternalTorqueBlock] = []

    def close() -> None:
        time, cells = grid.take()
        block = external_torque(time, cells) if len(time) else None
        if block is not None:
            out.append(block)
        grid.clear()
        external_torque.clear()

    for time, position, velocity, torque, temperature in source.samples():
        parts = [position, velocity, torque]
        if external_torque.uses_temperature:
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
    """Evidence of contact in a contact-free run, zero at standstill."""
    detector = ContactDetector(model, noise)
    # Without alarms every peak of evidence is recorded.
    detector.threshold = np.inf
    out: list[float] = []
    last: ContactReading | None = None
    for sample in _samples(source):
        reading = detector.update_clean(*sample)
        if reading is None or reading is last:
            continue
        last = reading
        # At standstill alarms depend on work, not on evidence alone.
        out.append(
            reading.evidence if bool((reading.state < STATES.index("standing")).any()) else 0.0
        )
    return np.array(out)


def detectable_torque_steps(noise: NoiseByState, threshold: float, seconds: float = 0.2) -> Array:
    """Smallest detectable step of external torque at one joint in fast motion [N m].

    With n bins of white noise and a tracked level, A = n / (white^2 + P) approximately.
    """
    white, walk = noise.white[0] ** 2, noise.walk[0] ** 2 / noise.rate_hz
    n = seconds * noise.rate_hz
    level_variance = 0.5 * (walk + np.sqrt(walk**2 + 4.0 * walk * white))
    information = n / (white + level_variance + n * walk / 3.0)
    # 2 ln B = theta^2 A - ln(1 + A P), with P so wide that its logarithm is about 6.
    return np.sqrt((threshold + 6.0) / information)


Sample = tuple[float, Array, Array, Array, Array | None, Array | None]


def _samples(source: Stream) -> Iterator[Sample]:
    """Samples of a stream with the commanded velocity, if recorded."""
    commanded = None if source.commanded is None else source.commanded[1]
    for i, sample in enumerate(source.samples()):
        yield (*sample, None if commanded is None else commanded[i])


def _warnings(model: FittedModel, detector: ContactDetector, source: Stream) -> tuple[str, ...]:
    out = list(source.warnings)
    noise = detector.noise
    if not has_alarm_rate(model, noise):
        out.append(
            "the model is poor, so no rate of false alarms is stated: fit it again, or measure the "
            "rate with --contact-free."
        )
    elif noise.runs == 0:
        out.append(
            "no contact-free recording was given: the threshold is that of arms in general, and "
            "noise of standing joints is taken from friction. Give some with --contact-free."
        )
    elif noise.tail is not None and noise.tail.minutes < 60.0 / detector.settings.alarms_per_hour:
        out.append(
            f"{alarm_rate_text(detector.settings.alarms_per_hour)}: extrapolated from "
            f"{noise.tail.minutes:.1f} contact-free minutes: record more of the robot's own work "
            "to be sure."
        )
    if model.training.noise is None:
        out.append("the model was fitted without noise by friction state: fit it again.")
    return tuple(dict.fromkeys(out))
