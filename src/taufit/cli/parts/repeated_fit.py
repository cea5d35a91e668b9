"""Repetition of a fit: the arguments that a model file records, and `taufit fit --again MODEL`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from taufit.core.errors import TaufitError

# Arguments of the running `taufit fit`, without those of `_OUTPUTS`.
fit_arguments: ContextVar[tuple[str, ...]] = ContextVar("fit_arguments", default=())
# Options about results, which are not repeated, and whether they have a value.
_OUTPUTS = {
    "-o": True,
    "--output": True,
    "--report": True,
    "--write-map": True,
    "--mend": True,
    "--apply-remedy": False,
    "--json": False,
}
_AGAIN = "--again"


def expand_again(arguments: list[str]) -> list[str]:
    """Arguments with those of the model after --again in front, and remember them.

    Options that follow replace the recorded ones.
    """
    if _AGAIN in arguments[:-1]:
        model = arguments[arguments.index(_AGAIN) + 1]
        arguments = [*_recorded_arguments(Path(model)), *arguments]
    fit_arguments.set(tuple(_without_outputs(arguments)))
    return arguments


def require_same_inputs(model: Path, inputs: Mapping[str, Any]) -> None:
    """Raise if an input file is not the one that the model was fitted to."""
    recorded = _sources(model)
    for name, source in inputs.items():
        if name != "arguments" and _contents(source) != _contents(recorded.get(name)):
            raise TaufitError(
                f"{model}: {name} of its fit: {_describe(recorded.get(name))}; now: "
                f"{_describe(source)}. Restore the files, or fit without --again."
            )


def _recorded_arguments(model: Path) -> list[str]:
    arguments = _sources(model).get("arguments")
    if not isinstance(arguments, list) or not arguments:
        raise TaufitError(
            f"{model}: it does not record the arguments of its fit (it was made in Python, or "
            "before version 0.2). Fit it again by hand."
        )
    return [str(word) for word in arguments]


def _sources(model: Path) -> Mapping[str, Any]:
    from taufit.model.model_file import read_model

    provenance = read_model(model).training.provenance
    return {} if provenance is None else provenance.sources


def _without_outputs(arguments: Sequence[str]) -> list[str]:
    out: list[str] = []
    skip = False
    for word in arguments:
        name = word.partition("=")[0]
        if skip:
            skip = False
        elif name in _OUTPUTS or name == _AGAIN:
            skip = _OUTPUTS.get(name, True) and "=" not in word
        elif word.startswith("-o") and not word.startswith("--"):
            continue  # -oFILE: option and value in one word
        else:
            out.append(word)
    return out


def _contents(source: Any) -> Any:
    """Hashes of files in place of their names."""
    if isinstance(source, Mapping):
        return source.get("sha256", source)
    if isinstance(source, (list, tuple)):
        return [_contents(item) for item in source]
    return source


def _describe(source: Any) -> str:
    if isinstance(source, Mapping) and "sha256" in source:
        return f"{source.get('file')}, sha256 {str(source['sha256'])[:8]}"
    if isinstance(source, (list, tuple)):
        return ", ".join(_describe(item) for item in source) or "none"
    return str(source)
