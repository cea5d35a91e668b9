"""Signs found from magnitudes, against the tree search of the literature and against known signs.

"Right" is a run with every segment's sign right; "unflagged" counts wrong signs not marked
ambiguous, over all runs of a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from benchmarks.sign_instances import (
    Instance,
    boxes,
    gantry,
    instance,
    kr5,
    multisine,
    segment_truth,
    seven_joint_arm,
    weightless,
)
from taufit.core.arrays import Array, Float
from taufit.estimators import ConsistentSdp, EstimationProblem
from taufit.model.torque_model import TorqueModel
from taufit.recording import Recording, read_recording
from taufit.regression import SampleRows
from taufit.regression.weights import Weights
from taufit.robot import Robot, read_robot
from taufit.signals import condition
from taufit.signs.data import prepare_search
from taufit.signs.information import information_share
from taufit.signs.quadratic_form import joint_rows
from taufit.signs.rounds import search_rounds
from taufit.signs.search import search_signs
from taufit.signs.segments import noise_scale
from taufit.signs.unknown_signs import RecoveredSigns, find_signs, fit_unsigned, without_signs
from taufit.terms.friction import Linear

SHARED = Path(__file__).resolve().parents[3] / "shared"
SEEDS, TREE_SEEDS, HARD_SEEDS = 50, 5, 20
# Ratios of errors scatter by some percent over 50 seeds.
PAIRED_SEEDS = 300
NOISES = (0.05, 0.1, 0.2, 0.3)
# Seeds below this were looked at while thresholds were chosen.
FIRST = 1000
_LETTERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


# Recordings looked at while the rules for flags were chosen, and recordings that were not.
_SEEN = (
    "19_12_23_free",
    "20_01_31-unload",
    "20_02_05-20sec_8harm",
    "20_02_05-20sec_12harm",
    "20_02_06-20sec_5harm",
    "20_02_10-20sec_7harm",
    "20_02_10-30sec_12harm",
    "20_02_12-40sec_12harm",
    "20_02_19_14harm50sec",
)
_HELD_OUT = (
    "19_10_01-13_51_41",
    "19_10_01-14_04_13",
    "19_10_01-14_04_41",
    "20_01_13-load_2600",
    "20_01_31-load",
    "20_02_19_14harm50secLoad",
)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a set of runs came to."""

    runs: int
    right: float
    unflagged: int
    flagged: float
    certified: float
    confident: float
    chi2: float
    segments: tuple[int, int]

    @property
    def note(self) -> str:
        low, high = self.segments
        return (
            f"{self.runs} seeds, {low}-{high} segments, {self.unflagged} wrong unflagged, "
            f"{100 * self.flagged:.2f} % flagged, certified {100 * self.certified:.0f} %, chi2/dof "
            f"{self.chi2:.2f}"
        )


def tally(pairs: Iterable[tuple[Instance, RecoveredSigns]]) -> Tally:
    right, unflagged, flagged, total, certified, confident, chi2, sizes = 0, 0, 0, 0, 0, 0, [], []
    for case, found in pairs:
        wrong = segment_truth(case, found.segments) != found.signs
        right += not np.any(wrong)
        unflagged += int(np.sum(wrong & ~found.ambiguous))
        flagged += int(found.ambiguous.sum())
        total += len(found.segments)
        certified += found.certified
        confident += found.confident
        chi2.append(found.chi2_per_dof)
        sizes.append(len(found.segments))
    n = len(sizes)
    return Tally(
        n,
        right / n,
        unflagged,
        flagged / max(total, 1),
        certified / n,
        confident / n,
        float(np.median(chi2)),
        (min(sizes), max(sizes)),
    )


def rows() -> Iterator[Row]:
    yield from _tree_rows()
    yield from _main_rows()
    yield from _seven_rows()
    yield from _hard_rows()
    yield from _honest_rows()
    yield from _constrained_rows()
    yield from _real_rows()


def _name(noise: float, friction: bool) -> str:
    return f"{100 * noise:.0f} % noise, {'friction' if friction else 'no friction'}"


def _tree_rows() -> Iterator[Row]:
    for friction in (False, True):
        for noise in (0.0, 0.02, 0.05, 0.1, 0.2):
            done = []
            for seed in range(FIRST, FIRST + TREE_SEEDS):
                case = instance(seed, noise=noise, friction=friction)
                result = fit_unsigned(case.model, case.samples, "tree", bounds=boxes(case))
                done.append((case, result.recovery))
            one = tally(done)
            yield Row(
                f"T-PBPR all right, {_name(noise, friction)}",
                100 * one.right,
                "%",
                ">= 99" if noise == 0.0 and not friction else "",
                f"{one.runs} seeds, {one.segments[0]}-{one.segments[1]} segments; convex inner "
                "solves, boxes around the truth",
            )


def _main_rows() -> Iterator[Row]:
    for friction in (False, True):
        for noise in (0.0, *NOISES):
            done, mine, theirs, least = [], [], [], []
            for seed in range(FIRST, FIRST + (PAIRED_SEEDS if noise else SEEDS)):
                case = instance(seed, noise=noise, friction=friction)
                result = fit_unsigned(case.model, case.samples)
                done.append((case, result.recovery))
                if noise:
                    mine.append(errors_of(case, result.values))
                    theirs.append(errors_of(case, _known(case)))
                    least.append(least_errors(case))
            one = tally(done)
            label = _name(noise, friction)
            yield Row(f"ours all right, {label}", 100 * one.right, "%", ">= 98", one.note)
            yield Row(f"ours wrong and unflagged, {label}", one.unflagged, "", "<= 0")
            yield Row(f"ours flagged, {label}", 100 * one.flagged, "%", "<= 1")
            yield Row(f"ours certified, {label}", 100 * one.certified, "%", ">= 100")
            if noise:
                yield from _ratio_rows(label, np.array(mine), np.array(theirs), np.array(least))


def _ratio_rows(
    label: str,
    mine: Float[Array, "s 2"],
    theirs: Float[Array, "s 2"],
    least: Float[Array, "s 2 2"],
) -> Iterator[Row]:
    """Errors without signs over errors with them, same recordings.

    Every recording counts alike: errors are in units of the least one possible with signs, so that
    a motion that hardly shows some coefficient does not decide for all others.
    """
    unit = np.sqrt(least[:, 1])
    ratio, interval = paired_ratio(mine / unit, theirs / unit)
    plain, _ = paired_ratio(mine, theirs)
    bound = np.sqrt(np.mean(least[:, 0] / least[:, 1], 0))
    for k, what in enumerate(("coefficient error", "validation torque error")):
        middle = float(np.median(mine[:, k]))
        size = f"{middle:.4f}" if k == 0 else f"{100 * middle:.2f} % of the torque"
        yield Row(
            f"{what} / with signs known, {label}",
            float(ratio[k]),
            "x",
            "<= 1.05",
            f"90 % interval {interval[0, k]:.3f}-{interval[1, k]:.3f}, {len(mine)} seeds; no "
            f"unbiased fit to magnitudes gets below {bound[k]:.3f} on average (Cramer-Rao); plain "
            f"rms over seeds {plain[k]:.3f} x; median error {size}",
        )


def paired_ratio(
    mine: Float[Array, "s k"], theirs: Float[Array, "s k"], draws: int = 2000
) -> tuple[Float[Array, " k"], Float[Array, "2 k"]]:
    """Ratio of root mean squares over paired seeds, and its 90 % interval by drawing seeds anew."""
    ours, reference = mine**2, theirs**2
    chosen = np.random.default_rng(0).integers(0, len(ours), (draws, len(ours)))
    spread = np.sqrt(ours[chosen].mean(1) / reference[chosen].mean(1))
    return np.sqrt(ours.mean(0) / reference.mean(0)), np.percentile(spread, [5.0, 95.0], axis=0)


def _known(case: Instance) -> Float[Array, " p"]:
    """The same consistent fit had the signs been recorded, at the true noise weights."""
    rows = SampleRows(case.model, case.signed)
    information = rows.information(Weights(1.0 / case.noise))
    return ConsistentSdp().solve(information, EstimationProblem.from_model(case.model)).values


def least_errors(case: Instance) -> Float[Array, "2 2"]:
    """Least mean square errors of unbiased fits (Cramer-Rao): without and with signs.

    Columns are the printed coefficients and the torque of the validation motion, measured as
    `errors_of` does. A magnitude carries the share `information_share` of a signed sample's
    information on its torque.
    """
    s, model = case.samples, case.model
    weight = np.broadcast_to(1.0 / case.noise, case.torque.shape)
    rows = joint_rows(model.regressor(s.position, s.velocity, s.acceleration), weight)
    share = information_share(case.torque / case.noise)
    fresh, printed = _validation(model.friction is not None), printed_coefficients()
    links = np.zeros((len(printed), len(model.names)))
    links[:, : printed.shape[1]] = printed
    maps = (links / np.sqrt(len(links)), fresh / np.linalg.norm(fresh @ case.truth))
    squares = [one[:, rows.parameters].T @ one[:, rows.parameters] for one in maps]
    bounds = [np.linalg.inv(rows.gram(each)) for each in (weight * np.sqrt(share), weight)]
    return np.array([[np.sum(bound * square) for square in squares] for bound in bounds])


def errors_of(case: Instance, values: Float[Array, " p"]) -> tuple[float, float]:
    """Root mean square error of the printed coefficients, and of another motion's torque."""
    error = values - case.truth
    fresh = _validation(case.model.friction is not None)
    torque = np.linalg.norm(fresh @ error) / np.linalg.norm(fresh @ case.truth)
    links = printed_coefficients() @ error[: 10 * case.model.robot.joints]
    return float(np.sqrt(np.mean(links**2))), float(torque)


@lru_cache(maxsize=2)
def _validation(friction: bool) -> Float[Array, "r p"]:
    """Rows of a motion no fit has seen."""
    model = instance(0, friction=friction).model
    q, v, a = multisine(model.robot.joints, 999, 13.33, 3, 50.0)
    return model.regressor(q, v, a).reshape(-1, len(model.names))


@lru_cache(maxsize=1)
def printed_coefficients() -> Float[Array, "27 60"]:
    """The printed combinations; where the tables are absent, every inertia alone."""
    path = SHARED / "reference" / "kr5_unsigned_torques.json"
    if not path.is_file():
        return np.eye(60)
    printed = json.loads(path.read_text())["base_parameters"]["rows"]
    out = np.zeros((len(printed), 60))
    for k, row in enumerate(printed):
        for name, factor in row["coefficients"].items():
            out[k, 10 * (int(name[-1]) - 1) + _LETTERS.index(name[:-1])] = factor
    return out


def _found(seeds: int, **settings: Any) -> Tally:
    def one(seed: int) -> tuple[Instance, RecoveredSigns]:
        made = {k: v(seed) if callable(v) else v for k, v in settings.items()}
        case = instance(seed, **made)
        return case, find_signs(case.model, case.samples)

    return tally(one(seed) for seed in range(FIRST, FIRST + seeds))


def _seven_rows() -> Iterator[Row]:
    for noise, seconds, harmonics in ((0.05, 45.0, 10), (0.2, 60.0, 14)):
        one = _found(
            20,
            robot=seven_joint_arm,
            noise=noise,
            friction=True,
            seconds=seconds,
            harmonics=harmonics,
        )
        label = f"7 joints, {seconds:.0f} s, {100 * noise:.0f} % noise, friction"
        yield Row(f"all right, {label}", 100 * one.right, "%", ">= 100", one.note)
        yield Row(f"fewest segments, {label}", one.segments[0], "", ">= 450")
        yield Row(f"certified, {label}", 100 * one.certified, "%", ">= 100")


def _hard_rows() -> Iterator[Row]:
    for label, settings in (
        ("8 harmonics", {"harmonics": 8}),
        ("15 harmonics", {"harmonics": 15}),
        ("3 s records", {"seconds": 3.0}),
        ("differentiated encoders", {"encoder_noise": 5e-5}),
    ):
        for friction in (False, True):
            one = _found(SEEDS, noise=0.05, friction=friction, **settings)
            name = f"{label}, 5 % noise, {'friction' if friction else 'no friction'}"
            yield Row(f"all right, {name}", 100 * one.right, "%", ">= 95", one.note)
            yield Row(f"wrong and unflagged, {name}", one.unflagged, "", "<= 0")


def _honest_rows() -> Iterator[Row]:
    refused: tuple[tuple[str, dict[str, Any]], ...] = (
        ("friction not in the model, 5 %", {"noise": 0.05, "friction": True, "modelled": False}),
        ("friction not in the model, 20 %", {"noise": 0.2, "friction": True, "modelled": False}),
        ("50 % noise", {"noise": 0.5}),
        ("50 % noise, friction", {"noise": 0.5, "friction": True}),
    )
    for label, settings in refused:
        one = _found(HARD_SEEDS, **settings)
        yield Row(f"wrong and unflagged, {label}", one.unflagged, "", "<= 0", one.note)
        yield Row(f"called confident, {label}", 100 * one.confident, "%", "<= 0")
    decided: tuple[tuple[str, dict[str, Any]], ...] = (
        ("decoupled axes (gantry)", {"robot": gantry, "noise": 0.05, "friction": True}),
        ("no gravity", {"robot": lambda _: weightless(kr5()), "noise": 0.1, "friction": True}),
        ("Stribeck truth, linear model", {"noise": 0.05, "friction": True, "stribeck": 0.5}),
    )
    for label, settings in decided:
        one = _found(HARD_SEEDS, **settings)
        yield Row(f"all right, {label}", 100 * one.right, "%", ">= 100", one.note)


def _constrained_rows() -> Iterator[Row]:
    plain_right = right = certified = 0
    for seed in range(FIRST, FIRST + HARD_SEEDS):
        case = instance(seed, noise=0.2, friction=True, amplitude=0.25)
        first = search_rounds(prepare_search(case.model, case.samples), 1, 1_000_000)
        signs = search_signs(first.form.quadratic).signs
        found = find_signs(case.model, case.samples, constrained=True, rounds=1)
        truth = segment_truth(case, found.segments)
        plain_right += abs(int(signs @ truth)) == len(truth)
        right += bool(np.all(found.signs == truth))
        certified += found.certified
    note = f"{HARD_SEEDS} seeds, motions of 0.25 rad, 20 % noise, friction, one round"
    yield Row("least squares alone, small motions, all right", 100 * plain_right / HARD_SEEDS, "%")
    yield Row(
        "physically constrained search, same, all right",
        100 * right / HARD_SEEDS,
        "%",
        ">= 100",
        note,
    )
    yield Row("  proven optimal", 100 * certified / HARD_SEEDS, "%", ">= 100")


def _real_rows() -> Iterator[Row]:
    for one in real_table():
        shares = ", ".join(
            f"{100 * s / max(n, 1):.0f}" for s, n in zip(one.sure, one.big, strict=True)
        )
        yield Row(
            f"{one.label}: right among samples called sure",
            100.0 * (1.0 - sum(one.wrong_sure) / max(sum(one.sure), 1)),
            "%",
            ">= 100",
            f"above 3 sigma; called sure per joint {shares} %; of all {sum(one.big)}, sure or not, "
            f"{100 * (1 - sum(one.wrong) / sum(one.big)):.2f} % right; chi2/dof {one.chi2:.1f}",
        )


@dataclass(frozen=True, slots=True)
class Hidden:
    """A real recording with its signs hidden; counts per joint of samples above 3 sigma."""

    label: str
    big: list[int]
    wrong: list[int]
    sure: list[int]
    wrong_sure: list[int]
    chi2: float


def real_recordings() -> Iterator[tuple[str, Robot, Recording]]:
    """Recordings of real arms, where they are beside this checkout."""
    data = SHARED / "data"
    maps = Path(__file__).resolve().parents[2] / "examples" / "columns"
    runs = [(f"LWR4 run {k}", f"kuka_lwr4/lwr4_run{k}.csv.gz") for k in (1, 2)]
    runs += [
        (f"UR10e {name}{' (held out)' * held}", f"ur10e/identification_data/ur-{name}.csv.gz")
        for names, held in ((_SEEN, False), (_HELD_OUT, True))
        for name in names
    ]
    for label, file in runs:
        if not (data / file).is_file():
            continue
        lwr = file.startswith("kuka")
        robot = read_robot(data / ("kuka_lwr4/kuka_lwr4.urdf" if lwr else "ur10e/ur10e.urdf"))
        yield (
            label,
            robot,
            read_recording(
                data / file, column_map=maps / ("lwr4_csv.yaml" if lwr else "ur10e_csv.yaml")
            ),
        )


def real_table() -> Iterator[Hidden]:
    """Real recordings with their signs hidden, Coulomb and viscous friction."""
    for label, robot, recording in real_recordings():
        lwr = label.startswith("LWR")
        signed = condition(recording, cutoff_hz=10.0)
        hidden = condition(without_signs(recording), cutoff_hz=10.0)
        truth = signed.raw_torque if signed.raw_torque is not None else signed.torque
        model = TorqueModel(robot, friction=Linear(), rotor_inertia=not lwr)
        found = find_signs(model, hidden)
        keep = hidden.keep & signed.keep
        big = keep & (np.abs(truth) > 3.0 * noise_scale(np.abs(truth), signed.run, signed.keep))
        wrong = big & (found.sample_sign * truth < 0.0)
        sure = big & found.sample_sure
        yield Hidden(
            label,
            big.sum(0).tolist(),
            wrong.sum(0).tolist(),
            sure.sum(0).tolist(),
            (wrong & sure).sum(0).tolist(),
            found.chi2_per_dof,
        )
