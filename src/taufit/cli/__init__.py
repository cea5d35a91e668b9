"""Command line: one module per command, heavy imports inside each command."""

from __future__ import annotations

from taufit.cli.app import main

__all__ = ["main"]
