"""One number, one text: digits by uncertainty, a true minus, no negative zero."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from taufit.core.number_text import (
    MINUS,
    column,
    fixed,
    interval,
    percent,
    quantity,
    significant,
    whole,
)

finite = st.floats(-1e300, 1e300)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fixed(-0.04, 1), "0.0"),
        (fixed(-1.25, 2), f"{MINUS}1.25"),
        (fixed(None, 2), "–"),
        (significant(0.0414), "0.0414"),
        (significant(0.03956), "0.0396"),
        (significant(9.996), "10.0"),
        (significant(99_999.0), "99999"),
        (significant(4.9e-9), "4.90 × 10⁻⁹"),
        (quantity(1.4801, "N m"), "1.48 N m"),
        (interval(3.4901, 0.0123, "kg"), "3.490 ± 0.012 kg"),
        (interval(-0.00001, 0.8, "mm"), "0.00 ± 0.80 mm"),
        (interval(1234.6, 250.0), "1235 ± 250"),
        (percent(0.0404), "4.0 %"),
        (whole(66012), "66\u202f012"),
    ],
)
def test_texts(text, expected):
    assert text == expected


@given(value=finite, digits=st.integers(2, 5))
def test_a_number_is_what_its_text_says(value, digits):
    text = significant(value, digits)
    assert "-" not in text and not re.fullmatch(rf"{MINUS}[0.]+", text)
    if 1e-3 <= abs(value) < 99_999:
        assert "10" + "⁻" not in text and "×" not in text
    mantissa, _, power = text.replace(MINUS, "-").partition(" × 10")
    plain = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert float(mantissa) * 10.0 ** int(plain or 0) == pytest.approx(
        value, rel=0.51 * 10.0 ** (1 - digits), abs=1e-300
    )


@given(values=st.lists(st.floats(-1e4, 1e4), min_size=1))
def test_a_column_has_the_same_decimals(values):
    texts = column(values)
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
