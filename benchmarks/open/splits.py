"""splits.json: the rows of every task and the hashes of the files, as published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.open.arm import Arm, Split, digest

FILE = Path(__file__).with_name("splits.json")


def write(arms: Mapping[str, Arm], data: Path) -> None:
    """Publish rows and hashes of these arms; those of others stay."""
    known = published()
    known |= {name: entry(arm, data) for name, arm in arms.items()}
    FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def entry(arm: Arm, data: Path) -> dict[str, Any]:
    """Rows, hashes and source of one arm."""
    return {
        "title": arm.title,
        "source": arm.source,
        "licence": arm.licence,
        "sha256": {name: digest(data / name) for name in arm.files()},
        "rows": rows(arm.splits),
    }


def rows(splits: Mapping[str, Split]) -> dict[str, Any]:
    """Rows of every task as plain data."""
    return {
        task: {
            "training": [asdict(section) for section in split.training],
            "test": [asdict(section) for section in split.test],
        }
        for task, split in splits.items()
    }


def published() -> dict[str, Any]:
    """Contents of splits.json."""
    known: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return known


def require_unchanged(name: str, arm: Arm, data: Path) -> None:
    """Refuse rows or files other than the published ones."""
    known = published().get(name)
    if known is None:
        raise SystemExit(f"{name} is not in splits.json. Add it: python -m benchmarks.open splits.")
    if known["rows"] != rows(arm.splits):
        raise SystemExit(f"{name}: the rows of arms/{name}.py are not those of splits.json.")
    for file in arm.files():
        if not (data / file).exists():
            raise SystemExit(f"{data / file} is missing. Source: {arm.source}; or give --data.")
        if digest(data / file) != known["sha256"][file]:
            raise SystemExit(f"{data / file} is not the published file: its SHA-256 differs.")
