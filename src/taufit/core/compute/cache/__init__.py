"""Results that are wanted again. In: what decides a result, by content. Out: the result, if known.

Left to others: which results are worth keeping (signals, workflow).
"""

from taufit.core.compute.cache.digest import digest
from taufit.core.compute.cache.store import MISSING, Cache, open_cache

__all__ = ["MISSING", "Cache", "digest", "open_cache"]
