"""Engines that execute work. In: a function and arguments. Out: results, in order.

The interface is `map`, `reduce` and `close`; in this process, in processes of this computer, or on
a Dask cluster.
"""

from taufit.core.compute.engines.engine import Engine, WorkerLostError, open_engine, tree
from taufit.core.compute.engines.processes import Processes

__all__ = ["Engine", "Processes", "WorkerLostError", "open_engine", "tree"]
