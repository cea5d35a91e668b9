"""Renew tests/slow.txt from the processor time of a whole run.

    TAUFIT_COST=build/cost python -m pytest -n 2 --dist loadfile -p tests.cost
    python -m tests.slow build/cost --seconds 0.6

Tests of one file whose set-up is slow are listed by their file, others by their function. Entries
of files that the run did not reach stay.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from tests.cost import rows

LIST = Path(__file__).parent / "slow.txt"


def slow_tests(folder: Path, seconds: float, listed: set[str]) -> list[str]:
    """Functions and files whose tests take longer than this, parameters together."""
    calls: dict[str, float] = defaultdict(float)
    setups: dict[str, float] = defaultdict(float)
    for test, phase, processor, _ in rows(folder):
        if not test.startswith("("):
            if phase == "call":
                calls[test.split("[")[0]] += processor
            else:
                setups[test.split("::")[0]] += processor
    files = {file for file, took in setups.items() if took > 5.0 * seconds}
    functions = {
        test for test, took in calls.items() if took > seconds and test.split("::")[0] not in files
    }
    unseen = {entry for entry in listed if entry.split("::")[0] not in setups}
    return sorted(files | functions | unseen)


def main() -> None:
    parser = argparse.ArgumentParser(description="Renew tests/slow.txt.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=0.6)
    given = parser.parse_args()
    entries = slow_tests(given.folder, given.seconds, set(LIST.read_text("utf-8").split()))
    LIST.write_text("\n".join(entries) + "\n", "utf-8")
    print(f"{len(entries)} entries")


if __name__ == "__main__":
    main()
