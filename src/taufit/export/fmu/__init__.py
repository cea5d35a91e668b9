"""Functional mock-up units (FMI 2.0 and 3.0, co-simulation), from the same C as the C export.

In: a `FittedModel`. Out: a .fmu archive with the description, the sources and, if there is a
compiler, a binary for this platform. The `.c` and `.h` files here are templates.
"""

from taufit.export.fmu.unit import FMI_VERSIONS, KINDS, FmuSources, make_unit
from taufit.export.fmu.write import fmu_format, write_fmu

__all__ = ["FMI_VERSIONS", "KINDS", "FmuSources", "fmu_format", "make_unit", "write_fmu"]
