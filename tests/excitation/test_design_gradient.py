"""The search's gradient is exact, so that a value and its slope never disagree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taufit.dynamics.base_parameters import base_parameters
from taufit.excitation.basis import FourierBasis, SplineBasis
from taufit.excitation.criteria import (
    AOptimal,
    ColumnNormProduct,
    ConditionAbove,
    ConditionCriterion,
    DOptimal,
    WeightedBlocks,
)
from taufit.excitation.design import DesignProblem, _robot_variations, default_limits
from taufit.excitation.limit_scaling import LimitScaling, MotionLimits
from taufit.excitation.objective import MotionInformation, with_smoothed_friction
from taufit.excitation.scene import Clearances, Scene, mounting_plane, scene_for
from taufit.model.torque_model import TorqueModel
from taufit.robot import Drives, read_robot
from taufit.terms.friction import Linear, LinearLoad, Polynomial

CRITERIA = {
    "condition": ConditionCriterion(8.0),
    "condition_scaled": ConditionCriterion(8.0, columns_scaled=True),
    "d": DOptimal(),
    "a": AOptimal(),
    "a_focus": AOptimal(np.linspace(1.0, 2.0, 54), (0, 3, 10)),
    "product": ColumnNormProduct(),
    "three_stage": ConditionAbove(80.0),
    "blocks": WeightedBlocks(((0, 1, 2), (5, 6, 7), (40, 41, 42)), 4.0),
}


def _problem(
    friction=None,
    scene=None,
    torque=np.inf,
    basis=None,
    coupling=None,
    rotor=False,
    worst=False,
):
    robot = read_robot("ur10")
    if coupling is not None:
        robot = replace(robot, drives=replace(Drives.joint_torque(6), coupling=coupling))
    model = TorqueModel(robot, friction or Linear(), rotor_inertia=rotor, offset=True)
    columns = np.asarray(base_parameters(model, rule="leftmost").columns)
    basis = basis or FourierBasis(5, 0.1)
    centre = np.array([0.0, -np.pi / 2, 0.3, -np.pi / 2, 0.2, 0.1])
    scene = scene or Scene()
    return DesignProblem(
        MotionInformation(with_smoothed_friction(model), columns, np.linspace(0.5, 1.5, 6)),
        basis.matrices(np.linspace(0, 10, 60)),
        LimitScaling(
            MotionLimits.of(default_limits(robot), centre), basis.matrices(np.linspace(0, 10, 120))
        ),
        centre,
        None,
        scene,
        Clearances(robot, scene),
        np.full(6, torque),
        basis.matrices(np.linspace(0, 10, 40)),
        projectors=basis.projectors(6),
        variations=_robot_variations(model, columns, np.ones(6), 0) if worst else (),
    )


def _slope_agrees(problem, criterion, penalty, seed=0):
    rng = np.random.default_rng(seed)
    size = 6 * problem.basis.shape[2]
    free, direction = rng.normal(size=(2, size))
    _, gradient, *_ = problem.evaluate(free, criterion, penalty)
    step = 1e-6
    ahead = problem.evaluate(free + step * direction, criterion, penalty)[0]
    behind = problem.evaluate(free - step * direction, criterion, penalty)[0]
    measured = (ahead - behind) / (2 * step)
    # Central differences at step 1e-6, of an information matrix with a condition of up to 1e8.
    assert gradient @ direction == pytest.approx(measured, rel=2e-5)


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_has_its_exact_slope(name):
    _slope_agrees(_problem(), CRITERIA[name], 0.0)


def test_penalties_have_their_exact_slope():
    robot = read_robot("ur10")
    scene = scene_for(robot, planes=(mounting_plane(robot),), tip_speed=0.5)
    _slope_agrees(_problem(scene=scene, torque=60.0), ConditionCriterion(4.0), 1.0)


@pytest.mark.parametrize("friction", [Polynomial(), LinearLoad(width=0.02)])
def test_friction_columns_have_their_slope(friction):
    _slope_agrees(_problem(friction=friction, rotor=True), DOptimal(), 0.0)


def test_coupled_motors_have_their_slope():
    coupling = np.eye(6)
    coupling[5, 4] = 1.0
    _slope_agrees(_problem(coupling=coupling, rotor=True), DOptimal(), 0.0)


def test_splines_have_their_slope():
    _slope_agrees(_problem(basis=SplineBasis(12, 10.0)), AOptimal(), 0.0)


def test_the_worst_case_and_restricted_joints_have_their_slope():
    basis = FourierBasis(5, 0.1, joint_harmonics=(2, 3, 4, 5, 5, 5))
    _slope_agrees(_problem(worst=True, basis=basis), DOptimal(), 0.0)
