"""taufit: from a robot arm's recorded motion to a validated torque model.

    import taufit

    result = taufit.identify("ur10e", "run.csv", column_map="columns.yaml", holdout="30%")
    taufit.write_model(result.model, "model.json")

`__all__` lists the names a first script needs. Friction models, estimators and the steps in between
are here by name as well; the rooms (`taufit.terms.friction`, `taufit.estimators`, ...) have more.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any
from warnings import warn

__version__ = "0.2.0"

# Where each name lives; imported when first used, so `import taufit` stays quick. `__init__.pyi`
# says the same to type checkers.
_FIRST = {
    "Robot": "taufit.robot",
    "read_robot": "taufit.robot",
    "bundled_robots": "taufit.robot",
    "Recording": "taufit.recording",
    "read_recording": "taufit.recording",
    "write_recording": "taufit.recording",
    "Samples": "taufit.signals",
    "condition": "taufit.signals",
    "TorqueModel": "taufit.model",
    "FittedModel": "taufit.model",
    "IdentificationResult": "taufit.workflow",
    "identify": "taufit.workflow",
    "fit": "taufit.fitting",
    "check": "taufit.workflow.score_table",
    "design": "taufit.excitation",
    "identify_payload": "taufit.payload",
    "write_model": "taufit.model",
    "read_model": "taufit.model",
    "export_model": "taufit.export",
    "Twin": "taufit.sim",
}
_MORE = {
    "draft_map": "taufit.workflow.draft",
    "identify_servo": "taufit.servo",
    "ServoModel": "taufit.servo",
    "read_servo_model": "taufit.servo",
    "write_servo_model": "taufit.servo",
    "cross_validate": "taufit.workflow.score_table",
    "compare": "taufit.workflow.score_table",
    "ScoreTable": "taufit.workflow.score_table",
    "write_robot": "taufit.robot",
    "base_parameters": "taufit.dynamics",
    "Finding": "taufit.recording",
    "read_recordings": "taufit.recording",
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
    "Linear": "taufit.terms.friction",
    "PowerLaw": "taufit.terms.friction",
    "Polynomial": "taufit.terms.friction",
    "Stribeck": "taufit.terms.friction",
    "StribeckLoad": "taufit.terms.friction",
    "StribeckLoadSmooth": "taufit.terms.friction",
    "LinearLoad": "taufit.terms.friction",
    "Asymmetric": "taufit.terms.friction",
    "FittedWidth": "taufit.terms.friction",
    "TemperatureDependent": "taufit.terms.friction",
    "NoFriction": "taufit.terms.friction",
    "Presliding": "taufit.terms.friction",
    "automatic_model": "taufit.fitting",
    "fitted_model": "taufit.fitting",
    "fit_unsigned": "taufit.signs.unknown_signs",
    "find_signs": "taufit.signs.unknown_signs",
    "predicted_torque": "taufit.model",
    "PayloadFilter": "taufit.payload",
    "PayloadSettings": "taufit.payload",
    "move_model": "taufit.calibration",
    "read_motion": "taufit.excitation",
    "write_motion": "taufit.excitation",
    "write_urdf": "taufit.export",
    "FRICTION_MODELS": "taufit.terms.friction",
    "read_preset": "taufit.sim",
    "Monitor": "taufit.live",
}
_NAMES = {**_FIRST, **_MORE}
# Former names of 0.1, accepted with a warning until 0.3.
_RENAMED = {"Identification": "IdentificationResult"}

__all__ = [*_FIRST]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warn(f"taufit.{name} is now taufit.{new}.", DeprecationWarning, stacklevel=2)
        name = new
    if name not in _NAMES:
        from difflib import get_close_matches

        matches = get_close_matches(name, _NAMES, n=1)
        hint = f". Did you mean {matches[0]!r}?" if matches and not name.startswith("_") else ""
        raise AttributeError(f"module 'taufit' has no attribute {name!r}{hint}")
    return getattr(import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_NAMES, "__version__"])
