"""Freed memory is used again without asking the system for it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from taufit.core.threads import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def work():
    for size in (3, 5, 9):
        parts = [np.ones(size * 2**17) for _ in range(3)]
        del parts
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of the GNU C library")
def test_arrays_that_come_and_go_cause_hardly_any_page_faults():
    def faults(how: str) -> int:
        return int(subprocess.check_output([sys.executable, "-c", FAULTS, how]))

    assert faults("kept") < 0.05 * faults("as it is")
