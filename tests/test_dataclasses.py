"""Dataclasses whose methods are made on first use behave as those of the standard library."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pickle
from dataclasses import field
from typing import ClassVar

import pytest

from taufit.core.dataclasses import _decorate


def _point(decorate):
    @decorate(frozen=True, slots=True)
    class Point:
        """A point."""

        unit: ClassVar[str] = "m"
        x: float
        y: float = 2.0
        tags: list[str] = field(default_factory=list, compare=False)
        note: str = field(default="", repr=False, kw_only=True)
        sum: float = field(init=False, default=-1.0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "sum", self.x + self.y)

    return Point


def _open(decorate):
    @decorate()
    class Open:
        x: int
        y: int = 1

    return Open


def _by_identity(decorate):
    @decorate(frozen=True, eq=False)
    class ByIdentity:
        x: int = 3

        def __repr__(self) -> str:
            return f"<{self.x}>"

    return ByIdentity


def _derived(decorate):
    @decorate(frozen=True, slots=True)
    class Base:
        x: int

    @decorate(frozen=True, slots=True)
    class Derived(Base):
        z: int = 5

    return Derived


def lazy(**settings):
    return lambda cls: _decorate(cls, **settings)


KINDS = [_point, _open, _by_identity, _derived]
CALLS = [
    ((1.5,), {}),
    ((1, 4), {}),
    ((), {"x": 2}),
    ((1,), {"y": 7}),
    ((1, 2, 3, 4, 5), {}),
    ((), {}),
]


@dataclasses.dataclass(frozen=True, slots=True)
class _Standard:
    x: int
    y: int = 0


_Lazy = _decorate(
    type(
        "_Lazy", (), {"__annotations__": {"x": "int", "y": "int"}, "y": 0, "__module__": __name__}
    ),
    frozen=True,
    slots=True,
)


def outcome(work):
    try:
        return work()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_those_of_the_standard_library(kind):
    first, second = kind(lazy), kind(dataclasses.dataclass)
    assert [f.name for f in dataclasses.fields(first)] == [
        f.name for f in dataclasses.fields(second)
    ]
    assert str(inspect.signature(first)) == str(inspect.signature(second)).replace(" -> None", "")
    assert first.__match_args__ == second.__match_args__
    for values, named in CALLS:
        compare(*(functools.partial(made, *values, **named) for made in (first, second)))


def compare(first, second):
    """Compare objects of two calls in all that a dataclass defines."""
    a, b = outcome(first), outcome(second)
    if isinstance(b, type):
        assert a is b
        return
    assert repr(a).rpartition(".")[2] == repr(b).rpartition(".")[2]
    assert (a == first()) == (b == second())
    assert outcome(lambda: hash(a) == hash(first())) == outcome(lambda: hash(b) == hash(second()))
    changed = [dataclasses.replace(value, x=9) for value in (a, b)]
    for x, y in ((a, b), changed):
        assert dataclasses.asdict(x) == dataclasses.asdict(y)
    for change in (
        lambda o: setattr(o, "x", 1),
        lambda o: delattr(o, "x"),
    ):
        assert outcome(functools.partial(change, a)) is outcome(functools.partial(change, b))
    # Objects with slots of Python 3.11 raise another error.
    refusals = [isinstance(outcome(lambda o=o: setattr(o, "other", 1)), type) for o in (a, b)]
    assert refusals[0] == refusals[1]


def test_defaults_are_made_for_each_object():
    point = _point(lazy)
    assert point(1.0).tags is not point(1.0).tags
    with pytest.raises(TypeError, match="positional"):
        point(1.0, 2.0, [], "by position")


def test_a_class_derived_without_the_decorator_has_attributes_of_its_own():
    for decorate in (lazy, dataclasses.dataclass):
        base = _by_identity(decorate)
        derived = type("Derived", (base,), {})
        made = derived(1)
        made.extra = 2
        assert made.extra == 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.x = 2


def test_an_object_is_stored_and_read_back():
    assert pickle.loads(pickle.dumps(_Lazy(1, 2))) == _Lazy(1, 2)
    assert pickle.loads(pickle.dumps(_Standard(1, 2))) == _Standard(1, 2)


def test_a_decorated_init_stays_and_is_compiled_once(monkeypatch):
    from taufit.core import dataclasses as module

    made = _open(lazy)
    plain, calls = made.__init__, []
    made.__init__ = lambda self, *given: (calls.append(given), plain(self, *given))[1]
    compiled = module._compile_init
    count = []
    monkeypatch.setattr(
        module, "_compile_init", lambda *a, **k: (count.append(1), compiled(*a, **k))[1]
    )
    assert [made(1).y, made(2, 3).y] == [1, 3]
    assert len(calls) == 2 and len(count) == 1


def test_a_monitor_compiles_no_methods_in_its_loop():
    from taufit.core import dataclasses as lazy_dataclasses

    point = _point(lazy)
    first = point.__init__
    lazy_dataclasses.compile_methods()
    assert point.__init__ is not first and point(1.5).y == 2.0
    assert not lazy_dataclasses._compilations
