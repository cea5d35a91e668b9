"""Tokens -> syntax tree: plain frozen nodes, no Python code anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from taufit.virtual.urscript.lexer import ScriptError, Token, tokens

# Deeper nesting is refused: the tree is walked by recursion.
DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text or truth value."""

    value: float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, or a pose."""

    items: tuple[Expression, ...]
    pose: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An element of a list."""

    target: Expression
    items: tuple[Expression, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Unary:
    """An operator before its operand."""

    sign: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between its operands."""

    sign: str
    left: Expression
    right: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    name: str
    given: tuple[Expression, ...]
    named: tuple[tuple[str, Expression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Start:
    """run f(...): a thread."""

    name: str
    given: tuple[Expression, ...]
    line: int


Expression = Literal | Name | ListOf | Index | Unary | Binary | Call | Start


@dataclass(frozen=True, slots=True)
class Define:
    """A definition of a function or thread."""

    kind: str
    name: str
    parameters: tuple[tuple[str, Expression | None], ...]
    body: tuple[Statement, ...]
    line: int


@dataclass(frozen=True, slots=True)
class If:
    """Branches with their conditions."""

    arms: tuple[tuple[Expression, tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class While:
    """A loop."""

    condition: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Return:
    """A return with its value."""

    value: Expression | None


@dataclass(frozen=True, slots=True)
class Word:
    """break, continue, halt, pass, enter_critical, exit_critical."""

    word: str
    line: int


@dataclass(frozen=True, slots=True)
class ThreadOrder:
    """kill h, join h."""

    word: str
    handle: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    """A value given to a variable."""

    scope: str
    target: Name | Index
    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Do:
    """An expression for its effect."""

    value: Expression
    line: int


Statement = Define | If | While | Return | Word | ThreadOrder | Assign | Do

_OPENING = ("def", "thread", "sec", "if", "while")


def parse(program: str) -> tuple[Statement, ...]:
    """The syntax tree of a program."""
    parser = _Parser(tokens(program))
    out: list[Statement] = []
    while parser.now.kind != "end":
        out.append(parser.statement())
    return tuple(out)


def complete(text: str) -> bool:
    """Whether text that arrives piece by piece is a whole program: every block has its end."""
    if not text.endswith("\n"):
        return False
    depth, some = 0, False
    try:
        for token in tokens(text):
            if token.kind == "end":
                break
            some = True
            if token.kind == "keyword":
                depth += (token.text in _OPENING) - (token.text == "end")
    except ScriptError:
        # Parsing will say what is wrong with it.
        return True
    return some and depth <= 0


class _Parser:
    def __init__(self, words: list[Token]) -> None:
        self.words, self.at, self.depth = words, 0, 0

    @property
    def now(self) -> Token:
        return self.words[self.at]

    def sees(self, *texts: str) -> bool:
        return self.now.kind in ("keyword", "sign") and self.now.text in texts

    def take(self, text: str) -> Token:
        if not self.sees(text):
            found = self.now.text or "the end of the program"
            raise ScriptError(f"line {self.now.line}: {text!r} expected, found {found!r}.")
        return self.next()

    def next(self) -> Token:
        token = self.now
        if token.kind != "end":
            self.at += 1
        return token

    def name(self) -> str:
        if self.now.kind != "name":
            found = self.now.text or "the end of the program"
            raise ScriptError(f"line {self.now.line}: a name expected, found {found!r}.")
        return self.next().text

    def deeper(self, step: int) -> None:
        self.depth += step
        if self.depth > DEEPEST:
            raise ScriptError(
                f"line {self.now.line}: nested more than {DEEPEST} levels deep; split it up."
            )

    # Statements.

    def statement(self) -> Statement:
        self.deeper(1)
        try:
            word = self.now.text if self.now.kind == "keyword" else ""
            special = _STATEMENTS.get(word)
            return self.plain() if special is None else special(self)
        finally:
            self.deeper(-1)

    def plain(self) -> Statement:
        line = self.now.line
        value = self.expression()
        if not self.sees("="):
            return Do(value, line)
        self.next()
        if not isinstance(value, (Name, Index)):
            raise ScriptError(f"line {line}: only names and elements of lists can be assigned to.")
        return Assign("", value, self.expression(), line)

    def define(self) -> Define:
        line, kind = self.now.line, self.next().text
        name = self.name()
        self.take("(")
        parameters: list[tuple[str, Expression | None]] = []
        while not self.sees(")"):
            parameter, value = self.name(), None
            if self.sees("="):
                self.next()
                value = self.expression()
            if parameter in [known for known, _ in parameters]:
                raise ScriptError(f"line {line}: {name} has two parameters {parameter!r}.")
            parameters.append((parameter, value))
            if not self.sees(")"):
                self.take(",")
        self.take(")")
        self.take(":")
        body = self.block()
        self.take("end")
        return Define(kind, name, tuple(parameters), body, line)

    def block(self) -> tuple[Statement, ...]:
        out: list[Statement] = []
        while not self.sees("end", "elif", "else"):
            if self.now.kind == "end":
                raise ScriptError(f"line {self.now.line}: the program ends inside a block.")
            out.append(self.statement())
        return tuple(out)

    def if_(self) -> If:
        arms: list[tuple[Expression, tuple[Statement, ...]]] = []
        while True:
            self.next()
            condition = self.expression()
            self.take(":")
            arms.append((condition, self.block()))
            if not self.sees("elif"):
                break
        otherwise: tuple[Statement, ...] = ()
        if self.sees("else"):
            self.next()
            if self.sees(":"):
                self.next()
            otherwise = self.block()
        self.take("end")
        return If(tuple(arms), otherwise)

    def while_(self) -> While:
        self.next()
        condition = self.expression()
        self.take(":")
        body = self.block()
        self.take("end")
        return While(condition, body)

    def return_(self) -> Return:
        self.next()
        bare = self.now.fresh or self.sees("end", "elif", "else")
        return Return(None if bare else self.expression())

    def word(self) -> Word:
        token = self.next()
        return Word(token.text, token.line)

    def order(self) -> ThreadOrder:
        return ThreadOrder(self.next().text, self.expression())

    def scoped(self) -> Assign:
        token = self.next()
        line = self.now.line
        name = self.name()
        value: Expression = Literal(0)
        if self.sees("="):
            self.next()
            value = self.expression()
        return Assign(token.text, Name(name, line), value, line)

    # Expressions, loosest first.

    def expression(self) -> Expression:
        self.deeper(1)
        try:
            return self.chain(self.both, ("or", "xor"))
        finally:
            self.deeper(-1)

    def both(self) -> Expression:
        return self.chain(self.negation, ("and",))

    def negation(self) -> Expression:
        if self.sees("not"):
            self.next()
            self.deeper(1)
            try:
                return Unary("not", self.negation())
            finally:
                self.deeper(-1)
        return self.chain(self.sum, ("==", "!=", "<", ">", "<=", ">="))

    def sum(self) -> Expression:
        return self.chain(self.product, ("+", "-"))

    def product(self) -> Expression:
        return self.chain(self.signed, ("*", "/", "%"))

    def signed(self) -> Expression:
        if self.sees("-", "+"):
            sign = self.next().text
            self.deeper(1)
            try:
                value = self.signed()
            finally:
                self.deeper(-1)
            return Unary("-", value) if sign == "-" else value
        return self.element()

    def chain(self, inner: Callable[[], Expression], signs: tuple[str, ...]) -> Expression:
        left, links = inner(), 0
        while self.sees(*signs):
            # A long sum is a deep tree.
            links += 1
            if links > 200:
                raise ScriptError(f"line {self.now.line}: an expression of more than 200 terms.")
            sign = self.next()
            left = Binary(sign.text, left, inner(), sign.line)
        return left

    def element(self) -> Expression:
        out = self.atom()
        links = 0
        while not self.now.fresh and self.sees("(", "["):
            links += 1
            if links > 8:
                raise ScriptError(f"line {self.now.line}: too many indices in a row.")
            line = self.now.line
            if self.next().text == "[":
                items = self.items("]")
                if isinstance(out, Name) and out.name == "p" and len(items) == 6:
                    out = ListOf(items, pose=True)
                else:
                    out = Index(out, items, line)
            else:
                if not isinstance(out, Name):
                    raise ScriptError(f"line {line}: only a name can be called.")
                out = self.call(out.name, line)
        return out

    def call(self, name: str, line: int) -> Call:
        given: list[Expression] = []
        named: list[tuple[str, Expression]] = []
        while not self.sees(")"):
            ahead = self.words[min(self.at + 1, len(self.words) - 1)]
            if self.now.kind == "name" and ahead.kind == "sign" and ahead.text == "=":
                parameter = self.name()
                self.next()
                named.append((parameter, self.expression()))
            else:
                given.append(self.expression())
            if not self.sees(")"):
                self.take(",")
        self.take(")")
        return Call(name, tuple(given), tuple(named), line)

    def items(self, closing: str) -> tuple[Expression, ...]:
        out: list[Expression] = []
        while not self.sees(closing):
            out.append(self.expression())
            if not self.sees(closing):
                self.take(",")
        self.take(closing)
        return tuple(out)

    def atom(self) -> Expression:
        token = self.next()
        if token.kind == "number":
            whole = token.text.isdigit() and len(token.text) <= 10
            return Literal(int(token.text) if whole else float(token.text))
        if token.kind == "text":
            return Literal(token.text[1:-1])
        if token.kind == "name":
            return Name(token.text, token.line)
        if token.text in _CONSTANTS and token.kind == "keyword":
            return Literal(_CONSTANTS[token.text])
        if token.kind == "keyword" and token.text == "run":
            name = self.name()
            self.take("(")
            return Start(name, self.items(")"), token.line)
        if token.kind == "sign" and token.text == "(":
            inside = self.expression()
            self.take(")")
            return inside
        if token.kind == "sign" and token.text == "[":
            return ListOf(self.items("]"))
        raise ScriptError(
            f"line {token.line}: {token.text or 'the end of the program'!r} is out of place."
        )


_CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}
_STATEMENTS: dict[str, Callable[[_Parser], Statement]] = {
    **dict.fromkeys(("def", "thread", "sec"), _Parser.define),
    "if": _Parser.if_,
    "while": _Parser.while_,
    "return": _Parser.return_,
    **dict.fromkeys(
        ("break", "continue", "halt", "pass", "enter_critical", "exit_critical"), _Parser.word
    ),
    **dict.fromkeys(("kill", "join"), _Parser.order),
    **dict.fromkeys(("global", "local"), _Parser.scoped),
}
