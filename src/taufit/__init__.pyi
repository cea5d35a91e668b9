"""Types of the names that `taufit` imports when they are first used."""

from typing import Any

from taufit.calibration import fit_friction as fit_friction
from taufit.calibration import move_model as move_model
from taufit.dynamics.base_parameters import base_parameters as base_parameters
from taufit.estimators import ESTIMATORS as ESTIMATORS
from taufit.estimators import ConsistentSdp as ConsistentSdp
from taufit.estimators import Irls as Irls
from taufit.estimators import Ols as Ols
from taufit.estimators import Pbpr as Pbpr
from taufit.estimators import Tls as Tls
from taufit.estimators import Wls as Wls
from taufit.excitation import design as design
from taufit.excitation import read_motion as read_motion
from taufit.excitation import write_motion as write_motion
from taufit.export import export_model as export_model
from taufit.export import write_urdf as write_urdf
from taufit.fitting import automatic_model as automatic_model
from taufit.fitting import fit as fit
from taufit.fitting import fit_samples as fit_samples
from taufit.fitting import fitted_model as fitted_model
from taufit.model import FittedModel as FittedModel
from taufit.model import TorqueModel as TorqueModel
from taufit.model import TrainingRecord as TrainingRecord
from taufit.model import predicted_torque as predicted_torque
from taufit.model import read_model as read_model
from taufit.model import write_model as write_model
from taufit.payload import PayloadFilter as PayloadFilter
from taufit.payload import PayloadSettings as PayloadSettings
from taufit.payload import identify_payload as identify_payload
from taufit.recording import Finding as Finding
from taufit.recording import Recording as Recording
from taufit.recording import read_recording as read_recording
from taufit.recording import read_recordings as read_recordings
from taufit.recording import write_recording as write_recording
from taufit.regression import Estimate as Estimate
from taufit.regression import Information as Information
from taufit.robot import Robot as Robot
from taufit.robot import bundled_robots as bundled_robots
from taufit.robot import read_robot as read_robot
from taufit.robot import write_robot as write_robot
from taufit.signals import Samples as Samples
from taufit.signals import condition as condition
from taufit.signs.unknown_signs import find_signs as find_signs
from taufit.signs.unknown_signs import fit_unsigned as fit_unsigned
from taufit.sim import Twin as Twin
from taufit.sim import read_preset as read_preset
from taufit.terms.friction import FRICTION_MODELS as FRICTION_MODELS
from taufit.terms.friction import Asymmetric as Asymmetric
from taufit.terms.friction import FittedWidth as FittedWidth
from taufit.terms.friction import Linear as Linear
from taufit.terms.friction import LinearLoad as LinearLoad
from taufit.terms.friction import NoFriction as NoFriction
from taufit.terms.friction import Polynomial as Polynomial
from taufit.terms.friction import PowerLaw as PowerLaw
from taufit.terms.friction import Presliding as Presliding
from taufit.terms.friction import Stribeck as Stribeck
from taufit.terms.friction import StribeckLoad as StribeckLoad
from taufit.terms.friction import StribeckLoadSmooth as StribeckLoadSmooth
from taufit.terms.friction import TemperatureDependent as TemperatureDependent
from taufit.validation import check as check
from taufit.workflow import Identification as Identification
from taufit.workflow import identify as identify

# The compiled kernel has no types of its own.
_kernel: Any
__version__: str
__all__ = [
    "FittedModel",
    "Identification",
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
