"""Entries of a cache that were damaged, swapped or made by others, and many processes at once."""

from __future__ import annotations

import io
import os
import pickle
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robustness.kills import start


@contextmanager
def home() -> Iterator[Path]:
    """A folder with a cache and a key of its own."""
    names = ("XDG_CACHE_HOME", "XDG_STATE_HOME")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="cache-") as folder:
        for name in names:
            os.environ[name] = f"{folder}/{name}"
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def recordings(folder: Path, count: int) -> Path:
    """A folder of short runs of a simulated arm."""
    from taufit.cli import main

    runs = folder / "runs"
    runs.mkdir()
    with redirect_stdout(io.StringIO()):
        try:
            main(["simulate", "ur5e", "--runs", str(count), "-o", str(runs / "run.parquet")])
        except SystemExit as stop:
            assert not stop.code
    return runs


def _fit(runs: Path) -> Any:
    from taufit.core.compute.cache import open_cache
    from taufit.workflow import identify, inputs, training_data

    # As many files: nothing is fitted in memory.
    inputs.LEAD_ROWS = training_data.LEAD_ROWS = 100
    with open_cache() as cache:
        return identify("ur5e", runs, cutoff_hz=8.0, cache=cache)


def poisoned(cases: int = 2000, files: int = 12, fits: int = 4) -> list[str]:
    """Every kind of damage to single entries, and whole caches damaged before a fit."""
    from taufit.core.compute.cache import MISSING, open_cache
    from taufit.core.compute.cache.digest import digest
    from taufit.core.compute.cache.pack import pack, unpack
    from taufit.core.compute.cache.user_folders import user_secret

    rng = np.random.default_rng(1)
    lines = []
    with home() as folder:
        runs = recordings(folder, files)
        first = _fit(runs)
        secret = user_secret()[0]
        with open_cache() as cache:
            entries = sorted(path for path in cache.path.glob("??/*") if path.is_file())
            whole = {path: path.read_bytes() for path in entries}
            keys = {path: bytes.fromhex(path.name) for path in entries}
            values = {path: unpack(whole[path], keys[path], secret) for path in entries}
            began = time.process_time()
            pickled = [pickle.dumps(value, protocol=5) for value in values.values()]
            dump = time.process_time() - began
            began = time.process_time()
            for data in pickled:
                pickle.loads(data)
            load = time.process_time() - began
            began = time.process_time()
            for path, value in values.items():
                pack(value, keys[path], secret)
            packing = time.process_time() - began
            began = time.process_time()
            for path, data in whole.items():
                unpack(data, keys[path], secret)
            unpacking = time.process_time() - began
            size, pickles = sum(map(len, whole.values())), sum(map(len, pickled))
            lines.append(
                f"{len(entries)} entries: {size / 1e6:.1f} MB, {size / pickles:.3f} of pickles; "
                f"write {packing:.2f} s (pickle {dump:.2f}), read {unpacking:.2f} s ({load:.2f})"
            )
            counts: Counter[str] = Counter()
            for case in range(cases):
                path = entries[int(rng.integers(len(entries)))]
                kind, data = _damaged(case, path, whole, keys, values, rng)
                path.write_bytes(data)
                found = cache.get(keys[path])
                same = found is not MISSING and digest(found) == digest(values[path])
                outcome = "refused" if found is MISSING else "the same" if same else "ANOTHER"
                counts[f"{kind}: {outcome}"] += 1
                path.write_bytes(whole[path])
            lines += [f"{name}: {count}" for name, count in sorted(counts.items())]
        for k in range(fits):
            for path in entries:
                other = entries[int(rng.integers(len(entries)))]
                if rng.random() < 0.5:
                    path.write_bytes(_damaged(k, other, whole, keys, values, rng)[1])
            again = _fit(runs)
            equal = np.array_equal(again.estimate.values, first.estimate.values)
            told = sum("made again" in text for text in again.warnings)
            lines.append(f"a fit on half of the cache damaged: equal {equal}, {told} warning(s)")
    return lines


def _damaged(
    case: int,
    path: Path,
    whole: dict[Path, bytes],
    keys: dict[Path, bytes],
    values: dict[Path, Any],
    rng: np.random.Generator,
) -> tuple[str, bytes]:
    from taufit.core.compute.cache.pack import pack

    data = bytearray(whole[path])
    kind = ("bit", "cut", "swapped", "foreign", "pickled", "longer", "other bytes")[case % 7]
    if kind == "bit":
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        data = data[: int(rng.integers(len(data)))]
    elif kind == "swapped":
        others = [other for other in whole if other != path]
        data = bytearray(whole[others[int(rng.integers(len(others)))]])
    elif kind == "foreign":
        data = bytearray(pack(values[path], keys[path], secrets.token_bytes(32)))
    elif kind == "pickled":
        data = bytearray(pickle.dumps(values[path]))
    elif kind == "longer":
        data += rng.bytes(int(rng.integers(1, 100)))
    else:
        data = bytearray(rng.bytes(int(rng.integers(0, 4000))))
    return kind, bytes(data)


def together(processes: int = 8, files: int = 12) -> str:
    """Fits of one folder at once on one cache, one of them killed: every model is the same."""
    import signal

    from taufit.model.model_file import read_model
    from taufit.workflow import inputs, training_data

    with home() as folder:
        runs = recordings(folder, files)
        names = [folder / f"m{k}.json" for k in range(processes)]
        inputs.LEAD_ROWS = training_data.LEAD_ROWS = 100
        words = [["fit", "ur5e", str(runs), "--cutoff-hz", "8", "--processes", "1", "-o", str(name)]
                 for name in names]  # fmt: skip
        children = [start(one) for one in words]
        time.sleep(1.5)
        os.kill(children[0], signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        shutil.rmtree(os.environ["XDG_CACHE_HOME"])
        code = os.waitstatus_to_exitcode(os.waitpid(start(words[0]), 0)[1])
        found = [read_model(name).values.tolist() for name in names if name.exists()]
        equal = sum(one == found[0] for one in found)
        return (
            f"{processes} fits at once, one killed: exit codes {codes[1:]}, alone {code}; {equal} "
            f"of {len(found)} models equal"
        )


if __name__ == "__main__":
    print("\n".join(poisoned(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)))
    print(together())
