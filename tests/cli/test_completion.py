"""Completion of commands, options and values in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taufit.cli import main
from taufit.cli.completion import candidates

SCRIPTS = {
    "bash": "source {0}; COMP_WORDS=(taufit {1}); COMP_CWORD={2}; _taufit; "
            "printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "zsh": "compdef() {{ :; }}; compadd() {{ print -l -- $candidates; }}; source {0}; "
           "words=(taufit {1}); CURRENT=$(({2} + 1)); _taufit",
    "fish": "source {0}; complete -C 'taufit {1}'",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["fi"], "fit"), (["help", "exp"], "export"), (["fit", "ur10"], "ur10e"),
     (["fit", "ur3", "run.csv", "--hold"], "--holdout"),
     (["fit", "--friction", "stri"], "stribeck"),
     (["export", "m.json", "--format", "u"], "urdf"), (["design", "ur3", "--q"], "--quiet")],
)  # fmt: skip
def test_words_are_completed(words, expected):
    assert expected in candidates(words)
    assert all(word.startswith(words[-1]) for word in candidates(words))


def test_unknown_words_have_no_completion():
    assert candidates(["nothing", "x"]) == candidates(["fit", "ur3", "run"]) == []


@pytest.mark.parametrize("shell", SCRIPTS)
@pytest.mark.parametrize(
    ("words", "expected"), [("expo", "export"), ("fit ur3 --holdout-", "--holdout-map")]
)
def test_a_shell_completes(shell, words, expected, tmp_path, capsys):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with pytest.raises(SystemExit):
        main(["completion", shell])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    line = SCRIPTS[shell].format(script, words, len(words.split()))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", line], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert expected in done.stdout.split(), done.stderr
