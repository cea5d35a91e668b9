"""Cache of results. In: content that determines a result. Out: the result, if cached.

Elsewhere: choice of the results to cache (signals, workflow).
"""

from taufit.core.compute.cache.digest import digest
from taufit.core.compute.cache.store import MISSING, Cache, open_cache

__all__ = ["MISSING", "Cache", "digest", "open_cache"]
