"""Tokens -> syntax tree of frozen nodes."""

from __future__ import annotations

from collections.abc import Callable

from taufit.core.dataclasses import dataclass
from taufit.virtual.urscript.lexer import ScriptError, Token, tokenise

# Largest nesting depth, since the tree is walked recursively.
MAX_NESTING = 40


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
class ListExpression:
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
    """Unary operator with its operand."""

    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary operator with its operands."""

    operator: str
    left: Expression
    right: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function."""

    name: str
    positional: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class StartThread:
    """Thread start: run f(...)."""

    name: str
    positional: tuple[Expression, ...]
    line: int


Expression = Literal | Name | ListExpression | Index | Unary | Binary | Call | StartThread


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

    branches: tuple[tuple[Expression, tuple[Statement, ...]], ...]
    else_body: tuple[Statement, ...]


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
class KeywordStatement:
    """Keyword statement: break, continue, halt, pass, enter_critical, exit_critical."""

    word: str
    line: int


@dataclass(frozen=True, slots=True)
class ThreadStatement:
    """Thread statement: kill h, join h."""

    word: str
    handle: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    """Assignment to a variable or list element."""

    scope: str
    target: Name | Index
    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class ExpressionStatement:
    """Expression evaluated for its effect."""

    value: Expression
    line: int


Statement = (
    Define | If | While | Return | KeywordStatement | ThreadStatement | Assign | ExpressionStatement
)

_OPENING = ("def", "thread", "sec", "if", "while")


def parse_program(program: str) -> tuple[Statement, ...]:
    """Parse a program to its syntax tree."""
    parser = _Parser(tokenise(program))
    out: list[Statement] = []
    while parser.current.kind != "end":
        out.append(parser.statement())
    return tuple(out)


def is_complete(text: str) -> bool:
    """Whether received text is a complete program: every block has its end."""
    if not text.endswith("\n"):
        return False
    depth, has_tokens = 0, False
    try:
        for token in tokenise(text):
            if token.kind == "end":
                break
            has_tokens = True
            if token.kind == "keyword":
                depth += (token.text in _OPENING) - (token.text == "end")
    except ScriptError:
        # The parser reports the error.
        return True
    return has_tokens and depth <= 0


class _Parser:
    def __init__(self, tokens_: list[Token]) -> None:
        self.tokens, self.position, self.depth = tokens_, 0, 0

    @property
    def current(self) -> Token:
        return self.tokens[self.position]

    def is_next(self, *texts: str) -> bool:
        return self.current.kind in ("keyword", "sign") and self.current.text in texts

    def take(self, text: str) -> Token:
        if not self.is_next(text):
            text_found = self.current.text or "the end of the program"
            raise ScriptError(f"line {self.current.line}: {text!r} expected, found {text_found!r}.")
        return self.next()

    def next(self) -> Token:
        token = self.current
        if token.kind != "end":
            self.position += 1
        return token

    def name(self) -> str:
        if self.current.kind != "name":
            text_found = self.current.text or "the end of the program"
            raise ScriptError(f"line {self.current.line}: a name expected, found {text_found!r}.")
        return self.next().text

    def deeper(self, step: int) -> None:
        self.depth += step
        if self.depth > MAX_NESTING:
            raise ScriptError(
                f"line {self.current.line}: nested more than {MAX_NESTING} levels deep; split it "
                "up."
            )

    # Statements.

    def statement(self) -> Statement:
        self.deeper(1)
        try:
            word = self.current.text if self.current.kind == "keyword" else ""
            special = _STATEMENTS.get(word)
            return self.expression_statement() if special is None else special(self)
        finally:
            self.deeper(-1)

    def expression_statement(self) -> Statement:
        line = self.current.line
        value = self.expression()
        if not self.is_next("="):
            return ExpressionStatement(value, line)
        self.next()
        if not isinstance(value, (Name, Index)):
            raise ScriptError(f"line {line}: only names and elements of lists can be assigned to.")
        return Assign("", value, self.expression(), line)

    def define(self) -> Define:
        line, kind = self.current.line, self.next().text
        name = self.name()
        self.take("(")
        parameters: list[tuple[str, Expression | None]] = []
        while not self.is_next(")"):
            parameter, value = self.name(), None
            if self.is_next("="):
                self.next()
                value = self.expression()
            if parameter in [existing for existing, _ in parameters]:
                raise ScriptError(f"line {line}: {name} has two parameters {parameter!r}.")
            parameters.append((parameter, value))
            if not self.is_next(")"):
                self.take(",")
        self.take(")")
        self.take(":")
        body = self.block()
        self.take("end")
        return Define(kind, name, tuple(parameters), body, line)

    def block(self) -> tuple[Statement, ...]:
        out: list[Statement] = []
        while not self.is_next("end", "elif", "else"):
            if self.current.kind == "end":
                raise ScriptError(f"line {self.current.line}: the program ends inside a block.")
            out.append(self.statement())
        return tuple(out)

    def if_(self) -> If:
        arms: list[tuple[Expression, tuple[Statement, ...]]] = []
        while True:
            self.next()
            condition = self.expression()
            self.take(":")
            arms.append((condition, self.block()))
            if not self.is_next("elif"):
                break
        otherwise: tuple[Statement, ...] = ()
        if self.is_next("else"):
            self.next()
            if self.is_next(":"):
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
        has_no_value = self.current.starts_line or self.is_next("end", "elif", "else")
        return Return(None if has_no_value else self.expression())

    def word(self) -> KeywordStatement:
        token = self.next()
        return KeywordStatement(token.text, token.line)

    def thread_statement(self) -> ThreadStatement:
        return ThreadStatement(self.next().text, self.expression())

    def scoped_assignment(self) -> Assign:
        token = self.next()
        line = self.current.line
        name = self.name()
        value: Expression = Literal(0)
        if self.is_next("="):
            self.next()
            value = self.expression()
        return Assign(token.text, Name(name, line), value, line)

    # Expressions, loosest first.

    def expression(self) -> Expression:
        self.deeper(1)
        try:
            return self.chain(self.conjunction, ("or", "xor"))
        finally:
            self.deeper(-1)

    def conjunction(self) -> Expression:
        return self.chain(self.negation, ("and",))

    def negation(self) -> Expression:
        if self.is_next("not"):
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
        return self.chain(self.unary, ("*", "/", "%"))

    def unary(self) -> Expression:
        if self.is_next("-", "+"):
            sign = self.next().text
            self.deeper(1)
            try:
                value = self.unary()
            finally:
                self.deeper(-1)
            return Unary("-", value) if sign == "-" else value
        return self.element()

    def chain(self, inner: Callable[[], Expression], signs: tuple[str, ...]) -> Expression:
        left, links = inner(), 0
        while self.is_next(*signs):
            # A long sum is a deep tree.
            links += 1
            if links > 200:
                raise ScriptError(
                    f"line {self.current.line}: an expression of more than 200 terms."
                )
            sign = self.next()
            left = Binary(sign.text, left, inner(), sign.line)
        return left

    def element(self) -> Expression:
        out = self.atom()
        links = 0
        while not self.current.starts_line and self.is_next("(", "["):
            links += 1
            if links > 8:
                raise ScriptError(f"line {self.current.line}: too many indices in a row.")
            line = self.current.line
            if self.next().text == "[":
                items = self.items("]")
                if isinstance(out, Name) and out.name == "p" and len(items) == 6:
                    out = ListExpression(items, pose=True)
                else:
                    out = Index(out, items, line)
            else:
                if not isinstance(out, Name):
                    raise ScriptError(f"line {line}: only a name can be called.")
                out = self.call(out.name, line)
        return out

    def call(self, name: str, line: int) -> Call:
        positional: list[Expression] = []
        keywords: list[tuple[str, Expression]] = []
        while not self.is_next(")"):
            next_token = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
            if self.current.kind == "name" and next_token.kind == "sign" and next_token.text == "=":
                parameter = self.name()
                self.next()
                keywords.append((parameter, self.expression()))
            else:
                positional.append(self.expression())
            if not self.is_next(")"):
                self.take(",")
        self.take(")")
        return Call(name, tuple(positional), tuple(keywords), line)

    def items(self, closing: str) -> tuple[Expression, ...]:
        out: list[Expression] = []
        while not self.is_next(closing):
            out.append(self.expression())
            if not self.is_next(closing):
                self.take(",")
        self.take(closing)
        return tuple(out)

    def atom(self) -> Expression:
        token = self.next()
        if token.kind == "number":
            is_integer = token.text.isdigit() and len(token.text) <= 10
            return Literal(int(token.text) if is_integer else float(token.text))
        if token.kind == "text":
            return Literal(token.text[1:-1])
        if token.kind == "name":
            return Name(token.text, token.line)
        if token.text in _CONSTANTS and token.kind == "keyword":
            return Literal(_CONSTANTS[token.text])
        if token.kind == "keyword" and token.text == "run":
            name = self.name()
            self.take("(")
            return StartThread(name, self.items(")"), token.line)
        if token.kind == "sign" and token.text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if token.kind == "sign" and token.text == "[":
            return ListExpression(self.items("]"))
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
    **dict.fromkeys(("kill", "join"), _Parser.thread_statement),
    **dict.fromkeys(("global", "local"), _Parser.scoped_assignment),
}
