"""Types of the names that `taufit` imports when they are first used."""

from typing import Any

from taufit.calibration import fit_friction as fit_friction, move_model as move_model
from taufit.dynamics.base_parameters import base_parameters as base_parameters
from taufit.estimators import (
    ESTIMATORS as ESTIMATORS,
    ConsistentSdp as ConsistentSdp,
    Irls as Irls,
    Ols as Ols,
    Pbpr as Pbpr,
    Tls as Tls,
    Wls as Wls,
)
from taufit.excitation import (
    design as design,
    read_motion as read_motion,
    write_motion as write_motion,
)
from taufit.export import export_model as export_model, write_urdf as write_urdf
from taufit.fitting import (
    automatic_model as automatic_model,
    fit as fit,
    fit_samples as fit_samples,
    fitted_model as fitted_model,
)
from taufit.live import Monitor as Monitor
from taufit.model import (
    FittedModel as FittedModel,
    TorqueModel as TorqueModel,
    TrainingRecord as TrainingRecord,
    predicted_torque as predicted_torque,
    read_model as read_model,
    write_model as write_model,
)
from taufit.payload import (
    PayloadFilter as PayloadFilter,
    PayloadSettings as PayloadSettings,
    identify_payload as identify_payload,
)
from taufit.recording import (
    Finding as Finding,
    Recording as Recording,
    read_recording as read_recording,
    read_recordings as read_recordings,
    write_recording as write_recording,
)
from taufit.regression import Estimate as Estimate, Information as Information
from taufit.robot import (
    Robot as Robot,
    bundled_robots as bundled_robots,
    read_robot as read_robot,
    write_robot as write_robot,
)
from taufit.servo import (
    ServoModel as ServoModel,
    identify_servo as identify_servo,
    read_servo_model as read_servo_model,
    write_servo_model as write_servo_model,
)
from taufit.signals import Samples as Samples, condition as condition
from taufit.signs.unknown_signs import find_signs as find_signs, fit_unsigned as fit_unsigned
from taufit.sim import Twin as Twin, read_preset as read_preset
from taufit.terms.friction import (
    FRICTION_MODELS as FRICTION_MODELS,
    Asymmetric as Asymmetric,
    FittedWidth as FittedWidth,
    Linear as Linear,
    LinearLoad as LinearLoad,
    NoFriction as NoFriction,
    Polynomial as Polynomial,
    PowerLaw as PowerLaw,
    Presliding as Presliding,
    Stribeck as Stribeck,
    StribeckLoad as StribeckLoad,
    StribeckLoadSmooth as StribeckLoadSmooth,
    TemperatureDependent as TemperatureDependent,
)
from taufit.workflow import IdentificationResult as IdentificationResult, identify as identify
from taufit.workflow.draft import draft_map as draft_map
from taufit.workflow.score_table import (
    ScoreTable as ScoreTable,
    check as check,
    compare as compare,
    cross_validate as cross_validate,
)

# The compiled kernel has no types of its own.
_kernel: Any
__version__: str
__all__ = [
    "FittedModel",
    "IdentificationResult",
    "Recording",
    "Robot",
    "Samples",
    "TorqueModel",
    "Twin",
    "bundled_robots",
    "check",
    "condition",
    "design",
    "export_model",
    "fit",
    "identify",
    "identify_payload",
    "read_model",
    "read_recording",
    "read_robot",
    "write_model",
    "write_recording",
]
