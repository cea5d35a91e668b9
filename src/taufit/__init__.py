"""taufit: from a robot arm's recorded motion to a validated torque model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Where each public name lives; imported when first used, so `import taufit` stays quick.
_NAMES = {
    "Robot": "taufit.robot",
    "read_robot": "taufit.robot",
    "write_robot": "taufit.robot",
    "bundled_robots": "taufit.robot",
    "base_parameters": "taufit.dynamics",
    "Recording": "taufit.recording",
    "Finding": "taufit.recording",
    "read_recording": "taufit.recording",
    "read_recordings": "taufit.recording",
    "write_recording": "taufit.recording",
    "Samples": "taufit.signals",
    "condition": "taufit.signals",
    "TorqueModel": "taufit.model",
    "FittedModel": "taufit.model",
    "TrainingRecord": "taufit.model",
    "Information": "taufit.regression",
    "ESTIMATORS": "taufit.estimators",
    "Ols": "taufit.estimators",
    "Wls": "taufit.estimators",
    "Irls": "taufit.estimators",
    "Tls": "taufit.estimators",
    "ConsistentSdp": "taufit.estimators",
    "Pbpr": "taufit.estimators",
    "Estimate": "taufit.regression",
    "fit_samples": "taufit.fitting",
    "fit_friction": "taufit.calibration",
    "Linear": "taufit.friction",
    "PowerLaw": "taufit.friction",
    "Polynomial": "taufit.friction",
    "Stribeck": "taufit.friction",
    "StribeckLoad": "taufit.friction",
    "StribeckLoadSmooth": "taufit.friction",
    "LinearLoad": "taufit.friction",
    "Asymmetric": "taufit.friction",
    "FittedWidth": "taufit.friction",
    "TemperatureDependent": "taufit.friction",
    "NoFriction": "taufit.friction",
    "Presliding": "taufit.friction",
    "fit": "taufit.fitting",
    "automatic_model": "taufit.fitting",
    "fitted_model": "taufit.fitting",
    "fit_unsigned": "taufit.signs.unknown_signs",
    "find_signs": "taufit.signs.unknown_signs",
    "predicted_torque": "taufit.model",
    "check": "taufit.validation",
    "identify_payload": "taufit.payload",
    "PayloadFilter": "taufit.payload",
    "PayloadSettings": "taufit.payload",
    "move_model": "taufit.calibration",
    "identify": "taufit.workflow",
    "design": "taufit.excitation",
    "read_motion": "taufit.excitation",
    "write_motion": "taufit.excitation",
    "export_model": "taufit.export",
    "write_urdf": "taufit.export",
    "write_model": "taufit.model",
    "read_model": "taufit.model",
    "FRICTION_MODELS": "taufit.friction",
    "Twin": "taufit.sim",
    "read_preset": "taufit.sim",
}

__all__ = [*_NAMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'taufit' has no attribute {name!r}")
    return getattr(import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
