"""The torque model. In: a `Robot` and friction. Out: structure, columns of W, predictions, files.

Left to others: finding the parameters (regression, estimators, fitting).
"""

from taufit.model.model_file import read_model, write_model
from taufit.model.predict import predicted_rows, predicted_torque, rigid_torque
from taufit.model.torque_model import TorqueModel

__all__ = [
    "TorqueModel",
    "predicted_rows",
    "predicted_torque",
    "read_model",
    "rigid_torque",
    "write_model",
]
