"""Recordings to which a model was fitted, found by their contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.recording.finding import Finding

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel


def is_training_file(model: FittedModel, path: Path) -> bool:
    """Whether a file has the contents of one to which the model was fitted."""
    provenance = model.training.provenance
    sources: Mapping[str, Any] = {} if provenance is None else provenance.sources
    recordings = sources.get("recordings") or ()
    hashes = {entry.get("sha256") for entry in recordings if isinstance(entry, Mapping)}
    if not hashes or not path.is_file():
        return False
    from taufit.core.compute.cache.content import content_hash

    return content_hash(path) in hashes


def training_file_finding(path: Path) -> Finding:
    """Finding that a score is one on training data."""
    return Finding(
        "training_file",
        "warning",
        f"{path} is a recording to which the model was fitted: its score proves little. Check the "
        "model on another one",
    )
