"""The blocks of a page and how they are run.

Commands and Python run as they stand, in order, in a folder that holds what `taufit demo --files`
writes. Not run: yaml, text, xml, c and json blocks, and blocks whose title says why, where readers
see it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN_ONLY = {"yaml", "text", "xml", "c", "cpp", "json", "toml", "cmake", "matlab"}
# Titles of blocks that a test cannot run, as readers see them.
NOT_RUN = {
    "needs a robot",
    "needs ROS 2",
    "needs a cluster",
    "sets up or installs",
    "needs the shared recordings",
    "in a checkout",
    "takes minutes",
    "needs Rerun",
}
_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```[ ]*$", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        language: After the fence; commands of taufit need none.
        title: Of the fence, or "".
        text: Between the fences.
        line: Of the page, where it begins.
    """

    language: str
    title: str
    text: str
    line: int


def pages() -> list[Path]:
    """README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """In the order of the page."""
    text = page.read_text("utf-8")
    found = []
    for match in _FENCE.finditer(text):
        title = re.search(r'title="([^"]*)"', match[3])
        body = re.sub(rf"^{match[1]}", "", match[4], flags=re.M)
        line = text.count("\n", 0, match.start()) + 1
        language = match[2] or ("bash" if body.startswith("taufit ") else "text")
        found.append(Block(language, title[1] if title else "", body, line))
    return found


def commands(text: str) -> list[list[str]]:
    """The words of each command; a last word "&" means that it goes on while others run."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = (re.sub(r"&\s*(#.*)?$", " '&'", line) for line in joined.splitlines())
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _globbed(words: list[str]) -> list[str]:
    """Patterns as a shell expands them."""
    out: list[str] = []
    for word in words:
        found = sorted(str(path) for path in Path().glob(word)) if "*" in word else []
        out += found or [word]
    return out


def run_command(words: list[str], background: list[subprocess.Popen[str]]) -> None:
    """In this process where it is taufit, which is how a test can afford so many."""
    if words[0] != "taufit":
        raise AssertionError(
            f"{words[0]}: only taufit's commands run here; give the block a title."
        )
    if words[-1] == "&":
        command = [sys.executable, "-m", "taufit", *words[1:-1]]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        background.append(server)
        assert server.stdout is not None and server.stdout.readline()
        return
    from taufit.cli.app import main

    stop: object = 0
    try:
        main(_globbed(words[1:]))
    except SystemExit as error:
        stop = error.code
    assert stop in (0, None), f"{shlex.join(words)} ended with exit code {stop}"


def run(page: Path, folder: Path, also: tuple[str, ...] = (), only: str = "") -> int:
    """Run a page's blocks in a folder, those with a title in `also` too; returns how many ran.

    With `only`, the blocks of that title alone.
    """
    space: dict[str, object] = {"__name__": "page"}
    background: list[subprocess.Popen[str]] = []
    before, count = Path.cwd(), 0
    os.chdir(folder)
    try:
        for block in blocks(page):
            where = f"{page.relative_to(ROOT)}:{block.line}"
            if block.language in SHOWN_ONLY or block.title in NOT_RUN - {*also, only}:
                continue
            if only and block.title != only:
                continue
            count += 1
            try:
                if block.language == "python":
                    exec(compile(block.text, where, "exec"), space)
                else:
                    for words in commands(block.text):
                        run_command(words, background)
            except Exception as error:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
    finally:
        os.chdir(before)
        for server in background:
            server.terminate()
            server.communicate(timeout=60)
    return count
