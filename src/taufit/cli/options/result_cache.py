"""Option `--cache auto|off|FOLDER` for cached results, and its messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taufit.cli.options import usage_error
from taufit.core.names import printable

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache

CacheOption = Annotated[
    str,
    typer.Option(
        help="Folder of cached results, so that only new files are read: auto (the user's cache "
        "folder if a folder of recordings is given), off, or FOLDER.",
        metavar="auto|off|FOLDER",
    ),
]
# Cache file of earlier versions, beside recordings.
_OLD_CACHE_NAME = ".taufit-cache.sqlite"


def open_result_cache(option: str, recordings: Path | None) -> Cache | None:
    """Open the requested cache; None if it is off.

    Args:
        option: Value of --cache.
        recordings: Folder of recordings, if one was given.
    """
    if option == "off" or (option == "auto" and recordings is None):
        return None
    from taufit.core.compute.cache import open_cache

    if recordings is not None and (recordings / _OLD_CACHE_NAME).exists():
        _print_message(
            f"{recordings / _OLD_CACHE_NAME} is of an earlier version: it is not read and may be "
            f"deleted"
        )
    if option != "auto" and not Path(option).is_dir():
        usage_error("--cache", f"there is no folder {option}.")
    cache = open_cache(None if option == "auto" else option)
    if not cache.warning:
        _print_message(f"results on files are kept in {cache.path} (--cache off: nowhere)")
    return cache


def print_cache_warning(cache: Cache | None) -> None:
    """Print a warning if results could not be cached or found."""
    if cache is not None and cache.warning:
        _print_message(f"warning: {cache.warning.rstrip('.')}")


def _print_message(text: str) -> None:
    print(printable(f"{text}."), file=sys.stderr)
