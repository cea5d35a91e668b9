"""Calls of control engineers: parts of the torque, one sample, a stepper, laws of their own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace

import numpy as np
import pytest
from benchmarks.clean_runs import clean_runs
from tests.export.compiled import Compiled

import taufit
from taufit.core.errors import TaufitError
from taufit.report.palette import LIGHT
from taufit.terms import Parameter, TermInput
from taufit.terms.friction import Friction
from taufit.terms.law_check import require_valid_term


@dataclass(frozen=True, slots=True)
class CubeRootFriction(Friction):
    """Friction that grows with the cube root of speed, of a class that is listed nowhere."""

    power: float = 0.3

    @property
    def parameters(self):
        return (Parameter("root"), Parameter("viscous"))

    def columns_at(self, inputs: TermInput, shape):
        v = inputs.velocity
        return np.stack([np.sign(v) * np.abs(v) ** self.power, v], -1)


@pytest.fixture(scope="module")
def runs():
    return clean_runs("ur3e", 3, 3)


@pytest.fixture(scope="module")
def model(runs):
    robot, (first, _, _) = runs
    return taufit.identify(robot, [first], friction="presliding").model


@pytest.fixture(scope="module")
def motion():
    rng = np.random.default_rng(3)
    q, v, a = rng.normal(size=(3, 60, 6))
    return q, v * np.sign(np.sin(np.arange(60)[:, None] / 7.0)), a


def test_one_sample_is_a_row_of_many(model, motion):
    q, v, a = motion
    for call in (model.torque, lambda q, v, a: model.coriolis(q, v),
                 lambda q, v, a: model.gravity(q), lambda q, v, a: model.mass_matrix(q),
                 lambda q, v, a: model.friction(q, v, a)):  # fmt: skip
        many = call(q, v, a)
        np.testing.assert_array_equal(call(q[5], v[5], a[5]), many[5])


def test_the_parts_add_up_to_the_torque(model, motion):
    q, v, a = motion
    inertial = np.einsum("nij,nj->ni", model.mass_matrix(q), a)
    parts = inertial + model.coriolis(q, v) + model.gravity(q) + model.friction(q, v, a)
    offsets = model.layout.split(model.values).offsets
    np.testing.assert_allclose(parts + offsets, model.torque(q, v, a), atol=1e-10)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_stepper_equals_exported_c(model, motion, tmp_path):
    q, v, a = motion
    stepper = model.stepper(500.0)
    stepped = np.array([stepper(*sample) for sample in zip(q, v, a, strict=True)])
    np.testing.assert_array_equal(stepped, model.torque(q, v, a, step=1 / 500.0))
    compiled = Compiled(tmp_path, model).run(q, v, a, 1 / 500.0)
    np.testing.assert_allclose(stepped, compiled, rtol=1e-12, atol=1e-12 * np.abs(stepped).max())
    # Without its memory it is something else, and a reset forgets.
    assert np.abs(stepped - model.torque(q, v, a)).max() > 1e-3
    stepper.reset()
    np.testing.assert_array_equal(stepper(q[0], v[0], a[0]), stepped[0])
    with pytest.raises(TaufitError, match="positive"):
        model.stepper(0.0)


def test_a_friction_law_of_ones_own_needs_no_registration(runs, tmp_path):
    robot, (first, second, _) = runs
    result = taufit.identify(robot, [first], holdout=[second], friction=CubeRootFriction(0.4))
    assert "joint_1.root" in result.model.names
    taufit.write_model(result.model, tmp_path / "own.json")
    again = taufit.read_model(tmp_path / "own.json")
    assert again.friction_model == CubeRootFriction(0.4)
    text = (tmp_path / "own.json").read_text().replace("CubeRootFriction", "Elsewhere")
    (tmp_path / "own.json").write_text(text)
    with pytest.raises(TaufitError, match="Import the module that defines it"):
        taufit.read_model(tmp_path / "own.json")


def law(parameters=("a", "b"), is_dataclass=True, **members):
    """A friction law from its columns."""
    entries = tuple(Parameter(name) for name in parameters)
    kind = type("DrawnFriction", (Friction,), {"parameters": entries, **members})
    kind.__module__ = __name__
    return (dataclass(frozen=True)(kind) if is_dataclass else kind)()


def columns(formula):
    return lambda self, inputs, shape: formula(inputs.velocity)


WRONG_LAWS = {
    "is a class": (CubeRootFriction, r"Pass CubeRootFriction\(\)"),
    "is a function": (np.tanh, "subclass of taufit.terms.friction.Friction"),
    "is no dataclass": (law(is_dataclass=False), "@dataclass"),
    "has no columns": (law(), "has no columns_at"),
    "has no parameters": (law(()), "must have parameters"),
    "has two of a name": (law(("a", "a")), "two parameters 'a'"),
    "has one column more": (
        law(columns_at=columns(lambda v: np.stack([v, v, v], -1))),
        r"return 2 columns.*got shape \(33, 3\)",
    ),
    "is stacked the other way": (
        law(columns_at=columns(lambda v: np.stack([v, v]))),
        r"np\.stack\(\[\.\.\.\], -1\)",
    ),
    "divides by zero": (
        law(columns_at=columns(lambda v: np.stack([v, v / np.abs(v)], -1))),
        "'b' is not finite",
    ),
    "branches": (
        law(columns_at=columns(lambda v: np.stack([v, v if v[0] > 0.1 else 0 * v], -1))),
        "np.where in place of `if`",
    ),
    "is scaled by the fastest": (
        law(columns_at=columns(lambda v: np.stack([v, v / np.abs(v).max()], -1))),
        "depend on other samples",
    ),
    "raises": (law(columns_at=columns(lambda v: v.speed)), "AttributeError.*speed"),
}


@pytest.mark.parametrize("case", WRONG_LAWS)
def test_a_wrong_law_is_refused(case):
    wrong, message = WRONG_LAWS[case]
    with pytest.raises(TaufitError, match=message):
        require_valid_term(wrong)


@pytest.mark.parametrize("keyword", ["friction", "terms"])
def test_laws_are_checked_before_the_fit(runs, keyword):
    wrong = law(columns_at=columns(lambda v: np.stack([v, v, v], -1)))
    with pytest.raises(TaufitError, match="return 2 columns"):
        taufit.identify(*runs, **{keyword: wrong if keyword == "friction" else [wrong]})


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(
    "formula",
    [
        lambda v: np.column_stack([np.clip(v, -0.3, 0.4), v]),
        lambda v: np.stack([np.where(np.abs(v) > 0.1, np.sign(v), 0.0), v**3], axis=1),
    ],
)
def test_laws_in_the_documented_subset_are_exported(runs, motion, tmp_path, formula):
    model = taufit.TorqueModel(runs[0], friction=law(columns_at=columns(formula)))
    fitted = taufit.FittedModel.from_values(model, np.abs(model.nominal) + 0.3)
    torque = fitted.torque(*motion)
    compiled = Compiled(tmp_path, fitted).run(*motion, 0.002)
    np.testing.assert_allclose(torque, compiled, rtol=1e-12, atol=1e-12 * np.abs(torque).max())


@pytest.mark.parametrize(
    "formula",
    [
        lambda v: np.stack([np.cbrt(v), v], -1),
        lambda v: np.stack([v, np.array([abs(x) for x in v])], -1),
        lambda v: np.array([v, np.sign(v)]).T,
        lambda v: np.stack([v, v * np.ones(v.shape)], -1),
    ],
)
def test_other_laws_are_fitted_and_refused_by_the_export(runs, motion, tmp_path, formula):
    own = law(columns_at=columns(formula))
    result = taufit.identify(runs[0], [runs[1][0]], friction=own)
    q, v, a = (part[:3] for part in motion)
    by_sample = np.array([result.model.torque(*sample) for sample in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(by_sample, result.model.torque(q, v, a), rtol=1e-9)
    with pytest.raises(TaufitError, match=r"C export cannot write.*np\.stack"):
        taufit.export_model(result.model, tmp_path / "arm.c")


def test_days_are_cross_validated_and_models_compared(runs, model):
    robot, recordings = runs
    table = taufit.cross_validate(robot, recordings, friction="linear")
    assert table.nrmse.shape == (3, 1, 6) and np.all(table.mean_nrmse < 0.2)
    other = model.with_values(1.5 * model.values)
    scores = taufit.compare({"fitted": model, "wrong": other}, recordings[1:])
    assert np.all(scores.mean_nrmse[:, 0] < scores.mean_nrmse[:, 1])
    assert repr(scores).splitlines()[0].split() == ["mean", "nrmse", "fitted", "wrong"]
    named = taufit.ScoreTable(("consistent_sdp",), ("a", "<b>"), np.full((2, 1, 3), 0.5))
    assert len({len(line) for line in repr(named).splitlines()}) == 1
    assert "<td>&lt;b&gt;</td><td>0.500</td>" in named._repr_html_()
    with pytest.raises(TaufitError, match="two recordings or more"):
        taufit.cross_validate(robot, recordings[:1])


def test_a_result_is_printed_in_three_lines_and_plotted(runs):
    robot, (first, second, _) = runs
    result = taufit.identify(robot, [first], holdout=[second], friction="linear")
    lines = repr(result).splitlines()
    assert len(lines) == 3 and "on 1 unseen" in lines[0] and max(map(len, lines)) < 100
    axes = result.plot(joints=[0, 1])
    assert len(axes) == 2
    # Torque, and the residual in a strip below, in the colours of the pages.
    assert [line.get_color() for line in axes[0].lines] == [LIGHT["measured"], LIGHT["model"]]
    strip = axes[0].figure.axes[2]
    measured, predicted = (line.get_ydata() for line in axes[0].lines)
    np.testing.assert_allclose(strip.lines[0].get_ydata(), measured - predicted)
    assert strip.lines[0].get_color() == LIGHT["residual"]


def test_a_model_says_that_it_carries_a_payload(model):
    assert "payload" not in repr(model)
    assert "payload 2.5 kg" in repr(model.with_payload(2.5, centre=(0.0, 0.0, 0.08)))


def test_results_print_in_three_lines(runs, model):
    robot, (first, second, _) = runs
    samples = taufit.condition(first)
    results = [
        taufit.fit(taufit.TorqueModel(robot, friction=taufit.Linear()), samples),
        *(taufit.check(model, samples)),
        *(taufit.base_parameters(robot), taufit.Twin.typical(robot), taufit.Monitor(model)),
        *(model, model.training, model.stepper(500.0), taufit.identify_payload(model, second)),
    ]
    for result in results:
        text = repr(result)
        assert text.startswith(type(result).__name__) and " object at" not in text
        assert text.count("\n") <= 2 and max(map(len, text.splitlines())) <= 120, text


def test_files_recordings_and_samples_have_one_score(runs, model, tmp_path):
    first, second = runs[1][:2]
    taufit.write_model(model, tmp_path / "model.json")
    taufit.write_recording(second, tmp_path / "second.parquet")
    (sampled,) = taufit.check(model, taufit.condition(second))
    of_files = taufit.check(tmp_path / "model.json", tmp_path / "second.parquet")
    of_recordings = taufit.check(model, [second, first], names=["second", "first"])
    np.testing.assert_allclose(of_files[0].nrmse, sampled.nrmse, rtol=1e-6)
    np.testing.assert_allclose(of_recordings[0].nrmse, sampled.nrmse, rtol=1e-6)
    assert [score.file for score in of_recordings] == ["second", "first"]
    turned = replace(second, signal=-second.signal)
    assert np.all(taufit.check(model, turned)[0].nrmse > 1.0)


def test_slips_in_python_name_the_remedy(runs):
    robot, (first, _, _) = runs
    with pytest.raises(TypeError, match=r"identify\(\) has no keyword 'holdot'.*'holdout'"):
        taufit.identify(robot, [first], holdot="30%")
    with pytest.raises(TypeError, match="'friction'"):
        taufit.cross_validate(robot, [first], frction="linear")
    with pytest.raises(AttributeError, match="'identify'"):
        taufit.idenify  # noqa: B018
    with pytest.raises(TaufitError, match="robot comes first"):
        taufit.identify("run.parquet", robot)
