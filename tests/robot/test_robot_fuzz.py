"""Thousands of damaged descriptions: an error in the user's words, or a usable robot."""

from __future__ import annotations

import re
import time

import numpy as np
from arm_texts import ur10_urdf

from taufit.core.errors import TaufitError
from taufit.dynamics import inverse_dynamics
from taufit.robot import read_robot, to_yaml

TOKENS = [
    *("nan", "inf", "-inf", "1e999", "-1", "0", "1e-320", "9" * 400, "pi/0", "0x10", "1_0"),
    *("", " ", "\x00", "\n", "\t", "é", "\ufeff", "null", "~", "yes", "2020-13-45", "!!python/x"),
    *("<", ">", "/>", "&", "&lt;", "&a;", "<!--", "-->", "<![CDATA[", "]]>", '"', "'", "<link/>"),
    *("[", "]", "{", "}", ":", ": ", "- ", "*a", "&a", "#", "|", "? ", "<<: ", "!!float", "%"),
    *("world", "base_link", "revolute", "floating", "mimic", "joint", "link", "screws", "frames"),
]

VALUE = re.compile(r'(?<=")[^"<>]*(?=")|-?[0-9]+\.?[0-9]*|\b[a-z_]+\b')


def mutants(text: str, count: int, rng: np.random.Generator):  # noqa: C901 - a list of damages
    """Cut, doubled, swapped, overwritten and truncated versions of a text, as bytes."""
    for _ in range(count):
        data = text
        syntax = rng.random() < 0.5
        for _ in range(int(rng.integers(1, 5))):
            size = len(data)
            if size < 2:
                break
            at = int(rng.integers(0, size))
            end = min(size, at + int(rng.integers(1, 60)))
            kind = int(rng.integers(0, 12)) if syntax else 8
            token = TOKENS[int(rng.integers(0, len(TOKENS)))]
            if kind == 0:
                data = data[:at] + data[end:]
            elif kind == 1:
                data = data[:at] + data[at:end] * int(rng.integers(2, 30)) + data[end:]
            elif kind == 2:
                data = data[:at] + token + data[at:]
            elif kind == 3:
                data = data[:at] + token + data[end:]
            elif kind == 4:
                data = data[:at]
            elif kind == 5:
                words = data.split(" ")
                i, j = rng.integers(0, len(words), 2)
                words[i], words[j] = words[j], words[i]
                data = " ".join(words)
            elif kind == 6:
                words = data.split(" ")
                words[int(rng.integers(0, len(words)))] = token
                data = " ".join(words)
            elif kind >= 8:
                # One value for another, syntax intact: what the reader itself must refuse.
                found = list(VALUE.finditer(data))
                if found:
                    one = found[int(rng.integers(0, len(found)))]
                    two = found[int(rng.integers(0, len(found)))]
                    value = two.group() if rng.random() < 0.5 else token
                    if "<" not in value and '"' not in value:
                        data = data[: one.start()] + value + data[one.end() :]
            else:
                lines = data.split("\n")
                i, j = rng.integers(0, len(lines), 2)
                lines[i], lines[j] = lines[j], lines[i]
                data = "\n".join(lines)
        raw = data.encode("utf-8", "surrogatepass")
        if rng.random() < 0.1 and raw:
            at = int(rng.integers(0, len(raw)))
            raw = raw[:at] + bytes([int(rng.integers(0, 256))]) + raw[at + 1 :]
        yield raw


def test_no_damaged_file_causes_anything_but_a_clear_error(tmp_path):
    table = (
        "name: arm\nconvention: modified\nangles: degrees\nmounting: [0, 30, 0]\n"
        "tip: {xyz: [0, 0, 0.1], rpy: [0, 0, 0]}\ndrives: {side: motor}\njoints:\n"
        "  - {name: a, d: 0.3, a: 0, alpha: 0, lower: -170, upper: 170, mass: 2, com: [0, 0, 0.1],"
        " inertia: {xx: 0.1, yy: 0.1, zz: 0.05}}\n"
        "  - {name: b, type: prismatic, alpha: pi/2, a: 4e-1, gear_ratio: 101, gain: 11}\n"
    )
    screws = (
        "convention: screws\njoints:\n- {screw: [0, 0, 1, 0, 0, 0]}\n"
        "- {screw: [0, 1, 0, -0.3, 0, 0]}\n"
    )
    part = read_robot("ur3")
    seeds = [
        ("urdf", ur10_urdf(), 1400),
        ("yaml", table, 600),
        ("yaml", screws, 200),
        ("yaml", to_yaml(part), 100),
    ]
    rng = np.random.default_rng(20)
    fed = refused = 0
    slowest = 0.0
    started = time.process_time()
    for suffix, text, count in seeds:
        path = tmp_path / f"arm.{suffix}"
        for raw in mutants(text, count, rng):
            path.write_bytes(raw)
            before = time.process_time()
            fed += 1
            try:
                robot = read_robot(path)
            except TaufitError as error:
                refused += 1
                assert str(error)
            else:
                zero = np.zeros((1, robot.joints))
                assert np.all(np.isfinite(inverse_dynamics(robot, zero, zero, zero)))
            slowest = max(slowest, time.process_time() - before)

    assert fed >= 2000
    # The mutants are damaged enough to matter, and not so much that nothing is read.
    assert 0.3 * fed < refused < 0.98 * fed
    assert slowest < 2.0
    assert time.process_time() - started < 20.0
