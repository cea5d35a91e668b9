"""Values printed in the papers, with their source and errata."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def printed_tables(paper: str) -> dict[str, Any]:
    """Tables of a paper, see the `source` entries of the file."""
    text = (resources.files("taufit.papers") / "printed" / f"{paper}.json").read_text("utf-8")
    return dict(json.loads(text))
