"""Export of fitted models to other tools: URDF, MJCF, SDF, JSON, C, FMU, CasADi, ROS 2.

In: a `FittedModel`. Out: files. Left to others: reading those formats (robot).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.export.export_format import (
        ExportFormat as ExportFormat,
        ExportResult as ExportResult,
    )
    from taufit.export.fmu import write_fmu as write_fmu
    from taufit.export.to_c import to_c as to_c
    from taufit.export.to_casadi import casadi_torque as casadi_torque
    from taufit.export.to_mjcf import to_mjcf as to_mjcf
    from taufit.export.to_sdf import to_sdf as to_sdf
    from taufit.export.to_urdf import to_urdf as to_urdf
    from taufit.export.write import (
        EXPORTS as EXPORTS,
        export_model as export_model,
        write_export as write_export,
        write_urdf as write_urdf,
    )

lazy_package(__name__)
