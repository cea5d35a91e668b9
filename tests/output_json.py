"""The JSON object of a command, held against the published schema of its verb."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

SCHEMA = json.loads(resources.files("taufit").joinpath("output_schema.json").read_text("utf-8"))


def parse_output(verb: str, text: str) -> dict[str, Any]:
    """The object that `taufit VERB --json` printed; "error" for one that failed."""
    page = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert isinstance(page, dict)
    jsonschema.validate(page, {**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{verb}"}]})
    return page
