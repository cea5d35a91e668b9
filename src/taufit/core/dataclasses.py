"""Decorator `dataclass` of the standard library with methods made on first use.

The standard library compiles up to six functions per class when a module is loaded: 54 ms of
processor time in a fit to 50 s of motion (0.97 s), 10 to 20 ms in other commands. Here `__init__`
is compiled by the first object of a class, and all classes share their other methods. Under a check
of annotations, which reads `__init__`, the decorator is the standard one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from inspect import Parameter, Signature
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **settings):
        """Decorator as `dataclasses.dataclass`."""
        return _decorate(cls, **settings) if cls is not None else lambda c: _decorate(c, **settings)


def _decorate(
    cls: type,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> type:
    """Class with its fields, and with methods that are made on first use."""
    from dataclasses import dataclass as standard

    if any(hasattr(base, "__dataclass_params__") for base in cls.__mro__[1:]):
        # The standard decorator compares whether a class and its bases are frozen.
        return standard(init=init, repr=repr, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)(
            cls
        )
    own = dict(vars(cls))
    made: Any = standard(
        init=False, repr=False, eq=eq and not frozen, slots=slots, kw_only=kw_only
    )(cls)
    made.__dataclass_params__.frozen = frozen
    methods: dict[str, Any] = {}
    if init:
        methods |= {"__init__": _first_init(made, is_frozen=frozen), "__signature__": _SIGNATURE}
    if repr:
        methods["__repr__"] = _represent
    if frozen:
        methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        if eq:
            methods |= {"__eq__": _is_equal, "__hash__": _hash}
    for name, method in methods.items():
        if name not in own or (name == "__hash__" and own[name] is None):
            setattr(made, name, method)
    result: type = made
    return result


_compilations: list[Callable[[], Any]] = []


def compile_methods() -> None:
    """Compile the methods of all classes so far, for a control loop, which cannot wait for it."""
    while _compilations:
        _compilations.pop()()


def _first_init(cls: type, *, is_frozen: bool) -> Any:
    """Method `__init__` that compiles the real one and takes its place."""

    compiled: Any = None

    def compile_once() -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = _compile_init(cls, is_frozen=is_frozen)
            # A decorator of `__init__` stays.
            if vars(cls).get("__init__") is __init__:
                setattr(cls, "__init__", compiled)  # noqa: B010 - type checkers refuse the other
        return compiled

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        compile_once()(self, *values, **named)

    _compilations.append(compile_once)
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__


def _init_fields(cls: type) -> list[Field[Any]]:
    """Fields in the order of the arguments: those by name only are the last."""
    return sorted((f for f in fields(cls) if f.init), key=lambda field: bool(field.kw_only))


def _compile_init(cls: type, *, is_frozen: bool) -> Any:
    """Method `__init__` of a class, with one argument per field."""
    names: dict[str, Any] = {"_write": object.__setattr__, "_missing": MISSING}
    arguments, lines = ["_self"], []
    is_by_name = False
    for field in _init_fields(cls):
        if field.kw_only and not is_by_name:
            arguments.append("*")
            is_by_name = True
        value = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            value = f"_make_{value}() if {value} is _missing else {value}"
            arguments.append(f"{field.name}=_missing")
        elif field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            arguments.append(f"{field.name}=_default_{field.name}")
        else:
            arguments.append(field.name)
        lines.append(_assignment(cls, field.name, value, names, is_frozen=is_frozen))
    for field in fields(cls):
        if not field.init and field.default_factory is not MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            value = f"_make_{field.name}()"
        elif not field.init and field.default is not MISSING:
            names[f"_default_{field.name}"] = field.default
            value = f"_default_{field.name}"
        else:
            continue
        lines.append(_assignment(cls, field.name, value, names, is_frozen=is_frozen))
    if hasattr(cls, "__post_init__"):
        lines.append("_self.__post_init__()")
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(arguments)}):\n {body}", names)
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return names["__init__"]


def _assignment(cls: type, name: str, value: str, names: dict[str, Any], *, is_frozen: bool) -> str:
    """Statement that sets an attribute, also of a frozen object."""
    if not is_frozen:
        return f"_self.{name} = {value}"
    slot: Any = getattr(cls, name, None)
    if type(slot).__name__ != "member_descriptor":
        return f"_write(_self, {name!r}, {value})"
    names[f"_set_{name}"] = slot.__set__
    return f"_set_{name}(_self, {value})"


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _LazySignature:
    """Signature of a class, made when it is asked for."""

    def __get__(self, instance: object, cls: type) -> Signature:
        parameters = []
        for field in _init_fields(cls):
            default: Any = Parameter.empty if field.default is MISSING else field.default
            if field.default_factory is not MISSING:
                default = _FACTORY
            kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(Parameter(field.name, kind, default=default, annotation=field.type))
        return Signature(parameters)


_SIGNATURE = _LazySignature()


@recursive_repr()
def _represent(self: Any) -> str:
    values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({values})"


def _comparison_values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, f.name) for f in fields(self) if f.compare)


def _is_equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _comparison_values(self) == _comparison_values(other)


def _hash(self: Any) -> int:
    return hash(_comparison_values(self))


def _refuse_change(self: Any, name: str, *value: Any) -> None:
    if "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
    # An attribute of a derived class.
    (object.__setattr__ if value else object.__delattr__)(self, name, *value)


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


__all__ = ["compile_methods", "dataclass"]
