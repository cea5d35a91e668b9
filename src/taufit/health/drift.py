"""Friction drift kept beside a model: file, and the model with the drift applied.

`taufit check --track --drift FILE` begins with the drift of the file and keeps the new one there;
other commands use the model with the friction that was tracked last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.core.files import write_text
from taufit.core.parameters import joint_parameter
from taufit.core.plain_data import read_json
from taufit.health.tracker import FrictionDrift
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import coulomb_level
from taufit.terms import DISSIPATIVE

FORMAT, VERSION = "taufit-drift", 1
_MAX_VALUE = 1e9
_MAX_FILTERS = 16
# Number of recordings that are remembered, so that none is counted twice.
_MAX_RECORDINGS = 1000


def write_drift(
    drift: FrictionDrift, path: str | os.PathLike[str], *, recordings: Sequence[str] = ()
) -> None:
    """Write a drift; the file is replaced completely or not at all.

    Args:
        drift: State at the end of the last run.
        path: File.
        recordings: Hashes of the recordings it was tracked over, oldest first.
    """
    data = {
        "format": FORMAT,
        "version": VERSION,
        "level": drift.level.tolist(),
        **{
            name: getattr(drift, name).reshape(len(drift.states), -1).tolist()
            for name in ("states", "covariances", "log_likelihood")
        },
        "recordings": list(recordings)[-_MAX_RECORDINGS:],
    }
    write_text(path, json.dumps(data, indent=1) + "\n", update=True)


def read_drift(path: str | os.PathLike[str]) -> tuple[FrictionDrift, tuple[str, ...]]:
    """Drift of a file, and the hashes of the recordings it was tracked over."""
    if not Path(path).exists():
        raise TaufitError(
            f"there is no drift {path}. `taufit check MODEL RECORDING --track --drift {path}` "
            "writes one."
        )
    data = read_json(path, "a friction drift")
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise TaufitError(f"{path} is not a friction drift. `taufit check --track` writes one.")
    if data.get("version") != VERSION:
        raise TaufitError(
            f"{path} has version {data.get('version')!r} of the format, this taufit reads "
            f"{VERSION}. Write it again with `taufit check --track`."
        )
    file = Field(data, str(path))
    level = file["level"].required().numbers(above=0.0, most=_MAX_VALUE)
    joints, filters = len(level), len(list(file["states"].required().items()))
    if not 0 < filters <= _MAX_FILTERS:
        file["states"].fail(f"between 1 and {_MAX_FILTERS} filters")
    states, covariances, log_likelihood = (
        file[name].required().matrix(filters, width * joints, most=_MAX_VALUE)
        for name, width in (("states", 3), ("covariances", 9), ("log_likelihood", 1))
    )
    drift = FrictionDrift(
        level,
        states.reshape(filters, joints, 3),
        covariances.reshape(filters, joints, 3, 3),
        log_likelihood,
    )
    if np.linalg.eigvalsh(drift.covariances).min() < -1e-9 * np.abs(covariances).max():
        file["covariances"].fail("covariances, which have no negative eigenvalue")
    return drift, file["recordings"].texts()


def apply_drift(model: FittedModel, drift: FrictionDrift) -> FittedModel:
    """Model with tracked friction: friction scaled, viscous friction and offset added.

    Raises:
        TaufitError: The drift belongs to another model, or the drives are coupled.
    """
    level = np.maximum(coulomb_level(model), 1e-3)
    if len(level) != len(drift.level) or not np.allclose(level, drift.level):
        raise TaufitError(
            "the friction drift belongs to another model. Track it again: `taufit check MODEL "
            "RECORDING --track --drift FILE`."
        )
    if model.columns.coupling is not None:
        raise TaufitError(
            "a friction drift applies to single joints, and the drives of this robot are coupled. "
            "Leave --drift out."
        )
    layout, values = model.layout, np.array(model.values)
    is_friction = layout.of_kind(DISSIPATIVE)
    owner, parts = np.asarray(layout.owner), drift.parts
    values[is_friction] *= 1.0 + (parts[:, 0] / level)[owner[is_friction]]
    for joint, (_, viscous, offset) in enumerate(parts):
        for name, change in (("viscous", viscous), ("offset", offset)):
            full_name = joint_parameter(joint, name)
            if full_name in layout.names:
                values[layout.index(full_name)] += change
    return model.with_values(values)
