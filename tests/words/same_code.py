"""Prove that two commits differ only in names, docstrings and comments.

    python -m tests.words.same_code OLD [NEW] [--source src/taufit]
    python -m tests.words.same_code --listed     every commit of .git-blame-ignore-revs

Every file is reduced to a list of tokens. A local name becomes the number of its binding, so local
renames vanish and a captured variable does not. Other names (module level, attributes, keywords)
are compared as pairs: a file must rename a module-level name everywhere, and an imported name must
be the new name of the same definition. Numbers, operators and the order of
statements must be equal. Entries that keep former names working (`RenamedAttribute`,
`renamed_keywords`, the table `_RENAMED` and its look-up) belong to a rename and are left out.

Exit code 0: names and docstrings only; 1: further strings differ or an attribute has two new names,
each listed to be looked at; 2: the code differs.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

PACKAGE = "taufit"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Imports that only serve former names.
_FORMER_IMPORTS = {"RenamedAttribute", "renamed_keywords", "warn"}

Token = tuple[str, ...]


@dataclass
class Scope:
    """Names bound in one function or comprehension, numbered in order of first appearance."""

    number: int
    bound: set[str]
    order: dict[str, int] = field(default_factory=dict)

    def index(self, name: str) -> int:
        return self.order.setdefault(name, len(self.order))


class CodeTokens(ast.NodeVisitor):
    """Tokens of one file; `tokens` is compared exactly, names of the kinds below as pairs."""

    def __init__(self, tree: ast.Module) -> None:
        self.tokens: list[Token] = []
        self.lines: list[int] = []
        self.scopes: list[Scope] = []
        self.imports: dict[str, tuple[str, str]] = {}
        self.foreign: set[tuple[str, str, str]] = set()
        self._count = 0
        self._line = 0
        self._body(tree.body)

    def _add(self, *token: str) -> None:
        self.tokens.append(token)
        self.lines.append(self._line)

    def _name(self, name: str) -> None:
        for scope in reversed(self.scopes):
            if name in scope.bound:
                self._add("local", str(scope.number), str(scope.index(name)))
                return
        self._add("NAME", name)

    def _body(self, body: list[ast.stmt]) -> None:
        if body and _is_docstring(body[0]):
            body = body[1:]
        imports = 0
        for statement in body:
            if _keeps_former_name(statement):
                continue
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports += sum(alias.name not in _FORMER_IMPORTS for alias in statement.names)
                self._import(statement)
            elif _is_all(statement):
                self._add("__all__", str(sum(1 for _ in ast.walk(statement))))
            else:
                self.visit(statement)
        self._add("imports", str(imports))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name in _FORMER_IMPORTS:
                continue
            bound = alias.asname or alias.name
            if module.split(".")[0] == PACKAGE:
                self.imports[bound] = (module, alias.name)
            else:
                self.foreign.add((module, alias.name, bound))

    def _inside(self, node: ast.AST, bound: set[str]) -> Scope:
        self._count += 1
        scope = Scope(self._count, bound)
        self.scopes.append(scope)
        return scope

    def visit(self, node: ast.AST) -> None:
        self._line = getattr(node, "lineno", self._line)
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [part for element in node.elts for part in _unpacked(element)]
        self._add("<", type(node).__name__)
        if isinstance(node, ast.Name):
            self._name(node.id)
        elif isinstance(node, ast.Constant):
            self._add("STRING" if isinstance(node.value, str) else "value", repr(node.value))
        elif isinstance(node, ast.arg):
            self._name(node.arg)
            self._fields(node, skip=("arg",))
        elif isinstance(node, ast.Attribute):
            self._add("ATTRIBUTE", node.attr)
            self._fields(node, skip=("attr",))
        elif isinstance(node, ast.keyword):
            self._add("KEYWORD", node.arg or "**")
            self.visit(node.value)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, _FUNCTIONS):
            self._function(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._inside(node, _targets([part.target for part in node.generators]))
            for part in node.generators:
                self.visit(part)
            self._fields(node, skip=("generators",))
            self.scopes.pop()
        else:
            self._fields(node)
        self._add(">")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                if not _calls(decorator, "renamed_keywords"):
                    self.visit(decorator)
        self._inside(node, _bound(node))
        arguments = node.args
        for kind in ("posonlyargs", "args", "kwonlyargs"):
            self._add("arguments", kind, str(len(getattr(arguments, kind))))
        for argument in _arguments(arguments):
            self.visit(argument)
            self._add("ARGUMENT", argument.arg)
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            if node.returns is not None:
                self.visit(node.returns)
            self._statements(node)
        self.scopes.pop()

    def _statements(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        body = node.body[1:] if _is_docstring(node.body[0]) else node.body
        counted = [s for s in body if not isinstance(s, ast.Import) and not _keeps_former_name(s)]
        self._add("statements", str(len(counted)))
        self._body(node.body)

    def _class(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        for part in node.body:
            if _keeps_former_name(part):
                continue
            if isinstance(part, _DEFINITIONS):
                self._add("ATTRIBUTE", part.name)
                self.visit(part)
            elif isinstance(part, ast.AnnAssign | ast.Assign) and not _is_docstring(part):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                for name in sorted(_targets(targets)):
                    self._add("ATTRIBUTE", name)
                if isinstance(part, ast.AnnAssign):
                    self.visit(part.annotation)
                if part.value is not None:
                    self.visit(part.value)
            elif not _is_docstring(part):
                self.visit(part)

    def _fields(self, node: ast.AST, skip: tuple[str, ...] = ()) -> None:
        for name, value in ast.iter_fields(node):
            if name in skip:
                continue
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                self._add("[", name, str(len(value)))
                self._body(value)
                self._add("]")
            elif isinstance(value, list):
                self._add("[", name, str(len(value)))
                for part in value:
                    if isinstance(part, ast.AST):
                        self.visit(part)
                    else:
                        self._name(str(part))
                self._add("]")
            elif isinstance(value, ast.AST):
                self.visit(value)
            elif name in ("name", "rest") and isinstance(value, str):
                self._name(value)
            elif not isinstance(node, ast.Name):
                self._add("value", name, repr(value))


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _unpacked(node: ast.expr) -> list[ast.expr]:
    """Elements of a literal that is unpacked in place, `*(a, b)`; else the node itself."""
    if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
        return node.value.elts
    return [node]


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _keeps_former_name(node: ast.stmt) -> bool:
    """Whether a statement only makes a former name work: an alias, their table, its look-up."""
    if isinstance(node, ast.Assign):
        return _calls(node.value, "RenamedAttribute") or _targets(node.targets) == {"_RENAMED"}
    if not isinstance(node, ast.If) or node.orelse or ast.unparse(node.test) != "name in _RENAMED":
        return False
    look_up, warning, new_name = [*node.body, None, None, None][:3]
    return (
        len(node.body) == 3
        and ast.unparse(look_up) == "new = _RENAMED[name]"
        and isinstance(warning, ast.Expr)
        and _calls(warning.value, "warn")
        and ast.unparse(new_name) == "name = new"
    )


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and "__all__" in _targets(node.targets)


def _targets(nodes: list[ast.expr]) -> set[str]:
    return {n.id for target in nodes for n in ast.walk(target) if isinstance(n, ast.Name)}


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    further = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *further]


def _bound(function: ast.AST) -> set[str]:
    """Names that a function binds: arguments, assignments, imports, definitions."""
    assert isinstance(function, _FUNCTIONS)
    names, outer = {a.arg for a in _arguments(function.args)}, set()
    stack: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else [*function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            stack += [n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        stack.extend(ast.iter_child_nodes(node))
    return names - outer


@dataclass
class Comparison:
    """Result over all files: differences of code, and places that a person must look at."""

    files: int = 0
    differences: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    definitions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    attributes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    keywords: dict[tuple[str, str], str] = field(default_factory=dict)
    arguments: set[tuple[str, str]] = field(default_factory=set)
    imports: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        if self.differences:
            return 2
        return int(bool(self.strings) or any(len(new) > 1 for new in self.attributes.values()))

    def add(self, place: str, old: str, new: str) -> None:
        """Compare two versions of one file."""
        self.files += 1
        before, after = ast.parse(old), ast.parse(new)
        old_tokens, new_tokens = CodeTokens(before), CodeTokens(after)
        renamed: dict[str, str] = {}
        taken: dict[str, str] = {}
        pairs = zip(old_tokens.tokens, new_tokens.tokens, new_tokens.lines, strict=False)
        for a, b, line in pairs:
            if a[0] != b[0] or (a != b and not a[0].isupper()):
                self.differences.append(f"{place}:{line} {' '.join(a)} became {' '.join(b)}")
                return
            if a[0] == "NAME":
                if renamed.setdefault(a[1], b[1]) != b[1] or taken.setdefault(b[1], a[1]) != a[1]:
                    self.differences.append(f"{place}:{line} {a[1]} became {b[1]}, not everywhere")
                    return
            else:
                self._note(f"{place}:{line}", a, b)
        if len(old_tokens.tokens) != len(new_tokens.tokens):
            self.differences.append(f"{place}: one version has statements that the other has not")
            return
        if old_tokens.foreign != new_tokens.foreign:
            changed = old_tokens.foreign ^ new_tokens.foreign
            self.differences.append(f"{place}: imports differ: {sorted(changed)[:3]}")
        for x, y in zip(_definitions(before), _definitions(after), strict=True):
            self.definitions[x].add(y)
        for bound, (_, name) in old_tokens.imports.items():
            now = renamed.get(bound, bound)
            if now not in new_tokens.imports:
                # A name that is imported and not used here, such as one handed on by a package.
                continue
            self.imports.append((place, name, new_tokens.imports[now][1]))

    def _note(self, place: str, old: Token, new: Token) -> None:
        """Store a pair that only the comparison of all files can judge."""
        if old[0] == "ATTRIBUTE":
            self.attributes[old[1]].add(new[1])
        elif old[0] == "ARGUMENT":
            self.arguments.add((old[1], new[1]))
        elif old[0] == "KEYWORD" and old != new:
            self.keywords[old[1], new[1]] = place
        elif old[0] == "STRING" and old != new:
            self.strings.append(f"{place} {old[1][:70]} became {new[1][:70]}")

    def finish(self) -> None:
        """Check that imported names and keywords are the new names of the same definitions."""
        for (old, new), place in self.keywords.items():
            if (old, new) not in self.arguments and new not in self.attributes.get(old, ()):
                self.differences.append(f"{place} keyword {old} became {new}, no argument did")
        for place, old, new in self.imports:
            if old != new and new not in self.definitions.get(old, {new}):
                self.differences.append(f"{place}: {old} was imported, {new} is another definition")


def _definitions(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, _DEFINITIONS)]


def archive(revision: str, source: str) -> dict[str, str]:
    """Text of every Python file of a commit, by path."""
    data = subprocess.run(
        ["git", "archive", "--format=tar", revision, source], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        return {
            member.name: stream.read().decode()
            for member in files
            if member.name.endswith(".py") and (stream := files.extractfile(member)) is not None
        }


def moves(old: str, new: str, source: str) -> Iterator[tuple[str, str]]:
    """Old and new path of every file that git recognises as moved."""
    listed = subprocess.run(
        ["git", "diff", "--name-status", "-M40", "-l0", old, new, "--", source],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for line in listed.splitlines():
        status, *paths = line.split("\t")
        if status.startswith("R"):
            yield paths[0], paths[1]


def _is_same_code(old: str, new: str) -> bool:
    comparison = Comparison()
    comparison.add("", old, new)
    return not comparison.differences


def compare_revisions(old: str, new: str, source: str) -> Comparison:
    """Compare the Python files under `source` of two commits."""
    before, after = archive(old, source), archive(new, source)
    moved = dict(moves(old, new, source))
    result = Comparison()
    for path in [p for p in before if moved.get(p, p) not in after]:
        # A short file with many new names: git sees no move, the code does.
        candidates = (new for new in after if new not in before and new not in moved.values())
        same = [new for new in candidates if _is_same_code(before[path], after[new])]
        if same:
            moved[path] = same[0]
    for path, text in sorted(before.items()):
        now = moved.get(path, path)
        if now not in after:
            result.differences.append(f"{path} is gone")
        elif text != after[now]:
            result.add(PurePosixPath(now).as_posix(), text, after[now])
        after.pop(now, None)
    result.differences += [f"{path} is new" for path in after]
    result.finish()
    return result


def _compare_listed(source: str) -> int:
    """Compare every commit of .git-blame-ignore-revs with the one before it."""
    lines = Path(".git-blame-ignore-revs").read_text().splitlines()
    commits = [line for line in lines if line and not line.startswith("#")]
    different = 0
    for commit in commits:
        result = compare_revisions(f"{commit}^", commit, source)
        different += bool(result.differences)
        print(f"{commit[:9]} {result.files} files, {len(result.differences)} differ in code")
        for line in result.differences:
            print(f"  {line}")
    print(f"{len(commits)} commits, {different} differ in code")
    return 2 if different else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="?", help="commit before the renames")
    parser.add_argument("new", nargs="?", default="HEAD", help="commit after them [HEAD]")
    parser.add_argument("--source", default=f"src/{PACKAGE}", help="folder [src/taufit]")
    parser.add_argument("--listed", action="store_true", help="every commit that only renames")
    options = parser.parse_args(arguments)
    if options.listed:
        return _compare_listed(options.source)
    if options.old is None:
        parser.error("give a commit, or --listed")
    result = compare_revisions(options.old, options.new, options.source)
    print(f"{result.files} changed files compared, {len(result.differences)} differ in code")
    for line in result.differences:
        print(f"  {line}")
    for old, new in sorted(result.attributes.items()):
        if len(new) > 1:
            print(f"  attribute {old} became {', '.join(sorted(new))}: look at each place")
    for line in result.strings:
        print(f"  string {line}")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
