"""The record of a fitted model is typed: nobody asks it for a value by a string."""

from __future__ import annotations

import ast
import dataclasses
import json
import typing
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import taufit.model
from taufit.model import FittedModel, TorqueModel, TrainingRecord, read_model, training_record
from taufit.model.model_file import model_from_dict, model_to_dict
from taufit.model.payload import Payload

SOURCE = Path(taufit.__file__).parent
OLD = Path(__file__).parent / "model_0_1.json"
# Free text about where a model came from: written into the file and shown, never asked by key.
FREE = {"friction", "estimator_settings", "sources"}
NOUNS = [
    one
    for one in vars(training_record).values()
    if dataclasses.is_dataclass(one) and one.__module__ == training_record.__name__
]


def _mappings(noun):
    """Fields that can be asked by a string."""
    hints = typing.get_type_hints(noun, localns={"Payload": Payload}, include_extras=False)
    kinds = {name: typing.get_origin(hint) or hint for name, hint in hints.items()}
    return {n for n, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Mapping)}


def test_only_free_text_can_be_asked_by_a_string():
    assert len(NOUNS) >= 9
    assert set().union(*(_mappings(noun) for noun in NOUNS)) == FREE
    assert not _mappings(FittedModel) and not _mappings(TorqueModel)
    assert not hasattr(TorqueModel, "meta") and not hasattr(FittedModel, "meta")


def _asked(tree):
    """Lines where free text of a record is asked by a key."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            value = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = node.func.value if node.func.attr == "get" else None
        else:
            continue
        text = ast.unparse(value) if isinstance(value, ast.Attribute) else ""
        if text.endswith((".training", ".estimator_settings", "provenance.sources")):
            yield node.lineno


def test_nobody_asks_a_record_by_a_string():
    found = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in SOURCE.rglob("*.py")
        for line in _asked(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_an_empty_record_is_complete():
    record = TrainingRecord()
    assert record.conditioning.cutoff_hz > 0.0 and record.conditioning.rate_hz > 0.0
    assert record.residuals.correlation_s > 0.0
    assert record.score is None and record.base is None and record.warnings == ()


def _same(one, other):
    if dataclasses.is_dataclass(one):
        return type(one) is type(other) and all(
            _same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)
        )
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return one == other


@pytest.mark.parametrize("thermal", [False, True])
def test_a_record_written_and_read_is_the_same(thermal):
    model = read_model(OLD)
    none, both = np.zeros(3), np.ones((3, 2))
    state = training_record.ThermalState(none + 60.0, none + 900.0, both, both, none, none, none)
    record = dataclasses.replace(
        model.training,
        conditioning=training_record.Conditioning(
            np.inf, 125.0, 0.004, np.array([10.0, np.nan, -3.0]), np.array([0.1, 0.2, 0.3])
        ),
        thermal=state if thermal else None,
        warnings=("one", "two"),
    )
    data = json.loads(json.dumps(model_to_dict(model.with_training(record)), allow_nan=False))
    assert _same(model_from_dict(data).training, record)
