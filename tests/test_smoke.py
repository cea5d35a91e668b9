"""The command line answers at all."""

import subprocess
import sys


def test_help_lists_the_verbs():
    out = subprocess.run(
        [sys.executable, "-m", "taufit", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "inspect" in out and "fit" in out
