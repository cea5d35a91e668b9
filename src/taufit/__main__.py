"""`python -m taufit` is the `taufit` command."""

from taufit.cli import main

main()
