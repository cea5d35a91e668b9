"""CONTRIBUTING's worked examples: each file and each entry, run through the laws of its room."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import taufit

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(python|yaml)\n# (\S+?)(?:, in (\w+))?\n(.*?)```", re.S)
ROOMS = {
    "FRICTION_MODELS": "taufit.terms.friction",
    "TERMS": "taufit.terms",
    "ESTIMATORS": "taufit.estimators",
    "READERS": "taufit.recording",
    "EXPORTS": "taufit.export",
}


def blocks():
    """{path of a new file: its text}, {registry: the entry's line}."""
    files, entries = {}, {}
    for _, path, registry, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        if registry:
            entries[registry] = text.strip()
        else:
            files[path] = text
    return files, entries


FILES, ENTRIES = blocks()


def laws(room: str, name: str) -> ModuleType:
    """The room's own tests, as a module."""
    folder = str(ROOT / "tests" / room)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".py")])
@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=["check", "format"])
def test_a_file_of_the_page_passes_the_linter(path, check):
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed beside this Python")
    command = [ruff, *check, "-q", "--stdin-filename", ROOT / path, "-"]
    run = subprocess.run(command, input=FILES[path], text=True, capture_output=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture
def added(monkeypatch):
    """Adds a file and its entry as the page says; returns the entry's name."""

    def add(file: str, registry: str) -> str:
        module = ModuleType(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(FILES[file], file, "exec"), vars(module))
        ((name, entry),) = eval(f"{{{ENTRIES[registry]}}}", vars(module)).items()
        known = getattr(importlib.import_module(ROOMS[registry]), registry)
        assert name not in known
        monkeypatch.setitem(known, name, entry)
        return name

    return add


def test_the_page_has_six_examples_and_every_new_file_is_new():
    assert set(ENTRIES) == {*ROOMS, "MAKERS"} and len(FILES) == 6
    assert not any((ROOT / path).exists() for path in FILES)
    for path in FILES:
        assert (ROOT / path).parent.is_dir(), f"{path}: there is no such room"


def test_a_friction_model(added):
    name = added("src/taufit/terms/friction/arctangent.py", "FRICTION_MODELS")
    from taufit.terms.friction import FRICTION_MODELS

    room, model = laws("friction", "test_friction_models"), FRICTION_MODELS[name]()
    room.test_columns_are_one_per_term_finite_and_zero_at_standstill(model)
    room.test_friction_takes_energy_at_steady_speed(model)
    room.test_written_down_and_read_back_it_is_the_same_model(model)
    room.test_a_run_cut_anywhere_gives_the_columns_of_the_whole(model)
    recovery = laws("estimators", "test_estimation_recovery")
    clean = {name: recovery.simulated(model, n=600, joints=2, seed=3)}
    recovery.test_every_estimator_recovers_every_friction_model("wls", name, clean)


def test_a_term(added):
    name = added("src/taufit/terms/hose.py", "TERMS")
    from taufit.fitting import automatic_model
    from taufit.terms import TERMS, selectable_terms

    room, term = laws("terms", "test_terms"), TERMS[name]()
    room.test_a_term_does_with_energy_what_its_kind_says(term)
    room.test_columns_are_one_per_parameter_and_may_be_cut_anywhere(term)
    room.test_a_sum_has_each_terms_columns_and_only_leaves_kinds_out(term)
    room.test_written_down_and_read_back_it_is_the_same_term(term)
    assert name in selectable_terms()
    model = automatic_model(taufit.read_robot("ur3e"), terms=[name])
    assert "joint_6.hose" in model.names and "joint_6.coulomb" in model.names


def test_an_estimator(added):
    name = added("src/taufit/estimators/ridge.py", "ESTIMATORS")
    from taufit.terms.friction import Linear, Stribeck

    recovery = laws("estimators", "test_estimation_recovery")
    clean = {
        kind: recovery.simulated(model, n=600, joints=2, seed=3)
        for kind, model in (("linear", Linear()), ("stribeck", Stribeck()))
    }
    for kind in clean:
        recovery.test_every_estimator_recovers_every_friction_model(name, kind, clean)
    recovery.test_every_estimator_recovers_a_larger_arm(name)


def test_a_reader(added, tmp_path, monkeypatch):
    ending = added("src/taufit/recording/readers/from_jsonl.py", "READERS")
    room = laws("recording", "test_listed_readers")
    ((written, maker),) = eval(f"{{{ENTRIES['MAKERS']}}}", vars(room)).items()
    assert written == ending
    monkeypatch.setitem(room.MAKERS, ending, maker)
    room.test_every_reader_has_a_maker()
    room.test_a_file_reads_back_to_what_was_recorded(ending, tmp_path)
    for content in (b"", b"\x00", bytes(range(256)) * 40, b"no such file\n", b"[1]\n", b"{}\n"):
        room.test_what_is_no_such_file_is_refused_in_words(ending, content, tmp_path)
    room.test_a_missing_file_and_a_folder_in_its_place_are_named(ending, tmp_path)


def test_a_robot(tmp_path):
    pytest.importorskip("pinocchio")
    (file,) = (path for path in FILES if path.endswith(".yaml"))
    path = tmp_path / Path(file).name
    path.write_text(FILES[file])
    room = laws("robot", "test_robot_descriptions")
    room.test_every_bundled_arm_is_the_same_by_urdf_screws_and_yaml(str(path))
    room.test_bundled_arms_are_possible_and_bounded(str(path))
    room.test_write_then_read_returns_the_same_robot(str(path), tmp_path)


@pytest.mark.unchecked
def test_an_export(added, tmp_path):
    name = added("src/taufit/export/to_csv.py", "EXPORTS")
    from taufit.model import TorqueModel
    from taufit.terms.friction import Linear

    room = laws("export", "test_listed_exports")
    structure = TorqueModel(taufit.read_robot("ur3"), Linear())
    values = structure.nominal.copy()
    values[structure.layout.drive] = 1.5
    model = structure.with_values(values)
    folders = [tmp_path / str(k) for k in range(4)]
    for folder in folders:
        folder.mkdir()
    room.test_the_same_model_gives_the_same_files(model, name, folders[0])
    room.test_the_ending_names_the_form(model, name, folders[1])
    room.test_a_model_without_values_is_refused(name, folders[2])
    room.test_forms_differ_in_their_endings_and_unknown_ones_name_those_that_exist(
        model, folders[3]
    )
    for number, friction in enumerate(("none", "linear", "stribeck", "presliding")):
        folder = tmp_path / f"friction_{number}"
        folder.mkdir()
        room.test_every_friction_model_is_written_or_listed_as_dropped(name, friction, folder)
    assert "joint_1.coulomb,1.5" in (folders[0] / "one" / "arm.csv").read_text()
