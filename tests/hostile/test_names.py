"""Names are data: no output obeys them. Compiled, parsed, rendered, captured from a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from tests.browser import CHROMIUM, launched, opened

from taufit.cli import main
from taufit.core.errors import TaufitError
from taufit.core.names import c_comment, c_header, c_identifier, clean_name, printable, yaml_scalar

NAMES = {
    "comment": '*/\nint evil(void){return 1;}\n/*',
    "include": '"\n#include "/etc/passwd"\n',
    "trigraph": "x ??/\nint evil; //",
    "splice": "x \\\nint evil;",
    "title": "\x1b]0;OWNED\x07",
    "clear": "\x1b[2J\x1b[H\x9b31mred",
    "link": "[link=file:///etc/passwd]click[/link]",
    "markup": "arm[/b]",
    "bold": "[bold red]arm",
    "script": "</script><script>document.title='OWNED'</script>",
    "image": "<img src=x onerror=\"document.title='OWNED'\">",
    "entity": "&lt;b&gt;<!ENTITY x 'y'><![CDATA[",
    "yaml": "w]\nevil: [x",
    "comment in yaml": "x #c",
    "yes": "yes",
    "octal": "0123",
    "direction": "\u202egnp.exe",
    "quote": "\"'`$(touch owned);--",
    "letters": "ünïcode_机器人",
    "format": "{0} %s %n {name}",
    "long": "x" * 5000,
}  # fmt: skip
# Sequences rich itself sends: colours and styles.
OWN = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(params=NAMES, ids=list(NAMES))
def hostile(request, arm, tmp_path):
    """A model whose every free text is hostile, and the text."""
    text = NAMES[request.param]
    data = json.loads((arm / "model.json").read_text())
    data["robot"]["name"] = text
    data["robot"]["source"] = text
    data["warnings"] = [text]
    data["provenance"]["created"] = text
    data["provenance"]["recordings"] = [{"file": text, "sha256": text}]
    data["score"]["file"] = text
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    return path, text


def run(*words):
    """Exit code of a command, in this process: quick."""
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return stop.value.code or 0


def on_a_terminal(*words):
    """What a command sends to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "taufit", *map(str, words)]
    running = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(ours)
    return running.wait(), out.decode()


C_FUNCTIONS = (
    "acceleration", "contact_start", "contact_threshold", "controller_payload", "controller_start",
    "coriolis", "external_torque", "feed_forward", "forward_kinematics", "friction",
    "friction_step", "gravity", "guide", "guiding_fraction", "inverse_dynamics", "jacobian",
    "mass_matrix", "regressor", "residual", "smooth_torque", "start", "step", "torque",
    "torque_gradient", "track_friction",
)  # fmt: skip


def test_c_export_defines_its_own_symbols_and_no_others(hostile, arm, tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no C compiler here")
    assert run("export", hostile[0], "--format", "c", "-o", tmp_path / "arm.c") == 0
    flags = ["-std=c99", "-trigraphs", "-Wall", "-Werror", "-c"]
    done = subprocess.run(
        [gcc, *flags, "arm.c", "-o", "arm.o"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = subprocess.run(
        ["nm", "--defined-only", "-g", tmp_path / "arm.o"], capture_output=True, text=True
    ).stdout.split()[2::3]
    ends = sorted(re.sub(f".*?_({'|'.join(C_FUNCTIONS)})$", r"\1", n) for n in names)
    assert ends == sorted(C_FUNCTIONS)
    both = (tmp_path / "arm.c").read_text() + (tmp_path / "arm.h").read_text()
    assert both.isascii()


@pytest.mark.parametrize("form", ["urdf", "mjcf"])
def test_xml_exports_hold_the_same_elements_whatever_the_name(hostile, arm, tmp_path, form):
    trees = []
    path = tmp_path / {"urdf": "arm.urdf", "mjcf": "arm.xml"}[form]
    for model in (arm / "model.json", hostile[0]):
        assert run("export", model, "--format", form, "-o", path, "--overwrite") == 0
        trees.append(ElementTree.parse(path))
    tags = [Counter(element.tag for element in tree.iter()) for tree in trees]
    keys = [Counter(key for e in tree.iter() for key in e.attrib) for tree in trees]
    assert tags[0] == tags[1] and keys[0] == keys[1]


TERMINAL = [
    *(("export", name) for name in ("title", "clear", "link", "direction")),
    *(("check", name) for name in ("title", "markup")),
    ("payload", "markup"),
]


@pytest.mark.parametrize(
    ("verb", "hostile"), TERMINAL, indirect=["hostile"], ids=["-".join(x) for x in TERMINAL]
)
def test_a_terminal_gets_no_sequence_of_a_file(hostile, arm, tmp_path, verb):
    words = {
        "check": ["check", hostile[0], arm / "run.parquet"],
        "export": ["export", hostile[0], "--format", "urdf", "-o", tmp_path / "a.urdf"],
        "payload": ["payload", hostile[0], arm / "run.parquet", "--method", "static"],
    }[verb]
    code, out = on_a_terminal(*words)
    assert code in (0, 1, 3) and "Traceback" not in out
    # The progress bar moves the cursor; after it only colours are left.
    rest = re.sub(r"\x1b\[\?25[lh]|\x1b\[\d*[A-K]|\r", "", OWN.sub("", out))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", rest), repr(rest)
    assert "\x1b]" not in out


@pytest.mark.parametrize("name", NAMES)
def test_joint_names_reach_ros_as_themselves_or_are_refused(name, tmp_path, capsys):
    text = NAMES[name]
    rows = [
        {"name": text if i == 1 else f"j{i}", "a": 0.3, "lower": -1, "upper": 1, "velocity": 1,
         "acceleration": 5, "mass": 1.0, "com": [0.1, 0, 0], "inertia": [0.1, 0.1, 0.1]}
        for i in range(2)
    ]  # fmt: skip
    (tmp_path / "arm.yaml").write_text(
        yaml.safe_dump({"name": text, "source": text, "convention": "standard", "joints": rows})
    )
    code = run(
        "design", tmp_path / "arm.yaml", "--seconds", "0.1", "--free-space",
        "-o", tmp_path / "m.json", "--ros2", tmp_path / "m.yaml",
    )  # fmt: skip
    if text != clean_name(text):
        assert code == 3 and "control characters" in capsys.readouterr().err
        return
    assert code == 0
    page = yaml.safe_load((tmp_path / "m.yaml").read_text())
    assert set(page) == {"joint_names", "points"} and page["joint_names"] == ["j0", text]
    assert run("inspect", tmp_path / "arm.yaml") == 0
    # Shown as it is: brackets are no markup.
    assert text[:12] in capsys.readouterr().out


@pytest.mark.parametrize("hostile", ["script", "image", "entity"], indirect=True)
def test_a_page_runs_no_script_of_a_name(hostile, arm, tmp_path):
    words = ["report", hostile[0], arm / "run.parquet", "-o", tmp_path / "page.html"]
    assert run(*words) == 0
    text = (tmp_path / "page.html").read_text()
    assert "<script>document.title" not in text and "<img src=x" not in text
    if CHROMIUM is None:
        return
    with launched() as browser, opened(browser, (tmp_path / "page.html").as_uri()) as page:
        assert page.title() != "OWNED"
        assert page.evaluate("document.querySelectorAll('img[onerror]').length") == 0


@pytest.mark.parametrize("name", NAMES)
def test_each_escape_does_what_it_says(name):
    text = NAMES[name]
    assert re.fullmatch(r"[A-Za-z0-9 .,:;()=+_-]*", c_comment(text))
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", c_identifier(text))
    assert yaml.safe_load(yaml_scalar(text)) == text
    assert "\n" not in yaml_scalar(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", clean_name(text))
    assert clean_name(clean_name(text)) == clean_name(text) and len(clean_name(text)) <= 200
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printable(text))


@pytest.mark.parametrize("name", ['a".h', "a\\b.h", "a\n.h", "a??/.h", "a\x1b.h", ""])
def test_a_header_that_would_act_is_refused(name):
    with pytest.raises(TaufitError, match="cannot stand in a C #include"):
        c_header(name)


def test_a_joint_named_by_a_bag_moves_no_cursor(tmp_path):
    """One message among many names a joint that would clear the screen and write over a line."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    state, header, stamp = (
        store.types[name]
        for name in (
            "sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time",
        )
    )  # fmt: skip
    with Writer(tmp_path / "bag", version=9) as writer:
        link = writer.add_connection("/joint_states", state.__msgtype__, typestore=store)
        for k in range(400):
            names = ["a", "b"] if k != 7 else ["\x1b[2Jevil", "\x1b[9A\rPASS"]
            values = np.sin(0.01 * k * np.arange(1, 3))
            head = header(stamp(k // 100 + 1, k % 100 * 10**7), "")
            message = state(head, names, values, values, values)
            writer.write(link, 10**9 + k * 10**7, store.serialize_cdr(message, state.__msgtype__))
    code, out = on_a_terminal(
        "convert", tmp_path / "bag", "--torque-kind", "torque", "-o", tmp_path / "x.parquet"
    )
    assert code == 0 and "evil" in out and "\x1b[2J" not in out and "\x1b[9A" not in out
