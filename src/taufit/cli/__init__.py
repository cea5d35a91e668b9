"""The command line: one file per verb, heavy imports inside each command."""

from __future__ import annotations

from taufit.cli.app import main

__all__ = ["main"]
