"""Conversion of terms to plain data for model files, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.terms import FRICTION_MODELS, TERMS
from taufit.terms.friction.friction import Friction
from taufit.terms.friction.no_friction import NoFriction
from taufit.terms.layout import DRIVE
from taufit.terms.term import Term

# Values of later settings for files without them.
_DEFAULTS_OF_OLD_FILES = {"presliding": {"bend": 0.0}}
# Wrappers in files of version 0.1, and the corresponding separate terms.
_WRAPPERS_OF_OLD_FILES = {"ripple": "ripple", "compensated": "gravity_compensator"}

# Prefix of the names of classes that users define, and those written in this process.
_OWN = "own:"
_own_terms: dict[str, type[Term]] = {}


def friction_model(name: str, *settings: Any, **options: Any) -> Friction:
    """Create a friction model by name, with given settings.

    Raises:
        TaufitError: There is none of that name.
    """
    if name not in FRICTION_MODELS:
        names = ", ".join(FRICTION_MODELS)
        raise TaufitError(f"there is no friction model {name!r}: use auto or one of {names}.")
    return FRICTION_MODELS[name](*settings, **options)


def further_term(name: str, *settings: Any, **options: Any) -> Term:
    """Create a term by name, with given settings.

    Raises:
        TaufitError: There is none of that name.
    """
    if name not in TERMS:
        raise TaufitError(f"there is no term {name!r}: use one of {', '.join(TERMS)}.")
    return TERMS[name](*settings, **options)


def selectable_terms() -> tuple[str, ...]:
    """Names of terms that a user can request; rotor, offset and compensators have options."""
    terms_by_name = {name: TERMS[name]() for name in TERMS}
    return tuple(
        name for name, term in terms_by_name.items() if term.block == DRIVE and term.parameters
    )


def term_to_dict(term: Term | None) -> dict[str, Any]:
    """Plain data {"name": ..., settings...}; `term_from_dict` returns an equal term."""
    if term is None:
        return {"name": "none"}
    name = FRICTION_MODELS.name_of(type(term)) or TERMS.name_of(type(term))
    if name is None:
        name = f"{_OWN}{type(term).__name__}"
        _own_terms[name] = type(term)
    out: dict[str, Any] = {"name": name}
    for entry in fields(term):  # type: ignore[arg-type]
        value = getattr(term, entry.name)
        if isinstance(value, Term):
            value = term_to_dict(value)
        if isinstance(value, tuple):
            value = [_plain_item(item) for item in value]
        out[entry.name] = value
    return out


def _plain_item(item: Any) -> Any:
    if is_dataclass(item) and not isinstance(item, type):
        return asdict(item)
    return list(item) if isinstance(item, tuple) else item


def _own_term(file: Field) -> Term:
    """Term of a class of the user's, which must have been defined in this process."""
    name = file["name"].text()
    kind = _own_terms.get(name) or _subclass_of_friction(name.removeprefix(_OWN))
    if kind is None:
        raise TaufitError(
            f"{file.source}: friction law {name.removeprefix(_OWN)} is a class of yours. Import "
            "the module that defines it before the model is read, in Python; commands cannot."
        )
    default = kind()
    keys = [entry.name for entry in fields(default)]  # type: ignore[arg-type]
    settings = {key: _read_setting(file[key], getattr(default, key)) for key in keys}
    return kind(**settings)


def _subclass_of_friction(name: str) -> type[Term] | None:
    pending: list[type[Term]] = [Friction]
    while pending:
        kind = pending.pop()
        if kind.__name__ == name and FRICTION_MODELS.name_of(kind) is None:
            return kind
        pending += kind.__subclasses__()
    return None


def term_from_dict(data: Mapping[str, Any] | Field) -> Term:
    """Inverse of `term_to_dict`; invalid settings raise with their place."""
    file = data if isinstance(data, Field) else Field(data, "friction model")
    name = file["name"]
    location = f"{file.source}: " if isinstance(data, Field) else ""
    if not name.missing and str(name.value).startswith(_OWN):
        return _own_term(file)
    if name.missing or name.text() not in {*FRICTION_MODELS, *TERMS}:
        names = ", ".join((*FRICTION_MODELS, *TERMS))
        raise TaufitError(f"{location}friction model {name.value!r} is not known: use {names}.")
    registry: Mapping[str, type[Term]] = TERMS if name.text() in TERMS else FRICTION_MODELS
    kind = registry[name.text()]
    default = kind()
    settable = [entry.name for entry in fields(default)]  # type: ignore[arg-type]
    settings: dict[str, Any] = dict(_DEFAULTS_OF_OLD_FILES.get(name.text(), {}))
    for key in file.mapping():
        if key == "name":
            continue
        if key not in settable:
            raise TaufitError(
                f"{location}friction model {name.value} cannot have these settings: {key!r} is not "
                f"one of {', '.join(settable) or 'none'}."
            )
        if key == "compensators":
            from taufit.robot.from_dict import read_compensators

            settings[key] = read_compensators(file[key])
        else:
            settings[key] = _read_setting(file[key], getattr(default, key))
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        file.fail(f"settings of a friction model ({error})")


def terms_from_file(friction: Field, terms: Field) -> tuple[Friction | None, tuple[Term, ...]]:
    """Friction of a model file and its further terms.

    Files of version 0.1 have ripple and compensators as nested wrappers of the friction.
    """
    inner, wrapper_terms = _unwrap(friction)
    further_terms = () if terms.missing else tuple(term_from_dict(item) for item in terms.items())
    term = term_from_dict(inner)
    if not isinstance(term, Friction):
        inner["name"].fail(f"a friction model: one of {', '.join(FRICTION_MODELS)}")
    return (None if isinstance(term, NoFriction) else term), (*wrapper_terms, *further_terms)


def _unwrap(file: Field) -> tuple[Field, tuple[Term, ...]]:
    """Innermost friction, and the terms of its wrappers, innermost first."""
    name = file["name"].value
    if not isinstance(name, str) or file["model"].missing:
        return file, ()
    inner, terms = _unwrap(file["model"])
    if name in _WRAPPERS_OF_OLD_FILES:
        settings = {key: value for key, value in file.mapping().items() if key != "model"}
        term_field = Field(
            {**settings, "name": _WRAPPERS_OF_OLD_FILES[name]}, file.source, file.path
        )
        term = term_from_dict(term_field)
        return inner, (*terms, *((term,) if term.parameters else ()))
    if inner is file["model"] or not terms:
        return file, terms
    return Field({**file.mapping(), "model": inner.value}, file.source, file.path), terms


def _read_setting(file: Field, default: Any) -> Any:
    """Setting with the type of its default."""
    if is_dataclass(default):
        return term_from_dict(file)
    if isinstance(default, bool):
        return file.flag()
    if isinstance(default, int):
        number = file.required().number(low=0.0, most=20.0)
        return int(number) if number == int(number) else file.fail("a whole number")
    if isinstance(default, float):
        positive = file.path.endswith("width")
        return file.required().number(low=0.0 if positive else -math.inf, most=1e6)
    if isinstance(default, tuple):
        return _read_items(file)
    if default is None and file.missing:
        return None
    return file.text() if isinstance(default, str) else file.value


def _read_items(file: Field) -> tuple[Any, ...]:
    """Texts, numbers, or rows of numbers."""
    items = tuple(file.items())
    if any(isinstance(item.value, list) for item in items):
        return tuple(tuple(number.number() for number in item.items()) for item in items)
    if all(isinstance(item.value, str) for item in items):
        return tuple(file.texts())
    return tuple(item.number() for item in items)
