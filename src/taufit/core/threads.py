"""Restriction to one BLAS thread while taufit calculates.

Its matrices are small: BLAS threads would cost ten times the processor time. The command line sets
the usual variables before NumPy is imported; in a script or notebook the limit is set while a call
runs and reset afterwards. Settings of the user take precedence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

P = ParamSpec("P")
R = TypeVar("R")
_lock = Lock()
_inside = 0
_limit: Any = None


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: run a function with one BLAS thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with single_blas_thread():
            return function(*args, **kwargs)

    return limited


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Context with one BLAS thread; nested blocks and settings of the user have no effect.

    Blocks in several threads share the limit, which ends with the last of them.
    """
    if any(name in os.environ for name in VARIABLES):
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1


def _leave() -> None:
    global _inside, _limit
    with _lock:
        _inside -= 1
        if _inside == 0:
            _limit.restore_original_limits()
            _limit = None


@cache
def _controller() -> Any:
    """BLAS libraries of this process, after those of taufit are loaded."""
    import scipy.linalg  # noqa: F401 - has a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# Freed memory is kept for the next pass. A pass makes and frees arrays of a few megabytes for every
# part; the C library would hand each of them back to the system, which clears every page when it is
# asked for again: a fifth of a worker's time. Arrays above the first are given back at once, free
# memory at the end of the heap above the second; it grows in steps of the third [bytes].
_MMAP, _TRIM, _STEP = 16 * 2**20, 64 * 2**20, 4 * 2**20
# Names of these settings in the GNU C library.
_M_TRIM, _M_STEP, _M_MMAP = -1, -2, -3


def keep_freed_memory() -> None:
    """Keep freed memory in this process, with the GNU C library; else do nothing."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for setting, value in ((_M_MMAP, _MMAP), (_M_TRIM, _TRIM), (_M_STEP, _STEP)):
        mallopt(ctypes.c_int(setting), ctypes.c_int(value))


def reserve_blas_memory() -> None:
    """Let BLAS allocate its buffers now: without memory OpenBLAS would retry forever.

    Raises:
        MemoryError: A limit on the address space (ulimit -v) leaves too little for them.
    """
    _require_room(_FOR_LIBRARIES)
    import numpy as np

    from taufit.core.lapack import dgeqrt

    square = np.ones((300, 300))
    for step in (lambda: square @ square, lambda: dgeqrt(8, np.asfortranarray(square))):
        _require_room(_FOR_BUFFERS)
        step()


# NumPy and SciPy with their libraries, and the buffers of one BLAS [bytes of address space].
_FOR_LIBRARIES, _FOR_BUFFERS = 200_000_000, 70_000_000


def _require_room(size: int) -> None:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return
        with open("/proc/self/statm", "rb") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return  # no such limits here
    if limit - taken < size:
        raise MemoryError
