"""The fitted model in other tools' forms: URDF, MJCF, JSON, C, FMU.

In: a `FittedModel`. Out: files. Left to others: reading those forms (robot).
"""

from taufit.export.fmu import write_fmu
from taufit.export.form import Form, Written
from taufit.export.to_c import to_c
from taufit.export.to_mjcf import to_mjcf
from taufit.export.to_urdf import to_urdf
from taufit.export.write import EXPORTS, export_model, write_export, write_urdf

__all__ = [
    "EXPORTS",
    "Form",
    "Written",
    "export_model",
    "to_c",
    "to_mjcf",
    "to_urdf",
    "write_export",
    "write_fmu",
    "write_urdf",
]
