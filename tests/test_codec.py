"""Plain-data nouns: write then read returns the same; a wrong value is refused by its place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from taufit.core.arrays import Array, Float
from taufit.core.codec import Limits, read, read_optional, write
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.core.plain_data import to_plain_data


@dataclass(frozen=True, eq=False)
class Wheel:
    radius: Annotated[float, Limits(above=0.0)]
    spokes: Annotated[int, Limits(low=0.0)] = 0


@dataclass(frozen=True, eq=False)
class Cart:
    name: str
    wheels: tuple[Wheel, ...]
    load: Annotated[Float[Array, " j"], Limits(low=0.0, missing=math.nan)]
    gain: Float[Array, "j k"]
    offset: Float[Array, " k"] | None = None
    cutoff: Annotated[float, Limits(null=math.inf)] = 10.0
    braked: bool = False


CART = Cart(
    "hay", (Wheel(0.5, 8), Wheel(0.4)), np.array([1.0, math.nan]), np.ones((2, 3)), np.arange(3.0)
)


def plain_cart(**changes):
    return {**json.loads(json.dumps(to_plain_data(write(CART)))), **changes}


def read_cart(data, **sizes):
    return read(Cart, Field(data, "cart.json"), **sizes)


def test_write_then_read_returns_the_same():
    again = read_cart(plain_cart())
    assert again.name == "hay" and [w.spokes for w in again.wheels] == [8, 0]
    np.testing.assert_array_equal(again.load, CART.load)
    np.testing.assert_array_equal(again.gain, CART.gain)
    np.testing.assert_array_equal(again.offset, CART.offset)
    assert to_plain_data(write(again)) == plain_cart()


def test_absent_entries_take_the_defaults_and_null_its_own_meaning():
    data = plain_cart(cutoff=None)
    del data["offset"], data["braked"]
    again = read_cart(data)
    assert again.offset is None and again.braked is False and again.cutoff == math.inf
    del data["cutoff"]
    assert read_cart(data).cutoff == 10.0
    assert read_optional(Cart, Field(None, "cart.json")) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 3}, "name is 3, expected text"),
        ({"wheels": [{"radius": 0.5}, {"radius": 0.0}]}, r"wheels\[1\].radius is 0.0, expected a"),
        ({"wheels": [{}]}, r"it has no wheels\[0\].radius"),
        ({"load": [1.0, -2.0]}, r"load\[1\] is -2.0, expected a number of at least 0"),
        ({"load": [1.0, 2.0, 3.0]}, "gain is .*, expected a list of 3 rows"),
        ({"gain": [[1, 2, 3], [1, 2]]}, r"gain\[1\] is \[1, 2\], expected a list of 3 numbers"),
        ({"offset": [1.0]}, "offset is .*, expected a list of 3 numbers"),
        ({"braked": "no"}, "braked is 'no', expected true or false"),
        ({"load": None}, "it has no load"),
    ],
)
def test_a_wrong_value_is_refused_by_its_place(changes, message):
    with pytest.raises(TaufitError, match=message):
        read_cart(plain_cart(**changes))


def test_given_sizes_bind_the_letters():
    read_cart(plain_cart(), j=2, k=3)
    with pytest.raises(TaufitError, match=r"load is .*, expected a list of 4 numbers, not 2"):
        read_cart(plain_cart(), j=4)


def test_checks_of_a_class_see_every_object_of_it():
    def odd_spokes(wheel, data):
        if wheel.spokes % 2:
            data["spokes"].fail("an even number")

    checked = Field(
        plain_cart(wheels=[{"radius": 1, "spokes": 4}, {"radius": 1, "spokes": 5}]), "c"
    )
    with pytest.raises(TaufitError, match=r"wheels\[1\].spokes is 5, expected an even number"):
        read(Cart, checked, {Wheel: odd_spokes})
