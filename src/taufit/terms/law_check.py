"""Checks of a term that a user defines, before anything is fitted with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.errors import TaufitError
from taufit.terms.input import MOTION, TermInput
from taufit.terms.term import ROOM_TEMPERATURE, Parameter, Term, start_shape

_SAMPLES = 33
_TOLERANCE = 1e-9


def require_valid_term(term: Any) -> None:
    """Refuse an object that is no term, or whose columns a fit cannot use.

    Columns are computed for 33 samples, and for some of them alone: they must be finite, have one
    column per parameter, and depend on no other sample unless the term has a memory.

    Raises:
        TaufitError: Says what is wrong, and the remedy.
    """
    name = term.__name__ if isinstance(term, type) else type(term).__name__
    if isinstance(term, type):
        raise TaufitError(f"friction law {name} must be an object, got its class. Pass {name}().")
    if not isinstance(term, Term):
        raise TaufitError(
            f"a friction law must be a name or an object of a subclass of "
            f"taufit.terms.friction.Friction, got {name}. docs/own_friction.md shows one."
        )
    if not is_dataclass(term):
        raise TaufitError(
            f"friction law {name} must be a dataclass, so that model files can hold it. Write "
            "@dataclass(frozen=True, slots=True) above the class."
        )
    _require_parameters(term, name)
    columns = _columns(term, name, slice(None))
    expected = (_SAMPLES, len(term.parameters))
    if columns.shape != expected:
        raise TaufitError(
            f"friction law {name}: columns_at must return {expected[1]} columns, one per "
            f"parameter, for {expected[0]} samples, got shape {columns.shape}. Stack them with "
            "np.stack([...], -1)."
        )
    if not np.isfinite(columns).all():
        k = int(np.argmax(~np.isfinite(columns).all(axis=0)))
        raise TaufitError(
            f"friction law {name}: the column of {term.parameters[k].name!r} is not finite at a "
            "velocity between -1 and 1. Keep it finite at standstill, too."
        )
    if term.memory:
        return
    for rows in (slice(8, 14), slice(20, 21)):
        difference = np.abs(_columns(term, name, rows) - columns[rows]).max()
        if difference > _TOLERANCE * max(1.0, np.abs(columns).max()):
            raise TaufitError(
                f"friction law {name}: a sample's columns depend on other samples. Compute "
                "them sample by sample, with np.where in place of `if`."
            )


def _require_parameters(term: Term, name: str) -> None:
    entries: Any = term.parameters
    if (
        not isinstance(entries, tuple)
        or not entries
        or not all(isinstance(entry, Parameter) for entry in entries)
    ):
        raise TaufitError(
            f"friction law {name} must have parameters, a tuple of Parameter, got {entries!r}. "
            'Write parameters = (Parameter("viscous"),) in the class.'
        )
    repeated = [key for key, count in Counter(entry.name for entry in entries).items() if count > 1]
    if repeated:
        raise TaufitError(f"friction law {name} has two parameters {repeated[0]!r}. Rename one.")


def _columns(term: Term, name: str, rows: slice) -> Array:
    velocity = np.linspace(-1.0, 1.0, _SAMPLES)
    motion = {part: velocity for part in MOTION if part != "travel"}
    channels = {
        part: np.full(_SAMPLES, term.typical_value(part) or ROOM_TEMPERATURE)
        for part in {"temperature", *term.needs} - {*MOTION}
    }
    inputs = TermInput(
        **{part: values[rows] for part, values in motion.items()},
        travel=1e-3 * velocity[rows],
        channels={part: values[rows] for part, values in channels.items()},
        step=1e-3,
    )
    try:
        with np.errstate(all="ignore"):
            return np.asarray(term.columns(inputs, start_shape(term)))
    except TaufitError:
        raise
    except NotImplementedError:
        raise TaufitError(
            f"friction law {name} has no columns_at(self, inputs, shape), which returns the torque "
            "per unit of each parameter. docs/own_friction.md shows one."
        ) from None
    except Exception as error:
        raise TaufitError(
            f"friction law {name}: columns_at fails for {len(velocity[rows])} samples: "
            f"{type(error).__name__}: {error}."
        ) from error
