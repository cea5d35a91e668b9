"""Signs of single segments: how they are written, what they decide, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.sign_instances import boxes, instance, segment_truth

from taufit.core.errors import RecordingError, TaufitError
from taufit.signs.data import prepare_search
from taufit.signs.hints import read_hint
from taufit.signs.unknown_signs import SignHint, find_signs, fit_unsigned


def test_hints_are_read_as_they_are_written():
    names = ("base", "shoulder", "elbow")
    assert read_hint("2:3.1-4:+", names) == SignHint(1, 3.1, 4.0, 1)
    assert read_hint(" elbow:0-0.5:-@3", names) == SignHint(2, 0.0, 0.5, -1, 2)
    assert read_hint("1:10-12:-1") == SignHint(0, 10.0, 12.0, -1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2:3.1:+", "JOINT:T0-T1"),
        ("2:3.1-4", "JOINT:T0-T1"),
        ("2:3.1.2-4:+", "JOINT:T0-T1"),
        ("9:3.1-4:+", "1 to 3, or base, shoulder, elbow"),
        ("0:3.1-4:+", "no joint '0'"),
        ("wrist:3.1-4:+", "no joint 'wrist'"),
        ("2:4-3:+", "begin before it ends"),
        ("2:3-4:+@0", "runs count from 1"),
    ],
)
def test_what_is_no_hint_is_refused_with_what_to_write(text, told):
    with pytest.raises(TaufitError, match=told):
        read_hint(text, ("base", "shoulder", "elbow"))


def test_a_hint_decides_what_the_motion_does_not():
    """So slow that inertia drowns in noise: weight and its mirror image fit alike."""
    case = instance(0, noise=0.2, seconds=400.0, rate_hz=2.0)
    plain = find_signs(case.model, case.samples)
    wrong = segment_truth(case, plain.segments) != plain.signs
    assert wrong.sum() > 100 and not plain.confident and np.all(plain.ambiguous[wrong])
    one = max((s for s in plain.segments if s.joint == 1), key=lambda s: s.last - s.first)
    truth = int(np.sign(case.torque[one.first : one.last + 1, 1].sum()))

    found = find_signs(case.model, case.samples, hints=[SignHint(1, one.t0, one.t1, truth)])

    np.testing.assert_array_equal(found.signs, segment_truth(case, found.segments))
    assert found.ambiguous.sum() < 0.1 * plain.ambiguous.sum()


def test_samples_of_a_hint_near_zero_keep_their_doubt():
    case = instance(0, noise=0.2, friction=True)
    data = prepare_search(case.model, case.samples, [SignHint(1, 0.0, 5.0, 1)])
    inside = case.samples.time <= 5.0
    assert np.all(data.has_sign[inside, 1]) and not np.any(data.has_sign[~inside])
    small = np.abs(case.measured[:, 1]) < 2.0 * data.noise[1]
    assert np.any(inside & small) and not np.any(data.signed[inside & small, 1])
    assert np.all(data.signed[inside & ~small, 1])


def test_a_false_hint_among_right_ones_is_named():
    case = instance(0, noise=0.05, friction=True)
    plain = find_signs(case.model, case.samples)
    long = [s for s in plain.segments if s.joint == 1 and s.last - s.first > 15]
    hints = [SignHint(1, s.t0, s.t1, s.sign) for s in long]
    hints[0] = replace(hints[0], sign=-hints[0].sign)

    found = find_signs(case.model, case.samples, hints=hints)

    assert not found.confident
    told = [text for text in found.warnings if "contradicts the sign given" in text]
    assert len(told) == 1 and str(hints[0]) in told[0] and str(hints[1]) not in told[0]


def test_hints_that_cannot_be_meant_are_refused():
    case = instance(0, noise=0.05)
    one = SignHint(1, 1.0, 2.0, 1)
    with pytest.raises(RecordingError, match="two opposite signs"):
        find_signs(case.model, case.samples, hints=[one, SignHint(1, 1.5, 3.0, -1)])
    signed = np.array([False, True, False, False, False, False])
    torque = np.where(signed, case.measured, np.abs(case.measured))
    with pytest.raises(RecordingError, match="carries its own"):
        find_signs(case.model, replace(case.samples, torque=torque, signed=signed), hints=[one])
    with pytest.raises(TaufitError, match="tree search takes neither"):
        fit_unsigned(case.model, case.samples, "tree", hints=[one], bounds=boxes(case))
    with pytest.raises(TaufitError, match="tree search takes neither"):
        fit_unsigned(case.model, case.samples, "tree", constrained=True)
