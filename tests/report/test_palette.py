"""Colours of the pages are told apart by every eye and stand out from the paper."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from taufit.report.palette import CURVES, DARK, LIGHT, style_variables

SCHEMES = {"light": LIGHT, "dark": DARK}
# Machado, Oliveira, Fernandes 2009: full red and green blindness, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "red-blind": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "green-blind": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.01182, 0.04294, 0.968881]]
    ),
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = np.cbrt(TO_XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a: str, b: str) -> float:
    bright, dim = sorted((float(TO_XYZ[1] @ linear(c)) for c in (a, b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ground", ["paper", "card"])
def test_text_and_lines_stand_out(scheme, ground):
    colours = SCHEMES[scheme]
    for name in ("ink", "soft", "good", "warn", "bad", "model", "residual"):
        assert contrast(colours[name], colours[ground]) >= 4.5, name
    assert contrast(colours["measured"], colours[ground]) >= 3.0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("eye", EYES)
def test_curves_differ_for_every_eye(scheme, eye):
    seen = {name: lab(EYES[eye] @ linear(SCHEMES[scheme][name])) for name in CURVES}
    for a, b in combinations(CURVES, 2):
        assert np.linalg.norm(seen[a] - seen[b]) >= 30.0, (a, b)


def test_a_pair_that_looks_alike_is_noticed():
    # The former colours of model and second model.
    pair = [lab(EYES["red-blind"] @ linear(colour)) for colour in ("#14639e", "#8a4fa3")]
    assert np.linalg.norm(pair[0] - pair[1]) < 30.0


def test_both_schemes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()
    assert all(f"--{name}:" in style_variables() for name in LIGHT)
