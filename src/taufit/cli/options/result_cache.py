"""`--cache auto|off|FOLDER`: where results on files are kept, and the line that says so."""

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
        help="Where results on files are kept, so that only new ones are read: auto is your cache "
        "folder where a folder of recordings was given; off; FOLDER.",
        metavar="auto|off|FOLDER",
    ),
]
# Earlier versions left such a file beside recordings.
_OLD_CACHE_NAME = ".taufit-cache.sqlite"


def open_result_cache(option: str, recordings: Path | None) -> Cache | None:
    """The cache that was asked for.

    Args:
        option: The value of --cache.
        recordings: The folder that was looked through, if one was.
    """
    from taufit.core.compute.cache import open_cache

    if option == "off" or (option == "auto" and recordings is None):
        return None
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
    """Why results were not kept or not found, where that is so."""
    if cache is not None and cache.warning:
        _print_message(f"warning: {cache.warning.rstrip('.')}")


def _print_message(text: str) -> None:
    print(printable(f"{text}."), file=sys.stderr)
