"""The command as a process: pipes, closed streams, full disks, odd terminals, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "taufit"]
TEXT = ["inspect", "ur3"]
JSON = ["inspect", "ur3", "--json"]


def shell(words, redirection, **env):
    """Exit code, stdout, stderr of a command with a redirection of the shell."""
    line = f'exec "$@" {redirection}'
    ran = subprocess.run(
        ["/bin/sh", "-c", line, "sh", *COMMAND, *words],
        capture_output=True,
        env={**os.environ, **env},
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr.decode()


@pytest.mark.parametrize("words", [TEXT, JSON, ["--help"], ["fit", "--help"]])
def test_a_reader_that_leaves_early_is_no_error(words):
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.close()
        assert p.stderr.read() == b""
        assert p.wait(60) == 0


@pytest.mark.parametrize("words", [TEXT, JSON, ["--help"], ["--version"]])
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_cannot_be_delivered_is_one_sentence(words, redirection, reason):
    code, out, err = shell(words, redirection)
    assert (code, out, err) == (3, b"", f"taufit: standard output: {reason}.\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_error_without_a_place_to_go_changes_nothing(redirection):
    assert shell(["inspect", "nosuch"], redirection) == (3, b"", "")
    assert shell(["nosuch"], redirection) == (2, b"", "")
    assert shell(["inspect", "--nosuch"], redirection) == (2, b"", "")


def test_all_streams_closed_writes_the_file_and_fails_for_the_words(tmp_path):
    output = tmp_path / "motion.json"
    words = ["design", "ur3", "--seconds", "0.1", "--free-space", "-o", str(output)]
    code, _, _ = shell(words, "<&- >&- 2>&-")
    assert code == 3
    assert output.read_text().startswith("{") and output.read_text().endswith("}\n")


@pytest.mark.parametrize("columns", ["0", "-1", "", "x", "1", "9" * 30, "99999999"])
def test_an_impossible_width_is_ignored(columns):
    code, out, err = shell(TEXT, "", COLUMNS=columns, LINES=columns)
    assert code == 0 and err == "" and b"base parameters" in out and len(out) < 100_000


@pytest.mark.parametrize("locale", ["C", "POSIX", "nosuch", ""])
def test_no_locale_is_needed(locale):
    code, out, err = shell(TEXT, "", LC_ALL=locale, LANG=locale, PYTHONUTF8="0")
    assert code == 0 and err == "" and len(out) > 1000


def test_a_home_that_cannot_be_written_does_not_matter(tmp_path):
    code, _, err = shell(TEXT, "", HOME="/nonexistent", XDG_CACHE_HOME="/proc", TMPDIR="/proc")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_undoes_what_is_under_way(tmp_path, number):
    target = tmp_path / "a.json"
    target.write_text("old")
    code = (
        "import sys, time\n"
        "import taufit.cli.app as app\n"
        "from taufit.core.files import replace_file\n"
        "def slow(arguments):\n"
        "    with replace_file(sys.argv[1]) as t:\n"
        "        t.write_text('half')\n"
        "        print('now', flush=True)\n"
        "        while True: time.sleep(0.01)\n"
        "app._run_command = slow\n"
        "app.main([])\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, target], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout.readline() == b"now\n"
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 128 + number and b"Traceback" not in err
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["a.json"]


def test_what_nohup_switched_off_stays_off(tmp_path):
    code = (
        "import os, signal\n"
        "import taufit.cli.app as app\n"
        "app._run_command = lambda _: os.kill(os.getpid(), signal.SIGHUP)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "app.main([])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
