"""URScript text -> tokens; line ends are marked, they do not end a statement."""

from __future__ import annotations

import re

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError

# Largest program [characters]; known clients upload at most 50 kB.
MAX_PROGRAM_LENGTH = 1_000_000

_WORDS = (
    "def thread sec end if elif else while return break continue halt pass global local "
    "enter_critical exit_critical kill join run and or xor not True False None"
)
KEYWORDS = frozenset(re.split(" ", _WORDS))
_TOKEN = re.compile(
    r"""[ \t\r]*(?:
    (?P<newline>\n)
  | (?P<comment>\#[^\n]*)
  | (?P<label>\$[^\n]*)
  | (?P<number>(?:\d{1,40}\.?\d{0,60}|\.\d{1,60})(?:[eE][+-]?\d{1,4})?)
  | (?P<text>"[^"\n]*"|'[^'\n]*')
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<sign>==|!=|<=|>=|[-+*/%()\[\],:=<>])
    )""",
    re.VERBOSE,
)


class ScriptError(TaufitError):
    """A program that cannot be run, or that stopped with an error."""


@dataclass(frozen=True, slots=True)
class Token:
    """Token of a program.

    Attributes:
        kind: number, text, name, keyword, sign or end.
        text: Text in the program.
        starts_line: Whether it is the first on its line.
        line: Line number from 1.
    """

    kind: str
    text: str
    starts_line: bool
    line: int


def tokenise(program: str) -> list[Token]:
    """All tokens of a program, and one of kind `end` after them."""
    if len(program) > MAX_PROGRAM_LENGTH:
        raise ScriptError(
            f"the program has {len(program)} characters; {MAX_PROGRAM_LENGTH} at most."
        )
    out: list[Token] = []
    offset, line, starts_line = 0, 1, True
    program = program.rstrip()
    while offset < len(program):
        match = _TOKEN.match(program, offset)
        if match is None:
            raise ScriptError(f"line {line}: {program[offset : offset + 20]!r} cannot be read.")
        offset, kind = match.end(), str(match.lastgroup)
        if kind == "newline":
            line, starts_line = line + 1, True
            continue
        if kind in ("comment", "label"):
            continue
        text = match.group(kind)
        if len(text) > 1024:
            raise ScriptError(f"line {line}: a word of {len(text)} characters.")
        if kind == "name" and text in KEYWORDS:
            kind = "keyword"
        out.append(Token(kind, text, starts_line, line))
        starts_line = False
    return [*out, Token("end", "", True, line)]
