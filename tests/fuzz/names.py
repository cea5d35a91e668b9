"""`python -m tests.fuzz.names`: hostile names and sources through every text that taufit writes.

A text with hostile names must be, token by token or element by element, the text with harmless
ones: names differ, nothing else does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import yaml

from taufit.core.errors import TaufitError
from taufit.core.names import c_comment, clean_name
from taufit.excitation.robot_programs import to_joint_trajectory, to_urscript
from taufit.export import to_mjcf, to_urdf
from taufit.export.c import c_name, c_texts
from taufit.export.fmu import FmuSources, make_unit
from taufit.model.fitted_model import FittedModel
from taufit.model.model_file import model_from_dict, write_model
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.sim import random_fourier
from taufit.terms.friction import Linear, Presliding, TemperatureDependent

PIECES = (
    "*/", "/*", "//", "\\", "\\\n", "??/", "??/\n", "%:", "<:", "\n", "\r", "\r\n", "\t", "\x0b",
    "\x0c", "\x00", "\x1b[2J", "\x07", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e",
    "\ufeff", "\ufffe", "�", "int evil(void){return 1;}", "#include \"/etc/passwd\"",
    "#define double float", "_Pragma(\"x\")", "asm(\"\")", "\"", "'", "`", "$(touch owned)", ";",
    "{", "}", "(", ")", "[", "]", "<", ">", "&", "&lt;", "&#0;", "&#27;", "]]>", "<![CDATA[",
    "<!--", "-->", "<?xml?>", "<!DOCTYPE x [<!ENTITY e 'x'>]>", "&e;", "</robot>",
    "<joint name='evil'/>", "\" evil=\"1", "' evil='1", "/><body/>", "xmlns:x='y'", ": ", "- ",
    "# ", "!!python/object/apply:os.system ['true']", "&anchor", "*anchor", "? ", "|", ">",
    "%YAML 1.1", "evil: 1", "]\nevil: [", "---", "...", "yes", "null", "~", "0x10", "1e3", "012",
    "\x7f", "end", "def evil():", "movej([0,0,0,0,0,0])", "\nend\nset_digital_out(0, True)\n",
    "textmsg(\"x\")", "popup(", "{0}", "{name}", "%s", "%n", "@TITLE@", "@FILE@", "@TABLES@",
    "@TOKEN@", "arm_step", "ARM_JOINTS", "$ENV{HOME}", "${CMAKE_COMMAND}", "..", "../..", "/",
    "CON", "ü", "机器人", "🤖", "e\u0301", "\u200d", "\xa0", "x" * 300,
)  # fmt: skip
# Names that are words of the files themselves.
WORDS = (
    "int", "double", "main", "for", "base", "tip", "arm", "unit", "kind", "slow", "state", "N",
    "turn", "world", "base_link", "tip_joint", "link_1", "end", "def", "movej", "while", "true",
    "", " ", "_", "0", "9lives", "inf",
)  # fmt: skip
BUILT_IN = {"movej", "servoj", "sleep", "stopj", "sin", "cos", "write_output_integer_register"}


def hostile(rng: np.random.Generator) -> str:
    """A name somebody might put into a file, to see what happens."""
    if rng.random() < 0.15:
        return WORDS[rng.integers(len(WORDS))]
    return "".join(PIECES[i] for i in rng.integers(len(PIECES), size=rng.integers(1, 6)))


@dataclass(frozen=True)
class Names:
    """Everything of a model that is free text."""

    robot: str
    source: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    tolerated: bool

    @classmethod
    def drawn(cls, rng: np.random.Generator, joints: int) -> Names:
        many = [hostile(rng) for _ in range(2 * joints)]
        # As every reader leaves them; without that, most are refused as they should be.
        tolerated = bool(rng.random() < 0.8)
        if tolerated:
            many = [clean_name(name) for name in many]
        return cls(
            hostile(rng), hostile(rng), tuple(many[:joints]), tuple(many[joints:]), tolerated
        )


@cache
def harmless() -> dict:
    """A fitted arm as its file has it."""
    robot = read_robot("ur3")
    model = TorqueModel(robot, TemperatureDependent(Presliding(), law="exponential"))
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = robot.parameters
    with tempfile.TemporaryDirectory() as folder:
        write_model(model.with_values(values), Path(folder) / "model.json")
        return json.loads((Path(folder) / "model.json").read_text())


def named(names: Names | None) -> FittedModel:
    data = json.loads(json.dumps(harmless()))
    if names is not None:
        data["robot"]["name"], data["robot"]["source"] = names.robot, names.source
        for link, name, joint in zip(
            data["robot"]["links"], names.links, names.joints, strict=True
        ):
            link["name"], link["joint"] = name, joint
    return model_from_dict(data, "model.json")


_C = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|\S",
    re.S,
)
_TRIGRAPHS = {
    "=": "#",
    "/": "\\",
    "'": "^",
    "(": "[",
    ")": "]",
    "!": "|",
    "<": "{",
    ">": "}",
    "-": "~",
}


def c_tokens(text: str, name: str) -> list[str]:
    """As a C compiler reads them: trigraphs, spliced lines, comments, which are all one token."""
    text = re.sub(r"\?\?([=/'()!<>-])", lambda found: _TRIGRAPHS[found[1]], text)
    text = re.sub(r"\\[ \t]*\n", "", text)
    out = []
    for token in _C.findall(text):
        if token.startswith(("/*", "//")):
            out.append("/**/")
            continue
        for own, common in ((f"{name}_", "arm_"), (f"{name.upper()}_", "ARM_")):
            if token.startswith(own):
                token = common + token.removeprefix(own)
        out.append(token)
    return out


@dataclass(frozen=True)
class Texts:
    """Everything that is written of a model."""

    name: str
    c: tuple[str, ...]
    urdf: str
    mjcf: str
    descriptions: tuple[str, ...]

    @classmethod
    def of(cls, model: FittedModel) -> Texts:
        units = [make_unit(model, "2.0", "forward"), make_unit(model, "3.0", "inverse")]
        return cls(
            c_name(model),
            tuple(_c_texts(model, units)),
            to_urdf(model)[0],
            to_mjcf(model)[0],
            tuple(unit.description for unit in units),
        )


@cache
def plain_texts() -> Texts:
    return Texts.of(named(None))


def check_c(texts: Texts) -> None:
    name, plain = texts.name, plain_texts()
    assert re.fullmatch("[a-z][a-z0-9_]*", name), name
    for got, want in zip(texts.c, plain.c, strict=True):
        assert got.isascii()
        # The harmless text under the hostile prefix: what a prefix and a word of ours have in
        # common is then common to both.
        want = want.replace(f"{plain.name}_", f"{name}_")
        want = want.replace(f"{plain.name.upper()}_", f"{name.upper()}_")
        assert c_tokens(got, name) == c_tokens(want, name)


def _c_texts(model: FittedModel, units: list[FmuSources]) -> Iterator[str]:
    texts = c_texts(model, "arm")
    yield from (texts.source, texts.header, texts.cpp_header, texts.cmake)
    for unit in units:
        sources = unit.sources
        # The token differs with the content.
        yield re.sub(r"\{[0-9a-f]{32}\}", "", sources["unit.h"])
        yield from (sources[file] for file in ("unit.c", "motion.c", "fmi.c"))


def check_compiled(model: FittedModel, folder: Path) -> None:
    """Symbols of the object: the model's functions, and those of the standard."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return
    name = c_name(model)
    for kind in ("inverse", "forward"):
        unit = make_unit(model, "2.0", kind)
        for file, text in unit.sources.items():
            (folder / file).write_text(text)
        flags = ["-std=c99", "-trigraphs", "-Wall", "-Wno-trigraphs", "-Werror", "-r", "-nostdlib"]
        files = ["arm.c", "unit.c", "motion.c", "fmi.c"]
        done = subprocess.run(
            [gcc, *flags, *files, "-o", "all.o"], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[:500]
        listed = subprocess.run(
            ["nm", "--defined-only", "-g", "all.o"], cwd=folder, capture_output=True, text=True
        ).stdout.split()[2::3]
        strange = [s for s in listed if not s.startswith((f"{name}_", "unit_", "kind_", "fmi2"))]
        assert strange == [], strange


def check_xml(texts: Texts) -> None:
    """The same elements with the same attributes; all values that are no names are the same."""
    plain = plain_texts()
    for one, other in (
        (texts.urdf, plain.urdf),
        (texts.mjcf, plain.mjcf),
        *zip(texts.descriptions, plain.descriptions, strict=True),
    ):
        trees = [list(ElementTree.fromstring(text).iter()) for text in (one, other)]
        assert [e.tag for e in trees[0]] == [e.tag for e in trees[1]]
        for got, want in zip(*trees, strict=True):
            assert list(got.attrib) == list(want.attrib)
            assert (got.text or "").strip() == (want.text or "").strip() == ""
            for key, value in want.attrib.items():
                if re.fullmatch(r"[-+0-9.e ]+", value) and key not in ("name", "link"):
                    assert got.get(key) == value, (key, value)


def check_simulators(texts: Texts) -> None:
    """Simulators read what was written, and see the arm."""
    import mujoco
    import pinocchio

    loaded = mujoco.MjModel.from_xml_string(texts.mjcf)
    assert loaded.njnt == loaded.nu == 6
    assert pinocchio.buildModelFromXML(texts.urdf).nq == 6


@cache
def excitation():
    return random_fourier(read_robot("ur3"), seed=0, harmonics=3)


def check_scripts(model: FittedModel, names: Names) -> None:
    """YAML holds names as text and no other key; URScript defines one function of a safe name."""
    joints = model.robot.joint_names
    read = yaml.safe_load(to_joint_trajectory(excitation(), joints, rate_hz=1.0))
    assert list(read) == ["joint_names", "points"]
    assert read["joint_names"] == list(joints)
    plain, other = to_urscript(excitation()), to_urscript(excitation(), names.robot)
    name = re.fullmatch(r"def ([A-Za-z_]\w*)\(\):", other.splitlines()[0])[1]
    assert name not in BUILT_IN and name.isascii()
    assert other == plain.replace("taufit_excitation", name)
    comment = c_comment(names.source)
    assert "*/" not in comment and "\n" not in comment and comment.isascii()


_BODY = (
    '<inertial><origin xyz="0 0 0.1"/><mass value="4"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
)


def own_urdf(names: Names, folder: Path) -> str:
    """What is written for an arm of two joints that was itself read from a URDF."""
    name, first, second, one, two = map(
        quoteattr, (names.robot, *names.links[:2], *names.joints[:2])
    )
    limit = '<limit lower="-3" upper="3" velocity="3" effort="60"/></joint>'
    (folder / "own.urdf").write_text(
        f'<robot name={name}><link name="ground"/><link name={first}>{_BODY}</link>'
        f'<link name={second}>{_BODY}</link><joint name={one} type="revolute">'
        f'<parent link="ground"/><child link={first}/><axis xyz="0 0 1"/>{limit}'
        f'<joint name={two} type="revolute"><parent link={first}/><child link={second}/>'
        f'<origin xyz="0 0 0.1" rpy="1.57 0 0"/><axis xyz="0 0 1"/>{limit}</robot>',
        encoding="utf-8",
    )
    robot = read_robot(folder / "own.urdf")
    model = TorqueModel(robot, Linear())
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = robot.parameters
    return to_urdf(model.with_values(values))[0]


def check_own_urdf(names: Names, folder: Path) -> None:
    plain = Names("arm", "", ("a", "b"), ("c", "d"), True)
    trees = [
        [(e.tag, tuple(e.attrib)) for e in ElementTree.fromstring(own_urdf(n, folder)).iter()]
        for n in (names, plain)
    ]
    assert trees[0] == trees[1]


def run_case(seed: int, folder: Path, *, compile: bool, load: bool) -> str:
    """ "refused" or "written"; raises where something got out."""
    names = Names.drawn(np.random.default_rng([seed, 24]), len(harmless()["robot"]["links"]))
    try:
        model = named(names)
        texts = Texts.of(model)
    except TaufitError:
        return "refused"
    check_xml(texts)
    check_c(texts)
    check_scripts(model, names)
    if load:
        check_simulators(texts)
        with contextlib.suppress(TaufitError):
            check_own_urdf(names, folder)
    if compile:
        check_compiled(model, folder)
    return "written"


def fuzz_names(
    cases: int, seed: int, *, every: int = 40, report: Callable[[str], None] = lambda _: None
) -> tuple[Counter[str], list[str]]:
    """Outcomes and failures; every so many-th case is compiled, every fourth is loaded."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for k in range(cases):
            try:
                outcome = run_case(seed + k, Path(folder), compile=k % every == 0, load=k % 4 == 0)
            except Exception as error:
                outcome = "failed"
                failures.append(f"--seed {seed + k}: {type(error).__name__}: {str(error)[:300]}")
                report(failures[-1])
            counts[outcome] += 1
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts, failures = fuzz_names(
        given.cases, given.seed, report=lambda text: print(text, file=sys.stderr, flush=True)
    )
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
