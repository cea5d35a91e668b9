"""Numbers printed in the papers, shipped with their source and their errata."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def printed(paper: str) -> dict[str, Any]:
    """The tables of a paper: see the file's `source` entries."""
    text = (resources.files("taufit.papers") / "printed" / f"{paper}.json").read_text("utf-8")
    return dict(json.loads(text))
