"""Pages made from the code when the documentation is built: commands, Python names, messages.

MkDocs calls `on_files`; tests call the functions that write the texts.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import taufit
from taufit.cli.app import VERBS, typer_app
from taufit.core import errors

SOURCE = Path(taufit.__file__).parent
# Rooms in the order in which data goes through them.
ROOMS = tuple(
    """robot recording wire signals dynamics friction model regression estimators selection fitting
    excitation calibration temperature signs diagnosis validation payload contact health workflow
    export report sim live fleet papers""".split()  # noqa: SIM905
)


def on_config(config: Any) -> Any:
    """Complete the navigation by the pages of the rooms."""
    sections = {name: entries for part in config.nav for name, entries in part.items()}
    names = [{f"taufit.{room}": f"reference/rooms/{room}.md"} for room in rooms()]
    sections["Reference"].insert(2, {"Python: every module": names})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those that are files."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Pages with commands say where these run."""
    source = page.file.src_uri
    if source.startswith("reference/") or source == "index.md" or not runs(markdown):
        return markdown
    note = (
        "\n*Commands and Python on this page run as they stand in a folder that `taufit demo "
        "--files`{.option} has filled.*\n"
    )
    title, newline, rest = markdown.partition("\n")
    return title + newline + note + rest


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Give the theme's search a name for those who hear the page."""
    search = 'data-md-component="search" role="dialog"'
    return output.replace(search, search + ' aria-label="Search"')


def runs(markdown: str) -> bool:
    """Whether a page has a block that runs."""
    return bool(re.search(r"^```(bash|python)\s*$|^```\ntaufit ", markdown, re.M))


def pages() -> dict[str, str]:
    """{path of a page: its text}."""
    out = {
        "reference/commands.md": command_page(),
        "reference/python.md": first_names_page(),
        "reference/messages.md": message_page(),
    }
    for room in rooms():
        out[f"reference/rooms/{room}.md"] = room_page(room)
    return out


def rooms() -> list[str]:
    """Rooms that exist and have public names, those of the list first."""
    found = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"cli"}
    return [room for room in ROOMS if room in found] + sorted(found - set(ROOMS))


# Commands


def command_page() -> str:
    """Every verb with its arguments and options."""
    parts = [
        "# Commands\n",
        "Results go to stdout, progress to stderr. `--json` prints one JSON object and nothing "
        "else. Exit codes: 0 done, 1 verdict FAIL or result refused, 2 wrong usage, 3 the input "
        "cannot be used, 130 interrupted. "
        "`--large`, which goes with any verb, lifts the size limits of files.\n",
    ]
    parts += [f"## taufit {verb}\n\n{_command(verb)}" for verb in VERBS]
    return "\n".join(parts)


def _command(verb: str) -> str:
    import typer

    command = typer.main.get_command(typer_app(verb))
    inner = getattr(command, "commands", None)
    if inner:
        parts = [_plain(command.help)]
        for name, one in inner.items():
            parts.append(f"### taufit {verb} {name}\n\n{_one_command(one)}")
        return "\n\n".join(parts) + "\n"
    return _one_command(command)


def _one_command(command: Any) -> str:
    rows = []
    for option in command.params:
        if option.name == "help" or option.hidden:
            continue
        text = _cell(getattr(option, "help", None) or "")
        if option.param_type_name == "argument":
            name = f"`{option.metavar or option.name.upper()}`"
        else:
            name = ", ".join(f"`{word}`{{.option}}" for word in option.opts)
            if not option.is_flag:
                name += f" {_cell(option.metavar or option.name.upper())}"
        default = option.default
        shown = default not in (None, False, (), []) and not callable(default)
        rows.append(f"| {name} | {text} | {f'`{_cell(str(default))}`' if shown else ''} |")
    table = "\n".join(["| option | meaning | default |", "| --- | --- | --- |", *rows])
    last = f"\n\n{_plain(command.epilog)}" if command.epilog else ""
    return f"{_plain(command.help)}\n\n{table}{last}\n"


def _plain(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\b", "").replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# Python


def first_names_page() -> str:
    """The names at the top of the package."""
    head = (
        "# Python: the first names\n\n`import taufit` gives these; every one has an example that a "
        "test runs. Friction models, estimators and the steps in between are also there by name "
        "(`taufit.Stribeck`, `taufit.Wls`, ...); the pages after this one have all of them.\n"
    )
    return head + "".join(_entry(name, getattr(taufit, name), "taufit") for name in taufit.__all__)


def room_page(room: str) -> str:
    """The public names of one room."""
    module = importlib.import_module(f"taufit.{room}")
    head = f"# taufit.{room}\n\n{_plain(module.__doc__)}\n"
    return head + "".join(
        _entry(name, getattr(module, name), module.__name__) for name in public(module)
    )


def public(module: Any) -> list[str]:
    """Names a room lists, or else those that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("__")]
    return [n for n, v in vars(module).items() if not n.startswith("_") and inspect.isclass(v)]


def _entry(name: str, noun: Any, owner: str) -> str:
    if inspect.isclass(noun) or inspect.isroutine(noun):
        words = f"```python\n{owner}.{name}{_signature(noun)}\n```\n\n{_docstring(noun)}\n"
        if inspect.isclass(noun):
            words += _members(noun)
    elif isinstance(noun, dict):
        words = f"Names: {', '.join(f'`{key}`' for key in noun)}.\n"
    else:
        words = f"A value of type `{type(noun).__name__}`.\n"
    return f"\n## {name}\n\n{words}"


def _signature(noun: Any) -> str:
    """Call with types, one parameter per line where it is long."""
    try:
        signature = inspect.signature(noun)
    except (TypeError, ValueError):
        return "(...)"
    parts = []
    keyword_only = False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        keyword_only = keyword_only or one.kind is one.VAR_POSITIONAL
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        words = f"{stars}{one.name}"
        if one.annotation is not one.empty:
            words += f": {_annotation(one.annotation)}"
        if one.default is not one.empty:
            default = repr(one.default)
            words += " = " + (default if len(default) <= 30 and " at 0x" not in default else "...")
        parts.append(words)
    result = ""
    if signature.return_annotation is not signature.empty and not inspect.isclass(noun):
        result = f" -> {_annotation(signature.return_annotation)}"
    line = f"({', '.join(parts)}){result}"
    if len(line) <= 70:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def _annotation(kind: Any) -> str:
    """Type as it is written; shapes of arrays without their quotes."""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return re.sub(r"\b(?:taufit\.[\w.]+|collections\.abc|pathlib)\.(?=[A-Z])", "", text)


def _members(noun: type) -> str:
    rows = []
    for name, member in vars(noun).items():
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if name.startswith("_") or not inspect.isfunction(inner):
            continue
        text = (inspect.getdoc(inner) or "").partition("\n\n")[0]
        call = "" if isinstance(member, property) else "()"
        rows.append(f"| `{name}{call}` | {_cell(text)} |")
    return "\n".join(["\n| | |", "| --- | --- |", *rows, ""]) if rows else ""


def _docstring(noun: Any) -> str:
    """A docstring as Markdown: arguments as a list, formulas and examples as blocks."""
    text = inspect.getdoc(noun) or ""
    out: list[str] = []
    for paragraph in text.split("\n\n"):
        head, _, body = paragraph.partition("\n")
        if head in ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:"):
            out.append(f"**{head[:-1]}**\n\n{_list(inspect.cleandoc(body))}")
        elif head == "Example:":
            out.append(f"```text\n{inspect.cleandoc(body)}\n```")
        elif paragraph.startswith("    "):
            out.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
        else:
            out.append(paragraph.replace("<", "&lt;"))
    return "\n\n".join(out) + "\n"


def _list(body: str) -> str:
    items: list[str] = []
    for line in body.splitlines():
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        else:
            items.append(line)
    shown = (re.sub(r"^([\w, *]+):", r"`\1`:", item) for item in items)
    return "\n".join(f"- {item}" for item in shown).replace("<", "&lt;")


# Messages


def error_classes() -> dict[str, type]:
    """Every error a user can see, by name."""
    for path in SOURCE.rglob("*.py"):
        if re.search(r"^class \w+Error\(", path.read_text("utf-8"), re.M):
            name = ".".join(("taufit", *path.relative_to(SOURCE).with_suffix("").parts))
            importlib.import_module(name.removesuffix(".__init__"))
    found, queue = {}, [errors.TaufitError]
    while queue:
        one = queue.pop()
        found[one.__name__] = one
        queue += one.__subclasses__()
    ours = {n: c for n, c in found.items() if c.__module__.startswith("taufit")}
    return dict(sorted(ours.items()))


def finding_kinds() -> set[str]:
    """Kinds of findings that are written down in the code."""
    kinds = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _called(node) == "Finding" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    kinds.add(str(first.value))
    return kinds


def messages() -> Iterator[tuple[str, str, str]]:
    """(error, room, message) of every place where one is raised; "..." stands for what varies."""
    known = {*error_classes(), "BadParameter"}
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = _called(node)
            if name in ("refuse", "wrong", "missing_extra"):
                kind = {"missing_extra": "MissingExtraError", "wrong": "BadParameter"}
                yield kind.get(name, "RobotError"), room, _said(node.args[-1:])
            elif name in known:
                yield name, room, _said(node.args[:1])


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def _said(arguments: list[ast.expr]) -> str:
    if not arguments:
        return "..."
    (said,) = arguments
    if isinstance(said, ast.Constant):
        return str(said.value)
    if isinstance(said, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else "..." for p in said.values]
        return "".join(str(part) for part in parts)
    if isinstance(said, ast.BinOp):
        return _said([said.left]) + _said([said.right])
    return "..."


def message_page() -> str:
    """Every message with the error it belongs to and the room that raises it."""
    by_kind: dict[str, set[tuple[str, str]]] = {}
    for kind, room, text in messages():
        if text.strip(". "):
            by_kind.setdefault(kind, set()).add((text, room))
    parts = [
        "# Every message\n",
        "What was found, what was expected, what to do next; `...` stands for what varies. Causes "
        "and remedies by kind: [Troubleshooting](../troubleshooting.md).\n",
    ]
    for kind in sorted(by_kind):
        title = "Wrong usage (exit code 2)" if kind == "BadParameter" else kind
        rows = sorted(by_kind[kind])
        table = "\n".join(f"| {_cell(text)} | {room} |" for text, room in rows)
        parts.append(f"## {title}\n\n| message | room |\n| --- | --- |\n{table}\n")
    return "\n".join(parts)
