"""Files that unpack to gigabytes are refused before they take the memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import bombs

from taufit.core.decompression_limits import large_files, require_unpacked_size
from taufit.core.errors import RecordingError, TaufitError
from taufit.recording import read_recordings

GIGABYTE = 1_000_000_000
# Runs one command and reports its own CPU seconds and largest memory; nothing else is in it.
MEASURED = """
import resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(ran.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
sys.stdout.write(ran.stderr.decode())
"""


@pytest.fixture(scope="module")
def startup():
    """CPU seconds of a command that reads a tiny file."""
    return _measured("--version")[1]


def _measured(*words):
    command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "taufit", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    first, _, rest = ran.stdout.partition("\n")
    code, seconds, memory = first.split()
    return int(code), float(seconds), int(memory), rest


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_a_bomb_is_refused_in_one_sentence(tmp_path, name):
    path = tmp_path / name
    bombs.BOMBS[name](path, GIGABYTE)
    assert os.path.getsize(path) < 4_000_000
    code, seconds, memory, err = _measured("convert", path, "-o", tmp_path / "out.parquet")
    assert code == 3 and err.count("\n") == 1 and "unpacks to" in err and "--large" in err
    # The issue of such files: below 2 s and 300 MB, interpreter and all.
    assert seconds < 2.0 and memory < 300e6
    assert not (tmp_path / "out.parquet").exists()


def test_limits_are_lifted_on_demand(tmp_path):
    path = tmp_path / "rest.csv.gz"
    row = "0.0," * 6 + "0.0\n"
    path.write_bytes(gzip.compress(b"t,q1,q2,q3,a,b,c\n" + row.encode() * 3_000_000))
    with pytest.raises(RecordingError, match="times as much"):
        read_recordings(path)
    with large_files(), pytest.raises(RecordingError, match="does not say what its columns are"):
        read_recordings(path)


def test_ordinary_files_are_far_from_the_limits():
    for unpacked, packed in ((10e6, 10), (1e9, 20e6), (3.9e9, 100e6)):
        require_unpacked_size("file", int(unpacked), int(packed))
    for unpacked, packed in ((1e9, 1e6), (5e9, 5e9)):
        with pytest.raises(TaufitError, match="file has"):
            require_unpacked_size("file", int(unpacked), int(packed))


def test_an_array_that_lies_about_its_size_is_refused(tmp_path):
    path = tmp_path / "lie.npz"
    np.savez(path, q=np.zeros(10))
    data = path.read_bytes().replace(b"(10,)", b"(9" + b"9" * 2 + b"00000000,)"[:1])
    path.write_bytes(data)
    with pytest.raises(RecordingError):
        read_recordings(path)
