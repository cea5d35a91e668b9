"""Shapes of friction curves."""
from __future__ import annotations
def fit_shapes(model, samples, *, load=None, dropped=()):
    return model.joint_shape
