"""Every table and figure of the four papers is there, every number is compared or explained, and
every independent number can disagree: a wrong arm, model, motion or preparation turns it.
"""

from __future__ import annotations

import copy
import html
import json
import pickle
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from taufit.calibration import FrictionPairs
from taufit.cli import main
from taufit.model.torque_model import TorqueModel
from taufit.papers import KINDS, PAPERS, count_by_kind, paper_page, read_paper

from taufit.papers import kr5, luo2024, luo2024_friction, raviola2021, xu2024  # isort: skip
from tests.output_json import parse_output

from taufit.papers.exhibit import compare_order, compare_value, row_matrix
from taufit.papers.printed_tables import printed_tables
from taufit.robot import read_robot
from taufit.terms import friction_model

# What the papers have, by their own numbering.
LABELS = {
    "xu2024": [*(f"Table {n}" for n in ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"])]
    + [f"Figure {n}" for n in range(1, 13)],
    "kr5": ["Table I", "Table II", "Figure 1", "Figure 2", "Figure 3"],
    "raviola2021": [f"Table {n}" for n in range(1, 9)] + [f"Figure {n}" for n in range(1, 10)],
    "luo2024": [f"Table {n}" for n in ["I", "II", "III", "IV", "V", "VI"]]
    + [f"Figure {n}" for n in range(1, 8)],
}
FILES = {
    "xu2024": "ur10_online_payload",
    "kr5": "kr5_unsigned_torques",
    "raviola2021": "ur3_ur5_temperature_mounting",
    "luo2024": "franka_lie_friction_excitation",
}


@pytest.mark.parametrize("name", PAPERS)
def test_every_table_and_figure_is_listed(name):
    labels = [label for label, _ in read_paper(name).steps]
    assert sorted(labels) == sorted(LABELS[name])


@pytest.mark.parametrize("name", PAPERS)
def test_the_shipped_tables_are_those_of_the_reference(name, reference_dir):
    theirs = json.loads((reference_dir / f"{FILES[name]}.json").read_text())

    def compare(here, there, path):
        if isinstance(here, dict):
            for key, value in here.items():
                if (path, key) != ("", "source"):
                    compare(value, there[key], f"{path}/{key}")
        elif isinstance(here, list):
            assert len(here) == len(there), path
            for k, (a, b) in enumerate(zip(here, there, strict=True)):
                compare(a, b, f"{path}/{k}")
        elif not isinstance(here, str):
            assert here == there, path

    compare(printed_tables(name), theirs, "")


# Figures 5 and 7 of luo2024 take a minute; their parts have tests of their own below.
_COMPUTE = """
import pickle, sys
from taufit.papers import read_paper
slow = ("Figure 5", "Figure 7") if sys.argv[1] == "luo2024" else ()
steps = read_paper(sys.argv[1], repetitions=1).steps
pickle.dump([make() for label, make in steps if label not in slow], sys.stdout.buffer)
"""


class _Reproduced(dict):
    """Papers with one seed: paper and exhibits, each computed when a test first asks for it.

    In a process of its own: long motions are slow where shapes are checked sample by sample.
    """

    def __missing__(self, name):
        done = subprocess.run(
            [sys.executable, "-c", _COMPUTE, name], capture_output=True, check=True
        )
        self[name] = read_paper(name), pickle.loads(done.stdout)
        return self[name]


@pytest.fixture(scope="module")
def papers():
    return _Reproduced()


def _reproduce(paper, labels):
    return [make() for label, make in paper.steps if label in labels]


@pytest.mark.parametrize("name", PAPERS)
def test_every_number_agrees_or_is_explained(name, papers):
    for exhibit in papers[name][1]:
        assert exhibit.entries or exhibit.figures or exhibit.missing
        for entry in exhibit.entries:
            assert entry.kind in (*KINDS, None) and (entry.kind is None) == (entry.within is None)
            if entry.kind == "independent" or entry.kind == "given":
                assert entry.agrees, (exhibit.label, entry)
            if entry.kind is None and entry.printed is not None:
                assert entry.reason, (exhibit.label, entry)


def _longer_link(robot):
    """Copy of a robot with one link 30 mm longer."""
    links = list(robot.links)
    frame = np.array(links[3].placement)
    frame[0, 3] += 0.03
    links[3] = replace(links[3], placement=frame)
    return replace(robot, links=tuple(links))


class _LongerPanda(luo2024.Luo2024):
    _arm = _longer_link(read_robot("panda"))
    robot = replace(
        _arm,
        limits=replace(_arm.limits, lower=_arm.limits.lower - 0.1, upper=_arm.limits.upper + 0.1),
    )


class _SixJoints(luo2024.Luo2024):
    robot = read_robot("ur10")


class _LongerKr5(kr5.Kr5):
    robot = _longer_link(read_robot("kr5"))
    model = TorqueModel(read_robot("panda"), friction=None, rotor_inertia=False, offset=False)


class _OtherTorque(kr5.Kr5):
    """Signs compared with the torque of another motion."""

    def trial(self, noise, number=0):
        """Run of one seed, with the torque of the next."""
        return replace(super().trial(noise, number), truth=super().trial(noise, number + 1).truth)


class _LongerModel(kr5.Kr5):
    """Base parameters of another arm, and one printed row twice."""

    model = TorqueModel(_longer_link(read_robot("kr5")), None, rotor_inertia=False, offset=False)

    def __init__(self, seed, repetitions):
        super().__init__(seed, repetitions)
        self.paper = copy.deepcopy(self.paper)
        rows = self.paper["base_parameters"]["rows"]
        rows[1]["coefficients"] = rows[0]["coefficients"]


class _LowPass(xu2024.Xu2024):
    """Offline motion with the low-pass of the torque."""

    preparations = ("low_pass", "fourier")


class _LongerUr10(xu2024.Xu2024):
    robot = _longer_link(read_robot("ur10"))

    def motion(self, periods):
        """Motion with one coefficient of Table IV changed."""
        motion = super().motion(periods)
        cosine, sine = np.array(motion.cosine), np.array(motion.sine)
        cosine[1, 2] += 0.05
        sine[1, 2] += 0.05
        return replace(motion, cosine=cosine, sine=sine)


class _OtherFriction(xu2024.Xu2024):
    """Model with more friction terms; pi_31 as printed, and one row twice."""

    @property
    def model(self):
        structure = TorqueModel(self.twin.robot, friction_model("stribeck"))
        return structure.with_values(structure.nominal)

    @property
    def rows(self):
        """Rows of the paper with its misprint, and the second one twice."""
        rows = [dict(row["coefficients"]) for row in self.paper["base_parameters"]["rows"]]
        rows[30] = {"Iyy6": 1.0}
        rows[2] = rows[1]
        return row_matrix(rows, self.model.names)


class _PandaRows(raviola2021.Raviola2021):
    def robot(self, arm):
        """Arm with other base parameters."""
        return read_robot("panda")


class _OtherLimits(raviola2021.Raviola2021):
    def robot(self, arm):
        """Arm with other torque limits."""
        robot = super().robot(arm)
        return replace(robot, limits=replace(robot.limits, torque=robot.limits.torque + 1.0))


class _WallModels(raviola2021.Raviola2021):
    """Models with gravity in another direction, and moved nowhere."""

    def __init__(self, seed, repetitions):
        super().__init__(seed, repetitions)
        for arm in self.arms:
            structure = arm.structure
            robot = structure.robot.with_mounting("wall")
            arm.__dict__["structure"] = replace(structure, robot=robot)


# Wrong experiments, and the tables whose independent numbers each of them must turn.
FALSE_EXPERIMENTS = {
    "luo2024": ((_SixJoints, ("Table I",)), (_LongerPanda, ("Table II",))),
    "kr5": (
        (_LongerKr5, ("Table I",)),
        (_OtherTorque, ("Figure 2",)),
        (_LongerModel, ("Table II",)),
    ),
    "xu2024": (
        (_LowPass, ("Table I",)),
        (_LongerUr10, ("Table III", "Table IV")),
        (_OtherFriction, ("Table VI",)),
    ),
    "raviola2021": (
        (_PandaRows, ("Figure 1",)),
        (_OtherLimits, ("Table 2",)),
        (_WallModels, ("Table 3", "Table 8")),
    ),
}
MODULES = {"luo2024": luo2024, "kr5": kr5, "xu2024": xu2024, "raviola2021": raviola2021}


def _independent(exhibits):
    """Whether each independent number agrees; a preparation that is judged has no name here."""
    return {
        (exhibit.label, re.sub("pi_a from [^:]*:", "pi_a:", entry.name)): entry.agrees
        for exhibit in exhibits
        for entry in exhibit.entries
        if entry.kind == "independent"
    }


@pytest.mark.parametrize("name", PAPERS)
def test_every_independent_number_is_falsified_once(name, papers, monkeypatch):
    monkeypatch.setattr(
        "taufit.papers.raviola2021_model.move_model", lambda model, _: SimpleNamespace(model=model)
    )
    falsified = {}
    for experiment, labels in FALSE_EXPERIMENTS[name]:
        wrong = experiment(0, 1)
        falsified |= _independent(_reproduce(MODULES[name].paper_of(wrong), labels))
    right = _independent(papers[name][1])
    assert set(falsified) >= set(right)
    unmoved = {key for key in right if falsified[key] is not False}
    assert not unmoved


def test_a_swapped_pair_of_models_turns_the_printed_order():
    class Swapped(luo2024.Luo2024):
        eq10, eq16, ref6 = luo2024.FRICTION_MODELS
        friction_models = (replace(eq10, key="ref6"), eq16, replace(ref6, key="eq10"))

    for experiment, agrees in ((luo2024.Luo2024(0, 2), True), (Swapped(0, 2), False)):
        (table,) = _reproduce(luo2024.paper_of(experiment), ("Table V",))
        (order,) = [e for e in table.entries if e.name.endswith("eq. (16) < eq. (10) < ref. 6")]
        assert order.kind == "order" and order.agrees is agrees


def test_another_seed_gives_other_numbers():
    first, second = (
        _reproduce(read_paper("raviola2021", seed=seed, repetitions=1), ("Table 3",))[0]
        for seed in (0, 1)
    )
    assert first.entries[0].computed != second.entries[0].computed
    assert first.to_dict() != second.to_dict()


def test_friction_forms_return_their_own_curve():
    """Figures 5 and 7 fit by nonlinear least squares: each form finds what it made."""
    rng = np.random.default_rng(3)
    velocity = np.repeat(np.radians([1.0, 2, 4, 8, 16, 30]), 12)
    load = rng.uniform(0.0, 25.0, velocity.shape)
    for name, form in luo2024_friction.FORMS.items():
        lower, upper = np.array(form.lower, float), np.array(form.upper, float)
        truth = form.torque(velocity, load, lower + 0.3 * (upper - lower))
        pairs = FrictionPairs(velocity, truth, load)
        fitted = form.torque(velocity, load, luo2024_friction.fit_form(form, pairs))
        # Worst: 1e-5 of the friction, for the ten coefficients of eq. (8).
        assert np.abs(fitted - truth).max() < 2e-2 * np.abs(truth).max(), name


def test_kinds_are_counted_apart_and_a_wrong_number_is_marked(papers):
    paper, exhibits = papers["kr5"]
    counts = count_by_kind(exhibits)
    assert counts["independent"][1] and counts["given"][1]
    text = paper_page(paper, exhibits)
    for kind in ("independent", "given"):
        assert f"<em>{counts[kind][0]} of {counts[kind][1]}</em>" in text
    assert " NO<" not in text
    wrong = replace(exhibits[1], rows=(compare_value("length", 1.0, 2.0, "m", 0.1),))
    assert " NO<" in paper_page(paper, [wrong])
    assert count_by_kind([wrong])["independent"] == (0, 1)
    assert compare_order("order", [True, False, False]).entries[0].agrees is False
    assert compare_order("order", [True, True, False]).entries[0].agrees is True


def test_reasons_are_footnotes_and_joints_are_columns(papers):
    paper, exhibits = papers["raviola2021"]
    text = paper_page(paper, exhibits)
    (table,) = [e for e in exhibits if e.label == "Table 4"]
    reason = table.rows[0].reason
    assert text.count(reason) == 1 and "<th>joint 6</th>" in text


def test_the_page_stands_alone(papers):
    text = paper_page(*papers["kr5"])
    assert "Table II" in text and "<canvas" in text
    assert not re.search(r"(src|href)=\"https?:", text)


def test_commands_on_the_pages_run_as_pasted(papers, tmp_path, monkeypatch, capsys):
    """A search is only shortened; outputs go to a folder of their own."""
    found = {}
    for name in PAPERS:
        paper, exhibits = papers[name]
        texts = re.findall(r"<code>(.*?)</code>", paper_page(paper, exhibits), flags=re.S)
        found |= {html.unescape(x): name for x in texts if re.match(r"taufit \S+ \S", x)}
    assert len(found) >= 5
    for k, (command, name) in enumerate(found.items()):
        folder = tmp_path / str(k)
        folder.mkdir()
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as stop:
            main([*shlex.split(command)[1:], "--seconds", "0.2"])
        assert not stop.value.code, (name, command, capsys.readouterr().err)


def test_the_command_prints_numbers_and_writes_the_page(tmp_path, capsys):
    page = tmp_path / "kr5.html"
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "kr5", "--json", "--repetitions", "1", "--report", str(page)])
    assert not stop.value.code
    data = parse_output("reproduce", capsys.readouterr().out)
    assert data["differing"] == 0 and page.stat().st_size > 10_000
    assert {item["kind"] for item in data["items"]} <= set(KINDS)
    assert sum(bool(item["reproduced"]) for item in data["items"]) >= 30


@pytest.mark.parametrize("name", PAPERS)
def test_the_terminal_has_at_most_25_lines(name, papers, capsys):
    from taufit.cli.reproduce import _show

    _show(papers[name][0], papers[name][1], Path("page.html"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 100


def test_an_unknown_paper_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "nobody1999"])
    assert stop.value.code == 2
