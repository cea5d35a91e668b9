"""`taufit completion`: scripts that complete commands, options and values in a shell."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from taufit.cli.options import require_choice

_SCRIPTS = {
    "bash": """_taufit() {
    local IFS=$'\\n'
    COMPREPLY=($(taufit completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o bashdefault -F _taufit taufit""",
    "zsh": """#compdef taufit
_taufit() {
    local -a candidates
    candidates=("${(@f)$(taufit completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${candidates[*]}" ]]; then compadd -a candidates; else _files; fi
}
compdef _taufit taufit""",
    "fish": """function __taufit_complete
    set -l typed (commandline -opc) (commandline -ct)
    taufit completion words -- $typed[2..-1] 2>/dev/null
end
complete -c taufit -a '(__taufit_complete)'""",
}


def command(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
    words: Annotated[
        list[str] | None, typer.Argument(help="Words typed so far.", hidden=True)
    ] = None,
) -> None:
    """Print the completion script of a shell.

    \b
    bash: taufit completion bash > \\
            ~/.local/share/bash-completion/completions/taufit
    zsh:  eval "$(taufit completion zsh)"
            as a line of ~/.zshrc, after compinit
    fish: taufit completion fish > \\
            ~/.config/fish/completions/taufit.fish

    Next: open a new shell and type `taufit fi`, then the Tab key.
    """
    if shell == "words":
        print("\n".join(candidates(words or [])))
        return
    print(_SCRIPTS[require_choice(shell, _SCRIPTS, "SHELL")])


def candidates(words: list[str]) -> list[str]:
    """Completions of the last word: commands, options, values of options, bundled robots."""
    from taufit.cli.app import VERBS

    *before, current = words or [""]
    if not before or before == ["help"]:
        return [verb for verb in (*VERBS, "help") if verb.startswith(current)]
    if before[0] not in VERBS:
        return []
    options = _options(before[0])
    values = _values(before[-1])
    if values:
        return [value for value in values if value.startswith(current)]
    if current.startswith("-"):
        return [option for option in options if option.startswith(current)]
    if len(before) == 1 and before[0] in _ROBOT_COMMANDS:
        from taufit.robot import bundled_robots

        return [name for name in bundled_robots(trees=True) if name.startswith(current)]
    return []


_ROBOT_COMMANDS = ("inspect", "design", "simulate", "gains", "friction", "fit", "servo", "fleet")


def _options(verb: str) -> list[str]:
    from taufit.cli.app import typer_app

    command: Any = typer.main.get_command(typer_app(verb))
    parameters = [p for p in command.params if not getattr(p, "hidden", False)]
    names = [name for p in parameters for name in (*p.opts, *p.secondary_opts)]
    general = ["--help", "--quiet", "--overwrite", "--large"]
    return sorted({name for name in names if name.startswith("--")} | set(general))


def _values(option: str) -> list[str]:
    """Values of an option with names; empty for others."""
    if option == "--friction":
        from taufit.terms.friction import FRICTION_MODELS

        return ["auto", "none", *FRICTION_MODELS]
    if option == "--estimator":
        from taufit.estimators import ESTIMATORS

        return ["auto", *ESTIMATORS]
    if option == "--format":
        from taufit.export import EXPORTS

        return [*EXPORTS]
    return ["ground", "ceiling", "wall"] if option == "--mounting" else []
