"""Renew tests/slow.txt from the durations of a whole run.

    python -m pytest -n 2 --dist loadfile --durations=0 -vv > build/durations.txt
    python -m tests.slow build/durations.txt --seconds 0.4

Tests of one file whose set-up is slow are listed by their file, others by their function.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

LINE = re.compile(r"\s*([\d.]+)s (call|setup|teardown)\s+(\S+?::[^\s\[]+)")


def slow_tests(log: str, seconds: float) -> list[str]:
    """Functions and files whose tests take longer than this, parameters together."""
    calls: dict[str, float] = defaultdict(float)
    setups: dict[str, float] = defaultdict(float)
    for line in log.splitlines():
        found = LINE.match(line)
        if found:
            took, phase, test = float(found[1]), found[2], found[3]
            if phase == "call":
                calls[test] += took
            else:
                setups[test.split("::")[0]] += took
    files = {file for file, took in setups.items() if took > 5.0 * seconds}
    functions = {
        test for test, took in calls.items() if took > seconds and test.split("::")[0] not in files
    }
    return sorted(files | functions)


def main() -> None:
    parser = argparse.ArgumentParser(description="Renew tests/slow.txt.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--seconds", type=float, default=0.4)
    given = parser.parse_args()
    listed = slow_tests(given.log.read_text("utf-8", errors="replace"), given.seconds)
    (Path(__file__).parent / "slow.txt").write_text("\n".join(listed) + "\n", "utf-8")
    print(f"{len(listed)} entries")


if __name__ == "__main__":
    main()
