"""Freed memory is kept for the next pass instead of being given back.

A pass makes and frees arrays of a few megabytes for every part. The C library hands each of them
back to the system and asks for it again, and the system clears every page: a fifth of a worker's
time. What is kept stays below `_TRIM`.
"""

from __future__ import annotations

# Arrays above this are given back at once, and free memory at the end of the heap above that; it
# grows in steps of the last [bytes].
_MMAP, _TRIM, _STEP = 16 * 2**20, 64 * 2**20, 4 * 2**20
# Names of these settings in the GNU C library.
_M_TRIM, _M_STEP, _M_MMAP = -1, -2, -3


def keep_freed_memory() -> None:
    """For this process, where the C library is GNU's; elsewhere nothing happens."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for setting, value in ((_M_MMAP, _MMAP), (_M_TRIM, _TRIM), (_M_STEP, _STEP)):
        mallopt(ctypes.c_int(setting), ctypes.c_int(value))
