"""The filter on a simulated arm: right, honest about it, and hard to fool."""

import json
from dataclasses import replace

import numpy as np
import pytest

from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.payload import METHODS, PayloadFilter, PayloadSettings, identify_payload, stream
from taufit.robot.inertia import pseudo_inertia
from taufit.sim.payload import CarriedPayload
from taufit.sim.random_motion import random_fourier

MASS, CENTRE = 3.5256, np.array([0.0, 0.0, 0.0296])


@pytest.fixture(scope="module")
def found(model, loaded):
    return identify_payload(model, loaded)


def test_the_payload_is_found_with_an_interval_that_holds(found):
    estimate = found.estimate

    assert estimate.ready and not estimate.empty
    assert abs(estimate.mass / MASS - 1.0) < 0.02
    assert estimate.mass_interval[0] < MASS < estimate.mass_interval[1]
    assert np.linalg.norm(estimate.centre - CENTRE) < 0.012
    assert np.linalg.eigvalsh(pseudo_inertia(estimate.parameters)).min() > 0.0


def test_after_readiness_the_interval_keeps_the_truth(found):
    after = [m for m in found.history if m.ready]

    assert len(after) > 20
    assert np.mean([m.low <= MASS <= m.high for m in after]) > 0.9
    assert found.ready_at is not None and found.ready_at < 7.0
    assert found.stopped_at is not None and found.stopped_at >= found.ready_at


def test_the_error_budget_adds_up_and_says_what_to_do(found):
    assert set(found.budget) == {"noise", "links", "friction", "gains"}
    assert sum(found.budget.values()) == pytest.approx(1.0)
    assert min(found.budget.values()) >= 0.0
    assert found.advice


def test_an_empty_arm_is_told_so(model, unloaded):
    done = identify_payload(model, unloaded)

    assert done.estimate.empty
    assert done.estimate.mass_interval[0] == 0.0
    assert done.estimate.mass_interval[1] < 0.3


def test_a_worse_known_gain_widens_the_interval(model, loaded):
    widths = []
    for std in (0.002, 0.04):
        settings = PayloadSettings(gain_std=std, gain_common=std)
        low, high = identify_payload(model, loaded, settings=settings).estimate.mass_interval
        widths.append(high - low)

    assert widths[1] > 2.0 * widths[0]


def test_a_pick_and_a_drop_are_found(arm, model):
    preset, twin = arm
    carried = CarriedPayload.lump(3.0, (0.0, 0.0, 0.05), pick=7.0, drop=12.0)
    run = twin.run(preset.motion(periods=1.8), seed=11, payload=carried, rest=(0.5, 0.0))

    events = identify_payload(model, run.recording).events

    times = [event.time for event in events]
    assert len(times) == 2
    assert 0.0 < times[0] - 7.0 < 0.3 and 0.0 < times[1] - 12.0 < 0.3


def test_a_gap_is_told_and_does_not_fool_the_filter(model, loaded):
    time = np.asarray(loaded.time)
    keep = (time < time[0] + 4.0) | (time > time[0] + 5.0)
    parts = {
        name: getattr(loaded, name)[keep]
        for name in ("time", "position", "velocity", "signal", "temperature")
        if getattr(loaded, name) is not None
    }
    cut = replace(
        loaded,
        **parts,
        **{
            name: None
            for name in (
                "acceleration", "commanded_position", "commanded_velocity",
                "commanded_acceleration", "target_current", "target_torque",
            )
        },
    )  # fmt: skip

    done = identify_payload(model, cut)

    assert [event.kind for event in done.events] == ["gap"]
    assert any("no samples" in text for text in done.warnings)
    assert done.estimate.mass_interval[0] < MASS < done.estimate.mass_interval[1]


def test_missing_values_count_as_missing_samples(model, loaded):
    source = stream(model, loaded)
    live, holes = PayloadFilter(model), PayloadFilter(model)
    rng = np.random.default_rng(0)
    for time, q, v, tau, _ in source.samples():
        live.update(time, q, v, tau)
        lost = rng.uniform() < 0.02
        holes.update(time, q, v, np.full_like(tau, np.nan) if lost else tau)

    assert abs(holes.estimate().mass - live.estimate().mass) < 0.03


def test_a_model_without_covariance_gives_a_wider_interval_and_says_so(model, loaded, found):
    bare = model.with_training(replace(model.training, base=None))

    done = identify_payload(bare, loaded)

    wide = np.diff(done.estimate.mass_interval)[0]
    assert wide > np.diff(found.estimate.mass_interval)[0]
    assert any("no covariance" in text for text in done.warnings)


@pytest.mark.unchecked
def test_bad_input_is_refused_in_words(model, loaded):
    with pytest.raises(TaufitError, match="unknown payload method"):
        identify_payload(model, loaded, method="guess")
    with pytest.raises(RecordingError, match="commanded"):
        identify_payload(model, replace(loaded, commanded_position=None), method="difference")
    with pytest.raises(RecordingError, match="expected 6 joints"):
        few = {"position": loaded.position[:, :4], "signal": loaded.signal[:, :4]}
        meta = {k: v for k, v in loaded.meta.items() if k != "joint_names"}
        none = dict.fromkeys(
            ("velocity", "acceleration", "commanded_position", "commanded_velocity",
             "commanded_acceleration", "target_current", "target_torque", "temperature",
             "gain", "gain_std", "signed", "coupling")
        )  # fmt: skip
        identify_payload(model, replace(loaded, **few, **none, meta=meta))
    with pytest.raises(TaufitError, match="no parameters"):
        PayloadFilter(model.structure)


def test_a_model_of_another_arm_is_never_believed(model, loaded):
    wrong = np.array(model.values)
    wrong[10:30] *= 1.6
    done = identify_payload(model.with_values(wrong), loaded)

    assert not done.estimate.ready
    assert any("explain" in text or "not ready" in text for text in done.warnings)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("static", "filter")])
def test_every_method_sees_the_mass(model, loaded, method):
    done = identify_payload(model, loaded, method=method)

    assert abs(done.estimate.mass / MASS - 1.0) < 0.1


def test_static_poses_need_poses(model, loaded):
    with pytest.raises(PoorExcitationError, match="poses"):
        identify_payload(model, loaded, method="static")


def test_a_template_of_the_same_motion_helps_itself(arm, model, loaded):
    preset, twin = arm
    empty = twin.run(preset.motion(periods=1), seed=21, rest=(0.9, 0.3)).recording

    done = identify_payload(model, loaded, template=empty)

    assert done.method == "filter (template)"
    assert abs(done.estimate.mass / MASS - 1.0) < 0.02
    assert not any("template" in text for text in done.warnings)


def test_a_template_of_another_motion_is_told(arm, model, loaded):
    _, twin = arm
    other = random_fourier(twin.robot, seed=3)
    empty = twin.run(other, seed=22).recording

    done = identify_payload(model, loaded, template=empty)

    assert any("template" in text for text in done.warnings)


def test_marginalising_joint_by_joint_is_marginalising_at_once(model, loaded):
    live = PayloadFilter(model)
    for time, q, v, tau, _ in stream(model, loaded).samples():
        if time > 6.0:
            break
        live.update(time, q, v, tau)
    live.estimate()
    by_joint = live.posterior()
    live.filter_state.is_correlated = True
    at_once = live.posterior()

    scale = np.sqrt(np.outer(np.diag(at_once.information), np.diag(at_once.information)))
    # Both lose digits to the condition of the arm's base parameters.
    assert np.abs((by_joint.information - at_once.information) / scale).max() < 1e-6
    np.testing.assert_allclose(
        np.linalg.solve(by_joint.information, by_joint.target),
        np.linalg.solve(at_once.information, at_once.target),
        rtol=1e-3,
        atol=1e-5,
    )


@pytest.mark.parametrize("method", ["printed", "difference", "khalil"])
def test_a_method_that_does_not_know_its_errors_prints_no_interval(model, loaded, method):
    done = identify_payload(model, loaded, method=method)
    told = done.to_dict()

    assert not done.estimate.has_intervals and told["ready"] is None and told["ready_means"] == ""
    assert told["mass"]["low"] is None and told["com"]["high"] is None
    assert {moment["low"] for moment in told["history"]} == {None}
    json.dumps(told, allow_nan=False)


def test_what_ready_means_is_said_in_numbers(found):
    told = found.to_dict()
    assert told["ready"] is True
    assert "5 % of itself" in told["ready_means"] and "50 g" in told["ready_means"]
