"""Cache of results. In: content that determines a result. Out: the result, if cached.

Elsewhere: choice of the results to cache (signals, workflow).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.core.compute.cache.digest import digest as digest
    from taufit.core.compute.cache.store import (
        MISSING as MISSING,
        Cache as Cache,
        open_cache as open_cache,
    )

lazy_package(__name__)
