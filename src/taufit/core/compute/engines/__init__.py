"""Where work is done. In: a function and things to apply it to. Out: results, in order.

`map`, `reduce` and `close` are the whole contract; here, in processes of this computer, or on a
Dask cluster. Left to others: what the work is.
"""

from taufit.core.compute.engines.engine import Engine, WorkerLost, open_engine, tree
from taufit.core.compute.engines.processes import Processes

__all__ = ["Engine", "Processes", "WorkerLost", "open_engine", "tree"]
