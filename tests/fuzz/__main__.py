"""`python -m tests.fuzz`: many damaged files and odd options; exits with 1 where a rule breaks."""

from __future__ import annotations

import argparse
import os
import sys

# Before NumPy is imported: its threads would only spin here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.fuzz.families import FAMILIES
from tests.fuzz.harness import fuzz, schedule, show


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this long")
    parser.add_argument("--family", choices=FAMILIES, help="only this one; --seed names one case")
    given = parser.parse_args()
    if given.family:
        cases = [(given.family, given.seed + i) for i in range(given.cases)]
        if "--cases" not in sys.argv:
            cases = cases[:1]
    else:
        cases = schedule(given.cases, given.seed)

    def report(done: int, failed: int) -> None:
        print(f"{done} of {len(cases)}, {failed} failures", file=sys.stderr, flush=True)

    counts, failures = fuzz(cases, jobs=given.jobs, seconds=60 * given.minutes, report=report)
    show(counts, failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
