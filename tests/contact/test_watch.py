"""The watch: quiet where nothing touches, quick where something does, the same for streams."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import taufit.terms.friction.states as states
from taufit.contact import (
    ContactDetector,
    ContactSettings,
    bin_noise,
    change_test as module,
    external_torque,
    find_contacts,
    refine_noise,
)
from taufit.contact.change_test import (
    INNOVATION_LIMIT,
    INNOVATION_LIMIT_AT_REST,
    ChangeTest,
    TimeBin,
)
from taufit.contact.external_torque import ExternalTorque
from taufit.contact.force import direction_names, find_force, point_jacobian
from taufit.contact.recording_contacts import external_torque_blocks
from taufit.core.errors import TaufitError
from taufit.dynamics import forward_kinematics, jacobian
from taufit.model import friction_tape
from taufit.payload import stream
from taufit.recording import read_recording
from taufit.robot import read_robot
from taufit.sim import HandPush
from taufit.terms.friction.states import FAST
from taufit.workflow import identify


@pytest.fixture(scope="module")
def free(bench):
    return refine_noise(bench.model, [bench.run(s).recording for s in (31, 32, 33)])


def pushed(bench, recording, start, seconds, force):
    """The recording's stream with -J' f added to the motors' torque."""
    source = stream(bench.model, recording)
    during = (source.time >= start) & (source.time < start + seconds)
    lever = jacobian(bench.model.robot, source.position)[:, 3:]
    outside = np.einsum("nij,i->nj", lever, np.asarray(force, float))
    return replace(source, torque=source.torque - during[:, None] * outside), outside


def fed(watch, source):
    return [watch.update(*sample) for sample in source.samples()]


def test_nothing_is_told_where_nothing_touches(bench, free):
    for seed in (41, 42):
        run = find_contacts(bench.model, bench.run(seed).recording, noise=free)
        assert run.contacts == ()


def test_a_push_is_found_quickly_with_its_force_and_its_end(bench, free):
    force = np.array([25.0, -20.0, 10.0])
    source, _ = pushed(bench, bench.run(43).recording, 5.0, 0.5, force)
    watch = ContactDetector(bench.model, free)
    seen = fed(watch, source)
    assert len(watch.contacts) == 1
    (contact,) = watch.contacts
    assert 5.0 < contact.detection_time < 5.1 and contact.start_time == pytest.approx(5.0, abs=0.04)
    assert contact.end_time == pytest.approx(5.5, abs=0.15)
    late = next(s for s in seen if s is not None and s.time > 5.25)
    assert late.contact is not None and late.contact.kind == "contact"
    assert np.linalg.norm(late.contact.force.value - force) < 8.0
    assert late.contact.joint >= 4
    assert [e.kind for e in watch.events if "contact" in e.kind][-1] == "contact ended"


def test_an_ended_contact_keeps_its_clearest_force(bench, free):
    force = np.array([25.0, -20.0, 10.0])
    source, _ = pushed(bench, bench.run(43).recording, 5.0, 0.15, force)
    watch = ContactDetector(bench.model, free)
    fed(watch, source)
    (contact,) = watch.contacts
    # The mean over the last 0.2 s would hold the time after the push too.
    assert contact.end_time is not None
    assert contact.force.size == pytest.approx(np.linalg.norm(force), rel=0.25)


def test_events_of_a_poor_model_have_a_length_and_a_force(bench, free):
    # Gravity and friction that are half wrong: alarms are false, yet each is told in full.
    source = stream(bench.model, bench.run(43).recording)
    watch = ContactDetector(bench.model, free, alarms_per_hour=3600.0)
    fed(watch, replace(source, torque=1.3 * source.torque))
    assert len(watch.contacts) > 3
    for contact in watch.contacts:
        assert contact.end_time is None or contact.end_time > contact.start_time
        low, high = contact.force.size_interval
        assert 0.0 <= low <= contact.force.size < high and high > 0.5


def test_a_force_is_not_put_where_it_loads_no_joint():
    # The far end of the first link lies on its axis: a force there explains nothing.
    robot, position = read_robot("iiwa7"), np.array([0.3, -1.2, 1.0, -0.5, 0.8, 0.1, 0.4])
    force = find_force(robot, position, np.zeros(7), np.full(7, 4.0))
    assert force.link > 1
    assert force.size_interval[1] > 1.0


def test_a_file_says_what_a_stream_says(bench, free):
    recording = bench.run(44).recording
    whole = find_contacts(bench.model, recording, noise=free)
    watch = ContactDetector(bench.model, free)
    fed(watch, stream(bench.model, recording))
    assert [(e.time, e.kind, e.text) for e in watch.events] == [
        (e.time, e.kind, e.text) for e in whole.events
    ]


def test_the_twin_feels_a_push_in_closed_loop(bench, free):
    effects = replace(
        bench.twin.effects, pushes=(HandPush(start=4.0, duration=0.3, force=(0.0, 40.0, 0.0)),)
    )
    twin = replace(bench.twin, effects=effects)
    recording = replace(bench, twin=twin).run(45, rest=0.5).recording
    run = find_contacts(bench.model, recording, noise=free)
    assert any(abs(c.start_time - 4.0) < 0.15 for c in run.contacts)


def test_a_gap_starts_the_watch_anew_and_is_no_contact(bench, free):
    source = stream(bench.model, bench.run(46).recording)
    watch = ContactDetector(bench.model, free)
    for sample in source.samples():
        if not 4.0 < sample[0] < 4.6:
            watch.update(*sample)
    assert [e.kind for e in watch.events if e.kind in ("gap", "contact")] == ["gap"]


@pytest.mark.parametrize("fault", ["nan", "repeated", "duplicate"])
def test_samples_that_are_none_are_left_out(bench, free, fault):
    source = stream(bench.model, bench.run(47).recording)
    clean, hurt = ContactDetector(bench.model, free), ContactDetector(bench.model, free)
    for k, (time, q, v, tau, warm) in enumerate(source.samples()):
        clean.update(time, q, v, tau, warm)
        if fault == "nan" and k % 50 == 7:
            hurt.update(time - 1e-6, q, v, tau * np.nan, warm)
        hurt.update(time, q, v, tau, warm)
        if fault == "duplicate" and k % 50 == 7:
            hurt.update(time, q, v, tau + 5.0, warm)
        if fault == "repeated" and k % 50 == 7 and np.abs(v).max() > 0.05:
            hurt.update(time + 1e-4, q, v, tau, warm)
    assert hurt.last_reading.evidence == pytest.approx(clean.last_reading.evidence, rel=1e-9)
    np.testing.assert_allclose(hurt.last_reading.torque, clean.last_reading.torque)


def test_time_that_runs_back_is_left_out_until_the_clock_goes_on(bench, free):
    # A file whose time jumps back is heard on; a stream does the same.
    watch = ContactDetector(bench.model, free)
    samples = list(stream(bench.model, bench.run(48).recording).samples())[:300]
    for k, sample in enumerate(samples):
        watch.update(sample[0] - (2.0 if k >= 250 else 0.0), *sample[1:])
    assert watch.conditioner.counts.late == 4 and watch.conditioner.counts.clock == 1
    assert watch.samples == 296


def test_a_rate_that_cannot_be_kept_is_refused():
    with pytest.raises(TaufitError, match="per hour"):
        ContactSettings(alarms_per_hour=0.0)


def test_fewer_alarms_need_more_evidence(bench, free):
    strict, loose = (ContactDetector(bench.model, free, alarms_per_hour=x) for x in (0.1, 10.0))
    assert strict.threshold > loose.threshold


def test_evidence_is_that_of_two_normal_distributions():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4))
    covariance, prior, change = (
        root @ root.T + np.eye(4),
        rng.uniform(1.0, 9.0, 4),
        rng.normal(size=4),
    )
    parts = np.cumsum(module._evidence(5.0 * change, covariance, prior, np.zeros(4)))
    for k in range(4):
        wide = covariance + np.diag(np.where(np.arange(4) <= k, prior, 0.0))
        each = [
            multivariate_normal(np.zeros(4), c).logpdf(5.0 * change) for c in (wide, covariance)
        ]
        assert parts[k] == pytest.approx(2.0 * (each[0] - each[1]), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_kernel_and_numpy_find_the_same_step(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    compiled = ChangeTest(np.full(4, 3.0), 0.01)
    kernel = module._kernel
    if kernel is None:
        pytest.skip("there is no compiled kernel")
    plain = ChangeTest(np.full(4, 3.0), 0.01)
    for k in range(120):
        rows = np.empty((6, 4))
        rows[0] = rng.normal(size=4) + (5.0 if k > 80 else 0.0)
        rows[1], rows[2] = rng.uniform(0.5, 2.0, 4), rng.uniform(0.0, 0.01, 4)
        at_rest = 40 < k < 100
        rows[3], rows[4], rows[5] = (
            rng.uniform(0.0, 0.5, 4),
            1.0,
            INNOVATION_LIMIT_AT_REST if at_rest else INNOVATION_LIMIT,
        )
        cell = TimeBin(rows, rng.normal(size=(4, 4)), rng.random(4) > 0.1)
        monkeypatch.setattr(module, "_kernel", kernel)
        evidence = compiled.advance(cell)
        monkeypatch.setattr(module, "_kernel", None)
        assert evidence == pytest.approx(plain.advance(cell), rel=1e-9, abs=1e-9)
        one, other = compiled.most_likely_step(), plain.most_likely_step()
        assert (one is None) == (other is None)
        if one is not None:
            assert (one.age, one.last) == (other.age, other.last)
            np.testing.assert_allclose(one.level, other.level, atol=1e-9)


def test_kernel_and_numpy_watch_alike(bench, free, monkeypatch):
    """The whole chain of a step, compiled and not: external torque, states, noise, evidence."""
    if module._kernel is None:
        pytest.skip("there is no compiled kernel")
    source, _ = pushed(bench, bench.run(49).recording, 3.0, 0.3, (30.0, 20.0, 0.0))
    seen = []
    for kernel in (module._kernel, None):
        for room in (module, bin_noise, external_torque, friction_tape, states):
            monkeypatch.setattr(room, "_kernel", kernel)
        watch = ContactDetector(bench.model, free)
        assert watch._external_torque.is_compiled is (kernel is not None)
        seen.append(
            [watch.update_clean(*sample) for sample in itertools.islice(source.samples(), 500)]
        )
    assert any(one is not None and one.contact is not None for one in seen[0])
    for one, other in zip(*seen, strict=True):
        assert (one is None) == (other is None)
        if one is None:
            continue
        np.testing.assert_array_equal(one.state, other.state)
        for name in ("torque", "torque_std", "change", "evidence"):
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-7, err_msg=name
            )


def test_accelerations_beyond_training_are_noise_where_they_are_and_in_arms_that_stop(
    bench, free, monkeypatch
):
    felt = external_torque_blocks(bench.model, stream(bench.model, bench.run(49).recording), free)[
        0
    ]
    jolts = np.zeros_like(felt.acceleration_excess)
    jolts[:, 4] = 0.5
    found = {}
    for kernel in (module._kernel, None):
        monkeypatch.setattr(bin_noise, "_kernel", kernel)
        cells = bin_noise.BinNoise(ExternalTorque.from_noise(bench.model, free), free, np.ones(6))
        for name, one in (("calm", 0.0 * jolts), ("fifth", jolts)):
            shaken = replace(felt, acceleration_excess=one)
            rows = [cells.time_bin(shaken, i).rows for i in range(0, len(felt), 20)]
            found[name, kernel is None] = np.array(rows)
    for name in ("calm", "fifth"):
        np.testing.assert_allclose(found[name, True], found[name, False], rtol=1e-9)
    state, white = felt.state[::20], found["fifth", True][:, 1] / found["calm", True][:, 1]
    fast, stops = (state == FAST).all(axis=1), (state != FAST).all(axis=1)
    assert fast.sum() > 10 and stops.sum() > 10
    # The base hardly feels that the wrist accelerates.
    assert white[fast, 0].max() < 1.01 and white[fast, 4].min() > 1.3
    assert white[stops].min() > 1.0


def test_a_start_is_no_contact_and_a_strong_push_during_it_is(bench, free):
    recording = bench.run(52).recording
    watch = ContactDetector(bench.model, free)
    fed(watch, stream(bench.model, recording))
    assert watch.contacts == []
    felt = external_torque_blocks(bench.model, stream(bench.model, recording), free)[0]
    stood = felt.standing.all(axis=1)
    start = float(felt.time[np.flatnonzero(stood[:-1] & ~stood[1:])[0]])
    source, _ = pushed(bench, recording, start + 0.15, 0.1, (60.0, 0.0, 60.0))
    watch = ContactDetector(bench.model, free)
    fed(watch, source)
    assert [start + 0.15 <= one.detection_time < start + 0.3 for one in watch.contacts] == [True]


def test_a_force_is_recovered_from_the_torque_it_makes():
    robot = read_robot("ur10e")
    rng = np.random.default_rng(2)
    for _ in range(20):
        q, force = rng.uniform(-1.5, 1.5, 6), rng.normal(size=3) * 30.0
        poses = forward_kinematics(robot, q[None])[0]
        lever = point_jacobian(robot, poses, 5, poses[-1, :3, 3])
        np.testing.assert_allclose(lever, jacobian(robot, q[None])[0, 3:], atol=1e-12)
        variance = np.full(6, 1e-4)
        found = find_force(robot, q, lever.T @ force, variance, force_std=1000.0)
        if found.unobservable:
            continue
        assert found.link == 6 and found.assumption == "a pure force at the tool"
        np.testing.assert_allclose(found.value, force, atol=0.1)


def test_a_candle_is_blind_sideways_and_says_so():
    robot = read_robot("ur10e")
    candle = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
    found = find_force(robot, candle, np.zeros(6), np.full(6, 0.5))
    names = direction_names(found.unobservable)
    assert len(names) >= 1 and "z" in names


SHARED = Path(__file__).parents[3] / "shared" / "data" / "ur10e"
MAP = Path(__file__).parents[2] / "examples" / "columns" / "ur10e_csv.yaml"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared UR10e recordings are not here")
def test_a_hand_that_pushes_a_real_arm_at_rest_is_felt():
    def run(name):
        return read_recording(SHARED / f"{name}.csv.gz", column_map=MAP)

    fitted = run("identification_data/ur-20_02_10-30sec_12harm")
    model = identify(read_robot("ur10e"), [fitted]).model
    quiet = [run("jointwise_motion/ur-20_01_22-joint_1"), run("validation_data/ur-20_01_17-p1")]
    noise = refine_noise(model, [fitted, *quiet])
    done = find_contacts(model, run("collision/ur-20_01_22-push_pose_1"), noise=noise)
    # Four pushes, read off the motors' torque to a tenth of a second.
    for start in (1.9, 4.7, 8.4, 11.9):
        assert any(-0.1 < one.detection_time - start < 0.4 for one in done.contacts), start
    still = find_contacts(model, run("validation_data/ur-20_01_17-p2"), noise=noise)
    assert still.contacts == ()
