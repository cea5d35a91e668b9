"""Models, robots, recordings and settings that are not what they should be."""

from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import RecordingError, TaufitError
from taufit.model import TrainingRecord
from taufit.payload import PayloadSettings, identify_payload
from taufit.payload.identification import _overload_message
from taufit.sim import random_fourier, read_preset
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

MASS = 3.5256


def _width(estimate):
    return estimate.mass_interval[1] - estimate.mass_interval[0]


def _never_wrong(done, mass):
    """No read-out that calls itself ready misses the truth."""
    return all(m.low <= mass <= m.high for m in done.history if m.ready)


@pytest.fixture(scope="module")
def whole(model, loaded):
    """What is found where nothing is wrong."""
    return identify_payload(model, loaded)


def test_a_model_without_covariance_still_holds_the_truth(model, loaded, whole):
    known = model.training
    bare = model.with_training(
        TrainingRecord(conditioning=known.conditioning, ranges=known.ranges, score=known.score)
    )

    done = identify_payload(bare, loaded)

    assert any("no covariance" in text for text in done.warnings)
    assert _width(done.estimate) > _width(whole.estimate)
    assert done.estimate.mass_interval[0] < MASS < done.estimate.mass_interval[1]
    assert _never_wrong(done, MASS)


@pytest.fixture(scope="module")
def other_model():
    """Another arm of six joints, half the size."""
    preset = read_preset("ur5-warmup")
    motion = random_fourier(preset.twin.robot, seed=1, periods=2)
    return identify(preset.twin.robot, [preset.twin.run(motion, seed=1).recording]).model


def test_another_robot_with_as_many_joints_is_never_believed(other_model, loaded):
    unnamed = {k: v for k, v in loaded.meta.items() if k != "joint_names"}

    done = identify_payload(other_model, replace(loaded, meta=unnamed))

    assert not any(m.ready for m in done.history)
    assert done.ready_at is None and not done.estimate.ready
    assert any("does not explain" in text for text in done.warnings)


def test_a_tool_that_is_gone_is_told(arm, unloaded):
    preset, twin = arm
    tool = CarriedPayload.lump(2.0, (0.0, 0.0, 0.08))
    with_tool = twin.run(preset.motion(periods=3), seed=61, payload=tool).recording

    done = identify_payload(identify(twin.robot, [with_tool]).model, unloaded)

    assert not done.estimate.ready
    assert any("2.0 kg lighter" in text for text in done.warnings)


def test_a_payload_beyond_the_rating_is_told(arm, model):
    preset, twin = arm
    heavy = CarriedPayload.lump(12.0, (0.0, 0.0, 0.08))
    run = twin.run(preset.motion(periods=1), seed=62, payload=heavy)

    done = identify_payload(model, run.recording)

    assert any("heavier than the 10 kg" in text for text in done.warnings)
    assert done.estimate.mass_interval[0] < 12.0 < done.estimate.mass_interval[1]


def test_an_arm_without_a_rating_is_judged_by_its_own_weight(model, whole):
    nameless = model.with_robot(replace(model.robot, name="arm of nobody"))
    estimate = whole.estimate
    arm = float(model.robot.parameters[::10].sum())
    heavy = replace(estimate, mass=arm, mass_interval=(0.9 * arm, 1.1 * arm))

    assert "most arms" in _overload_message(nameless, heavy)
    assert _overload_message(nameless, estimate) == ""


@pytest.mark.parametrize("lost", ["position", "velocity", "acceleration"])
def test_a_method_that_needs_commands_asks_for_them(model, loaded, lost):
    lacking = replace(loaded, **{f"commanded_{lost}": None})

    with pytest.raises(RecordingError, match="commanded"):
        identify_payload(model, lacking, method="difference")
    for method in ("direct", "khalil"):
        assert abs(identify_payload(model, lacking, method=method).estimate.mass / MASS - 1) < 0.1


@pytest.mark.parametrize("start", [4.0, 7.0])
@pytest.mark.parametrize("kind", ["missing", "held", "zero"])
def test_a_dropout_of_a_second_is_told_and_fools_nobody(model, loaded, whole, start, kind):
    time = np.asarray(loaded.time) - loaded.time[0]
    out = (time > start) & (time < start + 1.0)
    signal = np.array(loaded.signal)
    signal[out] = {"missing": np.nan, "held": signal[np.argmax(out) - 1], "zero": 0.0}[kind]

    done = identify_payload(model, replace(loaded, signal=signal))

    assert [event.kind for event in done.events] == ["gap"]
    assert any("no samples" in text for text in done.warnings)
    assert _never_wrong(done, MASS)
    # Right after it no more is known than right before, and less than without it.
    after = {
        name: next(m for m in each.history if m.t > start + 1.2)
        for name, each in (("with", done), ("without", whole))
    }
    assert after["with"].high - after["with"].low > after["without"].high - after["without"].low


def test_a_torque_channel_that_hangs_is_never_believed(model, loaded):
    time = np.asarray(loaded.time) - loaded.time[0]
    signal = np.array(loaded.signal)
    hangs = time > 3.0
    signal[hangs, 1] = signal[np.argmax(hangs), 1]

    done = identify_payload(model, replace(loaded, signal=signal))

    assert not done.estimate.ready
    assert _never_wrong(done, MASS)
    assert any("joint" in text and "2" in text for text in done.warnings)


@pytest.mark.parametrize("value", [1e298, np.inf, np.nan, -0.01])
@pytest.mark.parametrize("name", ["gain_std", "gain_common"])
def test_deviations_of_gains_are_shares(name, value):
    with pytest.raises(TaufitError, match=f"{name} is a relative standard deviation"):
        PayloadSettings(**{name: value})
