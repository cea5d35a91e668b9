"""Fourier transforms of real signals by NumPy: `scipy.fft` takes longer to import than to use."""

from __future__ import annotations

from functools import lru_cache

from numpy.fft import irfft, rfft, rfftfreq

# Prime factors a transform is quick with.
_FACTORS = (2, 3, 5)


@lru_cache(maxsize=256)
def fast_length(least: int) -> int:
    """The smallest length from `least` on that has no prime factor above 5."""
    length = max(int(least), 1)
    while True:
        rest = length
        for factor in _FACTORS:
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 1


__all__ = ["fast_length", "irfft", "rfft", "rfftfreq"]
