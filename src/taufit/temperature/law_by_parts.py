"""Temperature-dependent friction for samples processed in parts."""

from __future__ import annotations

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import ThermalState
from taufit.signals.sample_source import SamplesInMemory, SampleSource
from taufit.signals.samples import Samples
from taufit.signals.storage.stored_samples import StoredSamples
from taufit.temperature.apply import with_temperature_law

# A law is chosen on this many runs, evenly spread from the coldest to the warmest, and this many
# samples of each.
_RUN_COUNT, _SECTION_SAMPLES = 16, 4096


@dataclass(frozen=True, slots=True, eq=False)
class TemperatureLawFit:
    """Model with a temperature law, or the unchanged model.

    Attributes:
        model: Model whose friction may follow temperature.
        source: Samples with usable temperatures.
        law: "none" if friction does not follow temperature.
        dropped: Temperature slopes fixed at zero.
        findings: Messages for the user.
        thermal: Thermal state if temperature was estimated.
    """

    model: TorqueModel
    source: SampleSource
    law: str = "none"
    dropped: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    thermal: ThermalState | None = None


def with_temperature_law_by_parts(
    model: TorqueModel, source: SampleSource, choice: str
) -> TemperatureLawFit:
    """Choose the temperature law that the samples support.

    Samples in files are judged by sections of runs from the coldest to the warmest; estimating
    temperatures from heat needs all of them in memory, within a limit.
    """
    stored = isinstance(source, StoredSamples)
    measured = (source.head if stored else source.gather()).temperature is not None
    if not stored or choice == "thermal-model" or not measured:
        choice_result = with_temperature_law(
            model,
            source.gather_limited("temperature estimated from heat") if stored else source.gather(),
            choice,
        )
        return TemperatureLawFit(
            choice_result.model,
            SamplesInMemory(choice_result.samples),
            choice_result.law,
            choice_result.dropped,
            tuple(choice_result.findings),
            choice_result.thermal,
        )
    choice_result = with_temperature_law(model, _coldest_to_warmest(source), choice)
    if choice_result.law != "none":
        assert isinstance(source, StoredSamples)
        source = source.with_transform(_with_repaired_temperature)
    return TemperatureLawFit(
        choice_result.model,
        source,
        choice_result.law,
        choice_result.dropped,
        tuple(choice_result.findings),
    )


def _coldest_to_warmest(source: SampleSource) -> Samples:
    """Sections of runs that together cover all temperatures."""
    assert isinstance(source, StoredSamples)
    temperatures = [
        float(np.mean(part.summary.ranges["temperature"].high)) for part in source.parts
    ]
    order = np.argsort(temperatures, kind="stable")
    selected = np.unique(
        np.linspace(0, len(order) - 1, min(_RUN_COUNT, len(order))).round().astype(int)
    )
    parts = []
    for k in order[selected].tolist():
        part = source.part(k)
        middle = len(part) // 2
        first = max(0, middle - _SECTION_SAMPLES // 2)
        parts.append(part.rows(slice(first, first + _SECTION_SAMPLES)))
    if not parts:
        raise RecordingError("there is no recording to fit.")
    return Samples.concatenate(parts)


def _with_repaired_temperature(part: Samples) -> Samples:
    """Part with spikes removed from its temperatures."""
    from taufit.temperature.temperature_slopes import repair_temperature

    return part.with_channels(temperature=repair_temperature(part)[0])
