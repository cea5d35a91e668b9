"""Conversion of a training record to plain data for a model file and back, with checks.

`record_from_dict(record_to_dict(r))` is r. Shapes and limits are declared with the fields of the
record; this module has the joint conditions of each part and the spellings of version 0.1, whose
files keep residuals under "score" and their correlation among the estimator settings.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.codec import Checks, read, read_optional, write
from taufit.core.fields import Field
from taufit.core.parameters import parse_name
from taufit.core.plain_data import to_plain_data
from taufit.model.information_share import InformationShare
from taufit.model.noise_by_state import AlarmTail, NoiseByState
from taufit.model.score import Score
from taufit.model.training_record import (
    DEFAULT_CORRELATION_S,
    BaseRecord,
    Conditioning,
    FitSettings,
    GravityTilt,
    ModelAccuracy,
    Provenance,
    Range,
    Ranges,
    Residuals,
    ResidualStructure,
    SimpleTerms,
    TermTriangle,
    ThermalState,
    TrainingRecord,
)
from taufit.terms.friction.states import STATES

_VERSIONS = ("taufit", "python", "numpy", "created", "robot")
_STATE_FIELDS = ("level", "white", "walk", "velocity", "seconds")


def _residuals_to_dict(residuals: Residuals) -> dict[str, Any]:
    out: dict[str, Any] = {
        "noise_density": residuals.noise_density,
        "correlation_s": residuals.correlation_s,
    }
    if residuals.by_state is not None:
        out["by_state"] = dict(zip(STATES, residuals.by_state, strict=True))
    if residuals.structure is not None:
        out["structure"] = write(residuals.structure)
    return out


def _write_optional(section: Any) -> Any:
    return None if section is None else write(section)


def record_to_dict(record: TrainingRecord) -> dict[str, Any]:
    """Sections of a model file, except the entries of the parameters."""
    score = record.score
    out: dict[str, Any] = {} if record.base is None else {"base": write(record.base)}
    out["range"] = {k: span for k, span in write(record.ranges).items() if span is not None}
    out["conditioning"] = write(record.conditioning)
    if score is not None:
        out["score"] = score.to_dict()
        out["score"].pop("findings", None)
    if record.accuracy is not None:
        out["accuracy"] = write(record.accuracy)
    out["residuals"] = _residuals_to_dict(record.residuals)
    if record.noise is not None:
        out["noise_by_state"] = _noise_to_dict(record.noise)
    sections = {
        "friction_scatter": record.friction_scatter,
        "joint_zero_std": record.joint_zero_std,
        "from_data": _write_optional(record.from_data),
        "thermal": _write_optional(record.thermal),
        "gravity_tilt": _write_optional(record.tilt),
        "hidden_zeros": record.hidden_zeros or None,
        "simple_terms": None
        if record.simple_terms is None
        else _round_to_nine_digits(write(record.simple_terms)),
        "provenance": None if record.provenance is None else provenance_to_dict(record.provenance),
    }
    out |= {name: section for name, section in sections.items() if section is not None}
    out["warnings"] = record.warnings
    if record.contradictions:
        out["contradictions"] = record.contradictions
    section: dict[str, Any] = to_plain_data(out)
    return section


def record_from_dict(
    data: Field, joints: int, names: tuple[str, ...], terms: int
) -> TrainingRecord:
    """Inverse of `record_to_dict`; absent sections get the defaults of an empty record.

    Args:
        data: The model file.
        joints: Number of joints of the model.
        names: Parameter names of the model.
        terms: Number of parameters of a joint's friction and further terms.
    """
    entries = list(data["parameters"].items())
    deviations = [entry["std"] for entry in entries]
    has_std = any("std" in entry.mapping() for entry in entries)
    verdicts = tuple(entry["verdict"].text("") for entry in entries)
    conditioning = read(Conditioning, data["conditioning"], _CHECKS, j=joints)
    if isinstance(conditioning.delay_s, tuple) and len(conditioning.delay_s) != joints:
        data["conditioning"]["delay_s"].fail(f"a number, or {joints} of them")
    checks: Checks = {
        **_CHECKS,
        BaseRecord: lambda base, place: _check_base(base, place, names),
        ResidualStructure: lambda structure, place: _check_structure(structure, place, names),
    }
    return TrainingRecord(
        conditioning=conditioning,
        ranges=read(Ranges, data["range"], checks, j=joints),
        std=np.array([x.number(missing=np.inf, low=0.0) for x in deviations]) if has_std else None,
        verdicts=verdicts if any(verdicts) else (),
        base=read_optional(BaseRecord, data["base"], checks),
        residuals=_read_residuals(data, joints, checks, conditioning.rate_hz),
        noise=_read_noise(data["noise_by_state"], joints),
        friction_scatter=_read_per_joint(data["friction_scatter"], joints, low=0.0),
        from_data=read_optional(InformationShare, data["from_data"], checks, j=joints, k=terms),
        joint_zero_std=_read_per_joint(data["joint_zero_std"], joints, low=0.0),
        hidden_zeros=data["hidden_zeros"].texts(),
        score=_read_score(data["score"], joints),
        accuracy=read_optional(ModelAccuracy, data["accuracy"], checks),
        thermal=read_optional(ThermalState, data["thermal"], checks, j=joints),
        tilt=read_optional(GravityTilt, data["gravity_tilt"], checks),
        simple_terms=read_optional(SimpleTerms, data["simple_terms"], checks, j=joints, k=terms),
        provenance=_read_provenance(data["provenance"]),
        warnings=data["warnings"].texts(),
        contradictions=data["contradictions"].texts(),
    )


def _read_per_joint(data: Field, joints: int, **limits: float) -> Float[Array, " j"] | None:
    return None if data.missing else data.numbers(joints, **limits)


# Residuals and noise by friction state.


def _read_residuals(data: Field, joints: int, checks: Checks, rate_hz: float) -> Residuals:
    section, old = data["residuals"], data["score"]
    settings = data["provenance"]["settings"]["estimator_settings"]
    density = old["noise_density"] if section["noise_density"].missing else section["noise_density"]
    structure = old["doubt"] if section["structure"].missing else section["structure"]
    correlation = section["correlation_s"].number(0.0, low=0.0)
    if not correlation:
        correlation = settings["correlation_samples"].number(0.0, low=0.0) / rate_hz
    by_state = section["by_state"]
    return Residuals(
        _read_per_joint(density, joints, above=0.0),
        correlation or DEFAULT_CORRELATION_S,
        read_optional(ResidualStructure, structure, checks),
        None
        if by_state.missing
        else np.array([by_state[s].required().numbers(joints, low=0.0) for s in STATES]),
    )


def _noise_to_dict(noise: NoiseByState) -> dict[str, Any]:
    """One entry per friction state, by name."""
    return {
        "rate_hz": noise.rate_hz,
        "cutoff_hz": noise.cutoff_hz,
        "standstill": noise.standstill,
        "runs": noise.runs,
        "states": {
            state: {name: getattr(noise, name)[k] for name in _STATE_FIELDS}
            for k, state in enumerate(STATES)
        },
        "tail": None if noise.tail is None else write(noise.tail),
    }


def _read_noise(data: Field, joints: int) -> NoiseByState | None:
    if data.missing:
        return None
    rows = [data["states"].required()[state].required() for state in STATES]

    def by_state(name: str, **limits: float) -> Float[Array, "s j"]:
        return np.array([row[name].required().numbers(joints, **limits) for row in rows])

    # Models written before velocity noise was separated have it in `white`.
    velocity = np.zeros((len(rows), joints))
    if not rows[0]["velocity"].missing:
        velocity = by_state("velocity", low=0.0)
    return NoiseByState(
        data["rate_hz"].required().number(above=0.0, most=1e6),
        data["cutoff_hz"].required().number(above=0.0),
        data["standstill"].required().number(above=0.0),
        by_state("level", above=0.0),
        by_state("white", above=0.0),
        by_state("walk", above=0.0),
        velocity,
        by_state("seconds", low=0.0),
        read_optional(AlarmTail, data["tail"]),
        int(data["runs"].number(0.0, low=0.0)),
    )


def _read_score(data: Field, joints: int) -> Score | None:
    """Score of the training data; absent figures are unknown."""
    if data.missing or data["rmse"].missing:
        return None
    missing = [None] * joints
    defaults: dict[str, Any] = {
        name: missing for name in ("nrmse", "correlation", "bias", "largest")
    }
    defaults |= {"file": "", "samples": 0, "seconds": 0.0, "cutoff_hz": None, "e_n": None}
    return read(
        Score,
        Field({**defaults, **_without_null(data), "findings": []}, data.source, data.path),
        j=joints,
    )


def _without_null(data: Field) -> dict[str, Any]:
    return {key: value for key, value in data.mapping().items() if value is not None}


def _round_to_nine_digits(value: Any) -> Any:
    """Round numbers to nine digits, the accuracy of sums over noisy rows."""
    if isinstance(value, dict):
        return {key: _round_to_nine_digits(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_round_to_nine_digits(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def provenance_to_dict(provenance: Provenance) -> dict[str, Any]:
    """Plain data of versions, settings and the caller's description of the sources."""
    versions = {name: getattr(provenance, name) for name in _VERSIONS}
    section: dict[str, Any] = to_plain_data(
        {**versions, "settings": write(provenance.settings), **provenance.sources}
    )
    return section


def _read_provenance(data: Field) -> Provenance | None:
    if data.missing:
        return None
    versions = {name: data[name].text("") for name in _VERSIONS}
    settings_data = {"cutoff_hz": None, **data["settings"].mapping()}
    settings = read(FitSettings, Field(settings_data, data.source, data["settings"].path))
    sources = {
        key: value for key, value in data.mapping().items() if key not in (*_VERSIONS, "settings")
    }
    return Provenance(**versions, settings=settings, sources=sources)


# Joint conditions on the values of a part.


def _check_conditioning(conditioning: Conditioning, data: Field) -> None:
    if conditioning.gain is not None and np.any(conditioning.gain == 0.0):
        data["gain"].fail("gains that are not zero")


def _check_range(span: Range, data: Field) -> None:
    crossed = span.low > span.high
    if np.any(crossed):
        j = int(np.argmax(crossed))
        pair = f"{span.low[j]:g} > {span.high[j]:g}"
        data.fail(f"low <= high for every joint, not {pair} at joint {j + 1}")


def _check_base(base: BaseRecord, data: Field, names: tuple[str, ...]) -> None:
    for item in data["names"].items():
        if item.value not in names:
            item.fail("the name of a parameter of this model")
    _check_distinct(base.names, data["names"])
    if len(base.expressions) != len(base.names):
        data["expressions"].fail(f"a list of {len(base.names)} expressions")
    if len(base.values) != len(base.names):
        data["values"].fail(f"a list of {len(base.names)} numbers, not {len(base.values)}")
    _check_covariance(base.covariance, data["covariance"])
    if base.posterior is not None:
        _check_covariance(base.posterior, data["posterior"])


def _check_covariance(matrix: Float[Array, "b b"], data: Field) -> None:
    """Check symmetry, variances >= 0 and correlations <= 1, up to rounding."""
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    size = np.sqrt(np.maximum(np.diag(finite), 0.0))
    slack = 1e-6 * np.outer(size, size) + 1e-100
    wrong = (np.abs(finite - finite.T) > slack) | (np.abs(finite) > np.outer(size, size) + slack)
    wrong |= np.diag(np.diag(finite) < 0.0)
    if np.any(wrong):
        row, column = np.argwhere(wrong)[0]
        place = f"{data.path}[{row}][{column}]"
        Field(float(matrix[row, column]), data.source, place).fail(
            "an entry of a covariance: symmetric, variances of zero or more, correlations up to one"
        )


def _check_structure(structure: ResidualStructure, data: Field, names: tuple[str, ...]) -> None:
    # Base parameters come first, then repeatable residuals as parameters of joints, whose names may
    # equal those of friction parameters.
    in_model = True
    for item, name in zip(data["names"].items(), structure.names, strict=True):
        in_model = in_model and name in names
        if not in_model and parse_name(name).kind != "joint":
            item.fail("a parameter of this model, or after all of those a term of a joint")
    size = len(structure.names)
    _check_length(structure.mean, size, data["mean"])
    _check_length(structure.factor, size * (size + 1) // 2, data["factor"])
    pivots = np.cumsum([0, *range(size, 1, -1)])
    if np.any(structure.factor[pivots] == 0.0):
        data["factor"].fail("the rows of an upper triangle without zeros on its diagonal")


def _check_triangle(triangle: TermTriangle, data: Field) -> None:
    size = len(triangle.names)
    for item in data["names"].items():
        if parse_name(item.text()).kind not in ("link", "joint"):
            item.fail("a parameter of a link or a joint")
    _check_distinct(triangle.names, data["names"])
    _check_length(triangle.factor, size * (size + 1) // 2, data["factor"])
    _check_length(triangle.target, size, data["target"])


def _check_simple_terms(terms: SimpleTerms, data: Field) -> None:
    joints = len(terms.effect)
    for name, triangles in (("kept", terms.kept), ("set_aside", terms.set_aside)):
        if len(triangles) not in (0, joints):
            data[name].fail(f"one entry per joint, {joints} of them")


def _check_shares(shares: InformationShare, data: Field) -> None:
    for share_field in fields(shares):
        if np.any(getattr(shares, share_field.name) > 1.0):
            data[share_field.name].fail("shares from 0 to 1")


def _check_distinct(names: tuple[str, ...], data: Field) -> None:
    if len(set(names)) < len(names):
        data.fail("names that differ from each other")


def _check_length(values: Float[Array, " m"], length: int, data: Field) -> None:
    if len(values) != length:
        data.fail(f"a list of {length} numbers, not {len(values)}")


_CHECKS: Checks = {
    Conditioning: _check_conditioning,
    Range: _check_range,
    TermTriangle: _check_triangle,
    SimpleTerms: _check_simple_terms,
    InformationShare: _check_shares,
}
