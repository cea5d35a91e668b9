"""The torque model. In: a `Robot` and friction. Out: structure, columns of W, fitted models with
their record of training, predictions, files.

Left to others: finding the parameters (regression, estimators, fitting).
"""

from taufit.model.fitted_model import FittedModel
from taufit.model.model_file import read_model, write_model
from taufit.model.noise_by_state import AlarmTail, NoiseByState
from taufit.model.predict import friction_torque, predicted_rows, predicted_torque, rigid_torque
from taufit.model.score import Score
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    BaseRecord,
    Conditioning,
    FitSettings,
    Provenance,
    Range,
    Ranges,
    Residuals,
    ResidualStructure,
    ThermalState,
    TrainingRecord,
)

__all__ = [
    "AlarmTail",
    "BaseRecord",
    "Conditioning",
    "FitSettings",
    "FittedModel",
    "NoiseByState",
    "Provenance",
    "Range",
    "Ranges",
    "ResidualStructure",
    "Residuals",
    "Score",
    "ThermalState",
    "TorqueModel",
    "TrainingRecord",
    "friction_torque",
    "predicted_rows",
    "predicted_torque",
    "read_model",
    "rigid_torque",
    "write_model",
]
