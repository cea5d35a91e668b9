"""The picture of found signs is one valid SVG that shows every segment."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
from benchmarks.sign_instances import instance

from taufit.report.signs_chart import signs_chart
from taufit.signals import Samples
from taufit.signs.unknown_signs import find_signs, fit_unsigned

SVG = "{http://www.w3.org/2000/svg}"


def test_every_segment_is_drawn_in_the_colour_of_its_sign():
    case = instance(0, noise=0.05, friction=True)
    result = fit_unsigned(case.model, case.samples)
    root = ElementTree.fromstring(signs_chart(result))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert len(titles) == len(result.segments)
    for positive, colour in ((True, "var(--model)"), (False, "var(--residual)")):
        bands = [
            r
            for r in root.iter(f"{SVG}rect")
            if r.get("fill") == colour and r.get("opacity") == "0.32"
        ]
        assert len(bands) == np.sum((result.signs > 0) == positive)
    assert len(list(root.iter(f"{SVG}polyline"))) == 6
    assert signs_chart(result) == signs_chart(result.recovery)


def test_doubt_is_hatched_and_runs_follow_each_other():
    parts = [instance(seed, noise=0.5, friction=True, seconds=6.0) for seed in (0, 1)]
    joined = Samples.concatenate([case.samples for case in parts])
    joined = replace(joined, names=("first", "second"))
    found = find_signs(parts[0].model, joined)
    text = signs_chart(found)
    root = ElementTree.fromstring(text)
    hatched = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == "url(#ambiguous)"]
    # One of them is the legend's.
    assert len(hatched) == found.ambiguous.sum() + 1
    assert found.ambiguous.sum() > 0
    right = [
        float(r.get("x")) + float(r.get("width")) for r in root.iter(f"{SVG}rect") if r.get("x")
    ]
    assert max(right) <= 960.0
    assert len(list(root.iter(f"{SVG}polyline"))) == 2 * len({s.joint for s in found.segments})
