"""Nouns in notebooks: the report's own charts, framed; plots with matplotlib."""

from __future__ import annotations

import html
import re

import matplotlib as mpl
import numpy as np
import pytest

import taufit
from taufit.core.errors import MissingExtraError
from taufit.report import fit_page
from taufit.sim import random_fourier

mpl.use("Agg")


@pytest.fixture(scope="module")
def nouns():
    robot = taufit.read_robot("ur3e")
    recording = taufit.Twin.typical(robot).run(random_fourier(robot, seed=0)).recording
    done = taufit.identify(robot, recording)
    return {
        "robot": robot,
        "recording": recording,
        "samples": done.samples,
        "model": done.model,
        "done": done,
    }


@pytest.mark.parametrize("name", ["robot", "recording", "samples", "model", "done"])
def test_a_noun_shows_a_page_that_cannot_touch_the_notebook(nouns, name):
    text = nouns[name]._repr_html_()
    frame = re.fullmatch(r'<iframe title="\w+" sandbox="([^"]*)" srcdoc="([^"]*)" .*', text, re.S)
    assert frame and frame[1] == "allow-scripts"
    page = html.unescape(frame[2])
    assert page.startswith("<!doctype html>") and "</html>" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_a_fit_shows_the_page_of_its_report(nouns):
    text = html.unescape(nouns["done"]._repr_html_())
    body = fit_page(nouns["done"])
    assert body in text


@pytest.mark.parametrize("name", ["robot", "recording", "samples", "model", "done"])
def test_a_noun_says_in_one_line_what_it_is(nouns, name):
    lines = repr(nouns[name]).split("\n")
    assert len(lines) <= (3 if name == "done" else 1) and max(map(len, lines)) < 100


def test_friction_is_plotted_joint_by_joint(nouns):
    from matplotlib import pyplot

    axes = nouns["model"].plot_friction(joints=(1, 2))
    assert [axis.get_title() for axis in axes] == list(nouns["robot"].joint_names[1:3])
    x, y = axes[0].lines[0].get_data()
    assert np.all(np.diff(y[x > 0.1 * x.max()]) > -1e-9 * np.abs(y).max())
    pyplot.close("all")


def test_torque_is_plotted_as_measured_and_as_predicted(nouns):
    from matplotlib import pyplot

    done = nouns["done"]
    axes = done.plot_torque()
    measured, predicted = (line.get_ydata() for line in axes[1].lines)
    np.testing.assert_array_equal(measured, done.samples.torque[:, 1])
    rows = done.samples.in_motion
    error = np.sqrt(np.mean((measured - predicted)[rows] ** 2))
    assert error == pytest.approx(done.training_score.rmse[1], rel=0.05)
    for noun in (nouns["recording"], done.samples):
        assert all(len(axis.lines) == 6 for axis in noun.plot())
    pyplot.close("all")


def test_without_matplotlib_the_library_is_named(nouns, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        nouns["model"].plot_friction()
