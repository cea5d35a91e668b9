"""Torque model. In: a `Robot` and friction. Out: structure, regressor columns, fitted models with
their training record, predictions, files.

Elsewhere: estimation of the parameters (regression, estimators, fitting).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel as FittedModel
    from taufit.model.model_file import read_model as read_model, write_model as write_model
    from taufit.model.noise_by_state import AlarmTail as AlarmTail, NoiseByState as NoiseByState
    from taufit.model.predict import (
        friction_torque as friction_torque,
        predicted_rows as predicted_rows,
        predicted_torque as predicted_torque,
        rigid_torque as rigid_torque,
    )
    from taufit.model.score import Score as Score
    from taufit.model.torque_model import TorqueModel as TorqueModel
    from taufit.model.training_record import (
        BaseRecord as BaseRecord,
        Conditioning as Conditioning,
        FitSettings as FitSettings,
        Provenance as Provenance,
        Range as Range,
        Ranges as Ranges,
        Residuals as Residuals,
        ResidualStructure as ResidualStructure,
        ThermalState as ThermalState,
        TrainingRecord as TrainingRecord,
    )

lazy_package(__name__)
