"""A model file with one value changed is read, or refused in one sentence that names the place."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from taufit.core.errors import TaufitError
from taufit.model.fitted_model import FittedModel
from taufit.model.model_file import model_from_dict, model_to_dict

OLD = json.loads((Path(__file__).parent / "model_0_1.json").read_text())
STRANGE = (None, "fast", -1.0, 0, 1e300, float("nan"), float("inf"), True, [], {}, [[1.0]], 10**400)


def places(value, path=()):
    """Every place in the file; of long lists the first, one within and the last."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from places(value[i], (*path, i))


def changed(data, path, value):
    """The same file with one value replaced."""
    out = at = copy.copy(data)
    for key in path[:-1]:
        at[key] = copy.copy(at[key])
        at = at[key]
    at[path[-1]] = value
    return out


def read(data):
    try:
        return model_from_dict(data, "edited.json")
    except TaufitError as error:
        text = str(error)
        assert "edited.json" in text and len(text) < 400 and "Traceback" not in text, text
        return None


@pytest.fixture(scope="module", params=["version 0.1", "today"])
def file(request):
    if request.param == "version 0.1":
        return OLD
    return json.loads(json.dumps(model_to_dict(model_from_dict(OLD))))


def test_every_single_edit_is_read_or_named(file):
    motion = np.zeros((2, 3)), np.ones((2, 3)), np.ones((2, 3))
    refused = accepted = 0
    for path in places(file):
        # What both versions spell alike is tried once.
        if not path or (file is not OLD and path[0] != "residuals"):
            continue
        for value in STRANGE:
            model = read(changed(file, path, value))
            if model is None:
                refused += 1
                continue
            accepted += 1
            # Where the record alone was changed, the torque is what it was.
            if path[0] in ("robot", "friction", "shape", "parameters"):
                torque = model.torque(*motion, temperature=np.full((2, 3), 30.0))
                assert np.all(np.isfinite(torque))
    # Most edits make no sense; free text and settings that nobody reads back may be anything.
    assert refused > 2 * accepted


def test_every_removal_is_read_or_named(file):
    outcomes = set()
    for path in places(file):
        if not path:
            continue
        data = changed(file, path, None)
        at = data
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        outcomes.add(read(data) is None)
    # Some entries are needed, others have defaults.
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("range", "velocity", "low", 2), "fast", r"range\.velocity\.low\[2\] is 'fast', expected"),
        (("conditioning", "rate_hz"), 0, r"conditioning\.rate_hz is 0, expected .* at least"),
        (("conditioning", "gain"), [1.0], r"conditioning\.gain is .* expected a list of 3 numbers"),
        (("base", "covariance", 0, 0), -1.0, r"base\.covariance\[0\]\[0\] is -1\.0"),
        (("base", "names", 0), "link_9.m", r"base\.names\[0\] is 'link_9\.m', expected the name"),
        (("robot", "links", 1, "screw", 0), "x", r"robot\.links\[1\]\.screw\[0\] is 'x'"),
        (("robot", "drives", "side"), "both", r"robot\.drives\.side is 'both'"),
        (("friction", "model", "width"), -1, r"friction\.model\.width is -1"),
        (("parameters", 4, "value"), None, r"parameters\[4\]\.value is None, expected a number"),
        (
            ("score", "doubt", "names", 0),
            "x",
            r"score\.doubt\.names\[0\] is 'x', expected a parameter",
        ),
        (("warnings",), "all", r"warnings is 'all', expected a list"),
    ],
)
def test_the_place_is_named(path, value, words):
    with pytest.raises(TaufitError, match=words):
        model_from_dict(changed(OLD, path, value), "edited.json")


def test_what_nobody_knows_yet_is_left_alone():
    later = changed(OLD, ("friction_tracking",), {"rate": 1.0})
    assert isinstance(model_from_dict(later), FittedModel)
