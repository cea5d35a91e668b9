"""A training record as plain data for a model file, and back with every value checked.

`record_from_dict(record_to_dict(r))` is r. What is known of residuals is in `residuals_file`.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.fields import Field
from taufit.core.parameters import parse_name
from taufit.core.plain_data import plain
from taufit.model.from_data import from_data_of
from taufit.model.residuals_file import (
    entries,
    noise_from,
    noise_to_dict,
    optional,
    residuals_from,
    residuals_to_dict,
)
from taufit.model.score import Score
from taufit.model.training_record import (
    DEFAULT_CUTOFF_HZ,
    DEFAULT_RATE_HZ,
    BaseRecord,
    Conditioning,
    FitSettings,
    Provenance,
    Range,
    Ranges,
    SimpleTerms,
    TermTriangle,
    ThermalState,
    TrainingRecord,
)

_VERSIONS = ("taufit", "python", "numpy", "created", "robot")


def record_to_dict(record: TrainingRecord) -> dict[str, Any]:
    """Sections of a model file, all but the parameters' own entries."""
    conditioning, score = record.conditioning, record.score
    out: dict[str, Any] = {}
    if record.base is not None:
        out["base"] = entries(record.base)
    spans = {one.name: getattr(record.ranges, one.name) for one in fields(Ranges)}
    out["range"] = {
        name: {"low": span.low, "high": span.high}
        for name, span in spans.items()
        if span is not None
    }
    out["conditioning"] = entries(conditioning)
    if score is not None:
        out["score"] = {key: x for key, x in score.to_dict().items() if key != "findings"}
    out["residuals"] = residuals_to_dict(record.residuals)
    if record.noise is not None:
        out["noise_by_state"] = noise_to_dict(record.noise)
    for name in ("friction_scatter", "joint_zero_std", "from_data", "thermal"):
        own = getattr(record, name)
        if own is not None:
            out[name] = entries(own) if is_dataclass(own) else own
    if record.hidden_zeros:
        out["hidden_zeros"] = record.hidden_zeros
    if record.simple_terms is not None:
        out["simple_terms"] = _simple_terms_to_dict(record.simple_terms)
    if record.provenance is not None:
        out["provenance"] = provenance_to_dict(record.provenance)
    out["warnings"] = record.warnings
    if record.contradictions:
        out["contradictions"] = record.contradictions
    return plain(out)


def record_from_dict(
    data: Field, joints: int, names: tuple[str, ...], terms: int
) -> TrainingRecord:
    """Inverse of `record_to_dict`; sections that are absent are as in an empty record.

    Args:
        data: The model file.
        joints: Of the model.
        names: Of the model's parameters.
        terms: Parameters of a joint's friction and further terms.
    """
    entries = list(data["parameters"].items())
    spread = [entry["std"] for entry in entries]
    known = any("std" in entry.mapping() for entry in entries)
    words = tuple(entry["verdict"].text("") for entry in entries)
    conditioning = _conditioning(data["conditioning"], joints)
    return TrainingRecord(
        conditioning=conditioning,
        ranges=_ranges(data["range"], joints),
        std=np.array([x.number(missing=np.inf, low=0.0) for x in spread]) if known else None,
        verdicts=words if any(words) else (),
        base=_base(data["base"], names),
        residuals=residuals_from(data, joints, names, conditioning.rate_hz),
        noise=noise_from(data["noise_by_state"], joints),
        friction_scatter=optional(data["friction_scatter"], joints, low=0.0),
        from_data=from_data_of(data["from_data"], joints, terms),
        joint_zero_std=optional(data["joint_zero_std"], joints, low=0.0),
        hidden_zeros=data["hidden_zeros"].texts(),
        score=_score(data["score"], joints),
        thermal=_thermal(data["thermal"], joints),
        simple_terms=_simple_terms(data["simple_terms"], joints, terms),
        provenance=_provenance(data["provenance"]),
        warnings=data["warnings"].texts(),
        contradictions=data["contradictions"].texts(),
    )


def provenance_to_dict(provenance: Provenance) -> dict[str, Any]:
    """Plain data: versions, settings, and whatever the caller said of the sources."""
    settings = provenance.settings
    own = {name: getattr(provenance, name) for name in _VERSIONS}
    own["settings"] = {one.name: getattr(settings, one.name) for one in fields(settings)}
    return plain({**own, **provenance.sources})


def _conditioning(data: Field, joints: int) -> Conditioning:
    # null is how a file says that there was no low-pass.
    absent = DEFAULT_CUTOFF_HZ if "cutoff_hz" not in data.mapping() else math.inf
    gain = optional(data["gain"], joints, missing=math.nan)
    if gain is not None and np.any(gain == 0.0):
        data["gain"].fail("gains that are not zero")
    return Conditioning(
        data["cutoff_hz"].number(absent, low=1e-3),
        data["rate_hz"].number(DEFAULT_RATE_HZ, low=0.1, most=1e6),
        data["delay_s"].number(0.0, most=10.0),
        gain,
        optional(data["gain_std"], joints, missing=math.nan, low=0.0),
    )


def _ranges(data: Field, joints: int) -> Ranges:
    return Ranges(**{one.name: _range(data[one.name], joints) for one in fields(Ranges)})


def _range(data: Field, joints: int) -> Range | None:
    if data.missing:
        return None
    low, high = data["low"].required().numbers(joints), data["high"].required().numbers(joints)
    if np.any(low > high):
        j = int(np.argmax(low > high))
        data.fail(f"low <= high for every joint, not {low[j]:g} > {high[j]:g} at joint {j + 1}")
    return Range(low, high)


def _base(data: Field, names: tuple[str, ...]) -> BaseRecord | None:
    if data.missing:
        return None
    own = _known_names(data["names"].required(), names)
    b = len(own)
    expressions = data["expressions"].texts()
    if len(expressions) != b:
        data["expressions"].fail(f"a list of {b} expressions")
    covariance = data["covariance"].required()
    matrix = covariance.matrix(b, b, missing=math.nan)
    _require_covariance(covariance, matrix)
    return BaseRecord(own, expressions, data["values"].required().numbers(b), matrix)


def _score(data: Field, joints: int) -> Score | None:
    if data.missing or data["rmse"].missing:
        return None
    unknown = np.full(joints, math.nan)

    def each(name: str) -> Float[Array, " j"]:
        return unknown if data[name].missing else data[name].numbers(joints, missing=math.nan)

    return Score(
        file=data["file"].text(""),
        samples=int(data["samples"].number(0.0, low=0.0)),
        seconds=data["seconds"].number(0.0, low=0.0),
        cutoff_hz=data["cutoff_hz"].number(math.inf, above=0.0),
        rmse=data["rmse"].numbers(joints, low=0.0),
        nrmse=each("nrmse"),
        correlation=each("correlation"),
        bias=each("bias"),
        largest=each("largest"),
        e_n=data["e_n"].number(math.nan),
        inside=optional(data["inside"], joints, missing=math.nan),
        moving_nrmse=optional(data["moving_nrmse"], joints, missing=math.nan),
        standing_share=optional(data["standing_share"], joints, missing=math.nan),
        standing_rmse=optional(data["standing_rmse"], joints, missing=math.nan),
    )


def _thermal(data: Field, joints: int) -> ThermalState | None:
    if data.missing:
        return None

    def each(name: str, **limits: float) -> Float[Array, " j"]:
        return data[name].required().numbers(joints, **limits)

    return ThermalState(
        fast=each("fast", above=0.0),
        slow=each("slow", above=0.0),
        friction_gain=data["friction_gain"].required().matrix(joints, 2),
        copper_gain=data["copper_gain"].required().matrix(joints, 2),
        coulomb=each("coulomb"),
        viscous=each("viscous"),
        start=each("start"),
    )


def _simple_terms_to_dict(terms: SimpleTerms) -> dict[str, Any]:
    def triangles(many: tuple[TermTriangle, ...]) -> list[dict[str, Any]]:
        return [
            {one.name: _nine_digits(getattr(each, one.name)) for one in fields(TermTriangle)}
            for each in many
        ]

    return {
        "mounting": terms.mounting,
        "kept": triangles(terms.kept),
        "set_aside": triangles(terms.set_aside),
        "effect": _nine_digits(terms.effect),
    }


def _nine_digits(value: Any) -> Any:
    """Sums over thousands of noisy rows are not known better, and half as long."""
    if isinstance(value, np.ndarray):
        return [_nine_digits(x) for x in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _simple_terms(data: Field, joints: int, terms: int) -> SimpleTerms | None:
    if data.missing:
        return None
    roll, pitch, yaw = data["mounting"].required().numbers(3)
    return SimpleTerms(
        (float(roll), float(pitch), float(yaw)),
        _triangles(data["kept"].required(), joints),
        _triangles(data["set_aside"], joints),
        data["effect"].required().matrix(joints, terms, low=0.0),
    )


def _triangles(data: Field, joints: int) -> tuple[TermTriangle, ...]:
    own = [] if data.missing else list(data.items())
    if len(own) not in (0, joints):
        data.fail(f"one entry per joint, {joints} of them")
    return tuple(_triangle(one) for one in own)


def _triangle(data: Field) -> TermTriangle:
    names = data["names"].required().texts()
    size = len(names)
    for item in data["names"].items():
        if parse_name(item.text()).kind not in ("link", "joint"):
            item.fail("a parameter of a link or a joint")
    if len(set(names)) < size:
        data["names"].fail("names that differ from each other")
    return TermTriangle(
        names,
        data["factor"].required().numbers(size * (size + 1) // 2),
        data["target"].required().numbers(size),
        data["residual"].number(0.0, low=0.0),
        int(data["count"].number(0.0, low=0.0)),
    )


def _provenance(data: Field) -> Provenance | None:
    if data.missing:
        return None
    given, standard = data["settings"], FitSettings()
    settings = FitSettings(
        friction=dict(given["friction"].mapping()),
        estimator=given["estimator"].text(standard.estimator),
        estimator_settings=dict(given["estimator_settings"].mapping()),
        dropped=given["dropped"].texts(),
        cutoff_hz=given["cutoff_hz"].number(math.inf, above=0.0),
        cutoff_reason=given["cutoff_reason"].text(""),
        torque_signs=given["torque_signs"].text(standard.torque_signs),
        temperature=given["temperature"].text(standard.temperature),
    )
    own = {name: data[name].text("") for name in _VERSIONS}
    sources = {
        key: value for key, value in data.mapping().items() if key not in (*_VERSIONS, "settings")
    }
    return Provenance(**own, settings=settings, sources=sources)


def _require_covariance(data: Field, matrix: Float[Array, "b b"]) -> None:
    """Symmetric, no negative variance, no correlation beyond one; rounding is forgiven."""
    known = np.where(np.isfinite(matrix), matrix, 0.0)
    size = np.sqrt(np.maximum(np.diag(known), 0.0))
    slack = 1e-6 * np.outer(size, size) + 1e-100
    wrong = (np.abs(known - known.T) > slack) | (np.abs(known) > np.outer(size, size) + slack)
    wrong |= np.diag(np.diag(known) < 0.0)
    if np.any(wrong):
        row, column = np.argwhere(wrong)[0]
        place = f"{data.path}[{row}][{column}]"
        Field(float(matrix[row, column]), data.source, place).fail(
            "an entry of a covariance: symmetric, variances of zero or more, correlations up to one"
        )


def _known_names(data: Field, names: tuple[str, ...]) -> tuple[str, ...]:
    own = data.texts()
    for item in data.items():
        if item.value not in names:
            item.fail("the name of a parameter of this model")
    if len(set(own)) < len(own):
        data.fail("names that differ from each other")
    return own
