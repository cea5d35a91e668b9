"""Functional mock-up units are the model: in FMPy, by compilers, by sanitizers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from compiled import STRICT, compiler
from test_c_code import FRICTIONS, close, model_of, motion
from units import beside_the_twin, moving_arm, signals, simulated, starts

from taufit.cli import main
from taufit.core.errors import TaufitError
from taufit.export.fmu import FMI_VERSIONS, KINDS, make_unit, write as fmu_write, write_fmu
from taufit.model import write_model
from taufit.robot import Drives, from_dh, read_robot
from taufit.terms import Ripple, sum_of
from taufit.terms.friction import (
    FRICTION_MODELS,
    Linear,
    Presliding,
    Stribeck,
    TemperatureDependent,
)

fmpy = pytest.importorskip("fmpy")

STEP = 0.004
SCARA = np.array([[0.3, 0.0, 0.25, 0.0], [0.0, 0.0, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]])


def written(folder, model, fmi="2.0", kind="inverse"):
    compiler()
    path = folder / "arm.fmu"
    done = write_fmu(model, path, fmi=fmi, kind=kind)
    assert done.notes == ()
    return path


def arms():
    """One with a slide, one with coupled motors, one of seven joints whose friction warms up."""
    bodies = np.tile([2.0, 0.1, 0.0, 0.1, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1], (3, 1))
    kinds = {"prismatic": (False, False, True)}
    return {
        "slide": moving_arm(from_dh(SCARA, name="scara", parameters=bodies, **kinds), Presliding()),
        "coupled": moving_arm(coupled(read_robot("kr5")), Linear()),
        "warm": model_of(read_robot("panda"), sum_of(TemperatureDependent(Presliding()), Ripple())),
    }


@pytest.mark.parametrize("fmi", FMI_VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arm", ["slide", "coupled", "warm"])
def test_fmpy_finds_nothing_to_object_to(tmp_path, fmi, kind, arm):
    from fmpy.validation import validate_fmu

    path = written(tmp_path, arms()[arm], fmi, kind)
    assert validate_fmu(str(path)) == []
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert {"modelDescription.xml", "sources/arm.c", "sources/fmi.c"} <= set(names)
    assert any(name.startswith("binaries/") for name in names)


@pytest.mark.parametrize("friction", [name for name in FRICTIONS if name != "none"])
def test_a_unit_of_inverse_dynamics_gives_the_torque_of_the_model(tmp_path, friction):
    fmi = FMI_VERSIONS[len(friction) % 2]
    model = model_of(read_robot("ur5e"), FRICTIONS[friction])
    q, v, a, warm = motion(6)
    groups = {"position": q, "velocity": v, "acceleration": a}
    if "temperature" in friction:
        groups["temperature"] = warm
    path = written(tmp_path, model, fmi)
    got = simulated(path, signals(STEP, **groups), STEP, torque=6)["torque"]
    close(got, model.torque(q, v, a, temperature=warm, step=STEP))


def test_a_unit_of_a_loaded_model_has_the_torque_of_the_payload(tmp_path):
    bare = model_of(read_robot("ur5e"), FRICTIONS["stribeck_load_smooth"])
    loaded = bare.with_payload(2.5, (0.02, -0.03, 0.06))
    q, v, a, _ = motion(6)
    path = written(tmp_path, loaded, FMI_VERSIONS[0])
    groups = {"position": q, "velocity": v, "acceleration": a}
    got = simulated(path, signals(STEP, **groups), STEP, torque=6)["torque"]
    close(got, loaded.torque(q, v, a, step=STEP))
    assert np.abs(got - bare.torque(q, v, a, step=STEP)).max() > 1.0


def test_inputs_act_at_once_and_friction_moves_on_with_a_step_alone(tmp_path):
    """An importer may set and read as often as it likes before it steps."""
    model = model_of(read_robot("ur5e"), Presliding())
    q, v, a, _ = motion(6, 30)
    want = model.torque(q, v, a, step=STEP)
    path = written(tmp_path, model)
    with opened(path) as unit:
        for k in range(30):
            for other in (0, k):
                unit.setReal(range(1, 19), np.concatenate([q[other], v[other], a[other]]))
                peeked = unit.getReal(range(19, 25))
            if k:
                close(np.array(peeked), want[k])
            unit.doStep(k * STEP, STEP)
            close(np.array(unit.getReal(range(19, 25))), want[k])


class opened:
    """An instance of an FMI 2.0 unit, ready to step."""

    def __init__(self, path, start=None):
        from fmpy.fmi2 import FMU2Slave

        self.folder = fmpy.extract(str(path))
        description = fmpy.read_model_description(str(path))
        self.unit = FMU2Slave(
            guid=description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="one",
        )
        self.references = {x.name: x.valueReference for x in description.modelVariables}
        self.unit.instantiate()
        self.unit.setupExperiment()
        for name, value in (start or {}).items():
            self.unit.setReal([self.references[name]], [value])
        self.unit.enterInitializationMode()
        self.unit.exitInitializationMode()

    def __enter__(self):
        return self.unit

    def __exit__(self, *_):
        self.unit.terminate()
        self.unit.freeInstance()
        shutil.rmtree(self.folder)


def coupled(robot):
    """With a wrist whose last motors move two joints."""
    coupling = np.eye(robot.joints)
    coupling[5, 4] = -1.0
    return replace(robot, drives=replace(Drives.direct_drive(robot.joints), coupling=coupling))


# The twin looks curves up in a table; straight lines are exact there.
MOVING = {
    "presliding": ("ur10e", Presliding(), "2.0", 1e-6),
    "linear": ("panda", Linear(), "3.0", 1e-10),
    "stribeck": ("ur5e", Stribeck(), "2.0", 1e-6),
    "load": ("ur10", FRICTION_MODELS["stribeck_load_smooth"](), "3.0", 1e-6),
    "ripple": ("ur5e", sum_of(Presliding(), Ripple((1.0, 4.5))), "2.0", 1e-6),
    "ripple held": (
        "ur5e",
        sum_of(Presliding(), Ripple((1.0, 4.5), (-0.1,) * 6, (0.15,) * 6)),
        "3.0",
        1e-6,
    ),
    "coupled": ("ur10e", Presliding(), "3.0", 1e-6),
}


@pytest.mark.parametrize("case", MOVING)
def test_a_unit_of_forward_dynamics_moves_as_the_twin_for_ten_seconds(tmp_path, case):
    arm, friction, fmi, apart = MOVING[case]
    robot = read_robot(arm)
    model = moving_arm(coupled(robot) if case == "coupled" else robot, friction)
    got, want = beside_the_twin(written(tmp_path, model, fmi, "forward"), model)
    assert len(got) >= 10_000 and np.ptp(want, axis=0).min() > 0.3
    assert np.abs(got - want).max() < apart


def test_forward_dynamics_undoes_inverse_dynamics(tmp_path):
    """At the beginning, with friction that is fully built up, for coupled motors as well."""
    model = arms()["coupled"]
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 6))
    tau = model.torque(q[None], v[None], a[None])[0]
    path = written(tmp_path, model, "2.0", "forward")
    start = starts(position=q, velocity=v, torque=tau)
    with opened(path, start) as unit:
        places = opened_references(path)
        got = unit.getReal([places[f"acceleration[{j + 1}]"] for j in range(6)])
    close(np.array(got), a)


def opened_references(path):
    return {x.name: x.valueReference for x in fmpy.read_model_description(path).modelVariables}


def test_ripple_pushes_where_the_model_says(tmp_path):
    base = moving_arm(read_robot("ur5e"), sum_of(Linear(), Ripple((2.0,))))
    path = written(tmp_path, base, "3.0", "forward")
    rng = np.random.default_rng(1)
    q, v, a = rng.normal(size=(3, 6))
    tau = base.torque(q[None], v[None], a[None])[0]
    rows = signals(1e-6, torque=np.tile(tau, (2, 1)))
    start = starts(position=q, velocity=v)
    got = simulated(path, rows, 1e-6, start, acceleration=6)["acceleration"][0]
    np.testing.assert_allclose(got, a, rtol=0, atol=1e-8 * np.abs(a).max())


def test_a_state_can_be_kept_and_returned_to(tmp_path):
    model = moving_arm(read_robot("ur5e"), Presliding())
    path = written(tmp_path, model, "2.0", "forward")
    with opened(path) as unit:
        unit.doStep(0.0, 0.02)
        kept = unit.getFMUState()
        sent = unit.serializeFMUState(kept)
        ways = []
        for state in (kept, unit.deserializeFMUState(sent)):
            unit.setFMUState(state)
            unit.doStep(0.02, 0.03)
            ways.append(unit.getReal(range(unit_of_size(model))))
            unit.freeFMUState(state)
    np.testing.assert_array_equal(ways[0], ways[1])


def unit_of_size(model):
    text = make_unit(model, "2.0", "forward").sources["unit.h"]
    return int(re.search(r"UNIT_VARIABLES (\d+)", text)[1])


def test_what_makes_no_sense_is_refused(tmp_path):
    from fmpy.fmi1 import FMICallException

    model = moving_arm(read_robot("ur5e"), Linear())
    path = written(tmp_path, model, "2.0", "forward")
    places = opened_references(path)
    with opened(path) as unit:
        for name, value in (
            ("torque[1]", np.nan),
            ("torque[1]", np.inf),
            ("position[1]", 0.1),
            ("presliding[2]", 1.0),
            ("friction[1]", 1.0),
            ("time", 1.0),
        ):
            with pytest.raises(FMICallException):
                unit.setReal([places[name]], [value])
        for reference in (unit_of_size(model), 2**32 - 1):
            with pytest.raises(FMICallException):
                unit.getReal([reference])
        for span in (-1.0, np.nan, 1e9):
            with pytest.raises(FMICallException):
                unit.doStep(0.0, span)
        unit.setReal([places["torque[1]"]], [1e7])
        with pytest.raises(FMICallException):
            unit.doStep(0.0, 1.0)


def test_another_description_does_not_fit_the_binary(tmp_path):
    path = written(tmp_path, model_of(read_robot("ur5e"), Linear()))
    with opened(path) as unit:
        unit.guid = "{another}"
        with pytest.raises(Exception, match="instantiate"):
            unit.instantiate()


def test_without_a_compiler_the_sources_are_written_and_can_be_compiled(tmp_path, monkeypatch):
    compiler()
    model = model_of(read_robot("ur5e"), Presliding())
    path = tmp_path / "arm.fmu"
    with monkeypatch.context() as patched:
        patched.setattr(fmu_write, "_COMPILERS", ())
        done = write_fmu(model, path, fmi="3.0")
    assert len(done.notes) == 1 and "No C compiler" in done.notes[0]
    with zipfile.ZipFile(path) as archive:
        assert not any(name.startswith("binaries/") for name in archive.namelist())
        archive.extractall(tmp_path / "open")
        listed = archive.read("sources/buildDescription.xml").decode()
    sources = re.findall(r'SourceFile name="([^"]+)"', listed)
    files = [str(tmp_path / "open" / "sources" / name) for name in sources]
    subprocess.run(
        [compiler(), *STRICT, "-shared", "-fPIC", *files, "-lm", "-o", str(tmp_path / "x.so")],
        check=True,
    )


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("fmi", FMI_VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_compilers_do_not_warn(tmp_path, cc, fmi, kind):
    unit = make_unit(arms()["warm"], fmi, kind)
    for name, text in unit.sources.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("unit.c", "motion.c", "fmi.c")]
    flags = [*STRICT, "-Wshadow", "-Wconversion", "-fsyntax-only"]
    subprocess.run([compiler(cc), *flags, *files], check=True)


MAIN = """
#include <stddef.h>
void *fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int);
void fmi2FreeInstance(void *);
int fmi2ExitInitializationMode(void *);
int fmi2SetReal(void *, const unsigned int *, size_t, const double *);
int fmi2GetReal(void *, const unsigned int *, size_t, double *);
int fmi2DoStep(void *, double, double, int);
int fmi2GetFMUstate(void *, void **);
int fmi2SetFMUstate(void *, void *);
int fmi2FreeFMUstate(void *, void **);
#include "unit.h"
int main(void) {
  static unsigned int all[UNIT_VARIABLES + 1];
  static double value[UNIT_VARIABLES + 1];
  void *one = fmi2Instantiate("one", 1, UNIT_TOKEN, "", NULL, 0, 0), *state = NULL;
  for (unsigned int k = 0; k <= UNIT_VARIABLES; k++) all[k] = k;
  if (!one || fmi2ExitInitializationMode(one)) return 1;
  for (int k = 0; k < 300; k++) {
    const double push = k % 7 - 3.0;
    if (fmi2SetReal(one, all + 1 + k % 6, 1, &push)) return 2;
    if (k % 50 == 7 && fmi2GetFMUstate(one, &state)) return 3;
    if (fmi2DoStep(one, 0.002 * k, 0.002, 1)) return 4;
    if (fmi2GetReal(one, all, UNIT_VARIABLES, value)) return 5;
  }
  if (fmi2GetReal(one, all, UNIT_VARIABLES + 1, value) == 0) return 6;
  if (fmi2SetFMUstate(one, state) || fmi2FreeFMUstate(one, &state)) return 7;
  fmi2FreeInstance(one);
  return 0;
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_sanitizers_find_nothing(tmp_path, kind):
    unit = make_unit(moving_arm(read_robot("ur10e"), sum_of(Presliding(), Ripple())), "2.0", kind)
    for name, text in {**unit.sources, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / f"{name}.c") for name in ("main", "arm", "unit", "motion", "fmi")]
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    program = str(tmp_path / "main")
    subprocess.run([compiler(), *STRICT, *flags, *files, "-lm", "-o", program], check=True)
    subprocess.run([program], check=True, env={"ASAN_OPTIONS": "detect_leaks=0"}, timeout=60)


def test_the_command_writes_the_unit_that_was_asked_for(tmp_path, capsys):
    compiler()
    write_model(model_of(read_robot("ur5e"), Stribeck()), tmp_path / "model.json")
    words = ["export", str(tmp_path / "model.json"), "--format", "fmu"]
    out = tmp_path / "x.fmu"
    assert ended([*words, "--fmi", "3", "--kind", "forward", "-o", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["files"] == [str(out)] and said["dropped"] == [] and said["notes"] == []
    description = fmpy.read_model_description(str(out))
    assert description.fmiVersion == "3.0"
    assert description.coSimulation.modelIdentifier == "ur5e_forward"
    for wrong in (["--fmi", "1"], ["--kind", "sideways"]):
        assert ended([*words, *wrong, "-o", str(out)]) == 2
    assert ended([*words[:3], "c", "--fmi", "2", "-o", str(tmp_path / "x.c")]) == 2


def ended(words):
    with pytest.raises(SystemExit) as stop:
        main(words)
    return stop.value.code or 0


def test_an_unknown_unit_is_refused(tmp_path):
    with pytest.raises(TaufitError, match=r"2\.0 or 3\.0"):
        write_fmu(model_of(read_robot("ur5e"), Linear()), tmp_path / "x.fmu", fmi="1.0")
    assert not list(tmp_path.iterdir())
