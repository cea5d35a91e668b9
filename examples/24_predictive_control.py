"""Model predictive control by real-time iteration: the model's gradient keeps torques in limits.

Twenty steps of 20 ms. The unknowns are the joint accelerations: positions and velocities follow
from them exactly, and the torque is linearised once per control step by `model.torque_gradient`, so
every step is one small quadratic programme. Needs casadi (`pip install casadi`) for its solver.
"""

import time

import casadi
import numpy as np

import taufit
from taufit.sim import random_fourier

STEPS, STEP = 20, 0.02

# A model: here of a simulated arm.
robot = taufit.read_robot("ur5e")
twin = taufit.Twin.typical(robot)
run = twin.run(random_fourier(robot, seed=1, periods=2.0), seed=1)
model = taufit.identify(robot, [run.recording]).model

# Velocity and position at the end of each step, linear in the accelerations before it.
lower = np.tril(np.ones((STEPS, STEPS)))
to_velocity = STEP * lower
to_position = STEP**2 * (np.arange(STEPS)[:, None] - np.arange(STEPS) + 0.5) * lower
joints = robot.joints
size = STEPS * joints
full_velocity, full_position = (np.kron(x, np.eye(joints)) for x in (to_velocity, to_position))
hessian = full_position.T @ full_position + 1e-3 * full_velocity.T @ full_velocity
hessian = 1e4 * hessian + 1e-4 * np.eye(size)
solver = casadi.conic(
    "solver",
    "daqp",
    {"h": casadi.Sparsity.dense(size, size), "a": casadi.Sparsity.dense(size, size)},
)

goal = random_fourier(robot, seed=5, speed=2.5, acceleration=9.0)
limit = 0.55 * robot.limits.torque
q, v, _ = (x[0] for x in goal.at(np.zeros(1)))
plan = np.zeros((STEPS, joints))
errors, spent, excess = [], [], 0.0
rng = np.random.default_rng(0)
for k in range(150):
    begin = time.process_time()
    at = STEP * (k + 1 + np.arange(STEPS))
    wanted, wanted_velocity, _ = goal.at(at)
    free = q + v * STEP * np.arange(1, STEPS + 1)[:, None]
    # The last plan, shifted by one step, is where the torque is linearised.
    plan = np.concatenate([plan[1:], plan[-1:]])
    position, velocity = free + to_position @ plan, v + to_velocity @ plan
    before = np.concatenate([q[None], position[:-1]]), np.concatenate([v[None], velocity[:-1]])
    torque = model.torque(*before, plan)
    gradient = model.torque_gradient(*before, plan)
    rows = np.zeros((size, size))
    shift = np.eye(size, k=-joints)
    for part, map_ in ((gradient.position, full_position), (gradient.velocity, full_velocity)):
        blocks = np.zeros((size, size))
        for n in range(STEPS):
            blocks[n * joints : (n + 1) * joints, n * joints : (n + 1) * joints] = part[n]
        rows += blocks @ shift @ map_
    for n in range(STEPS):
        own = slice(n * joints, (n + 1) * joints)
        rows[own, own] += gradient.acceleration[n]
    bound = np.tile(limit, STEPS)
    constant = torque.ravel() - rows @ plan.ravel()
    linear = 1e4 * full_position.T @ (free - wanted).ravel()
    linear += 10.0 * full_velocity.T @ (v - wanted_velocity).ravel()
    answer = solver(h=hessian, g=linear, a=rows, lba=-bound - constant, uba=bound - constant)
    plan = np.array(answer["x"]).reshape(STEPS, joints)
    spent.append(time.process_time() - begin)
    applied = model.torque(q, v, plan[0])
    excess = max(excess, float(np.max(np.abs(applied) / limit)))
    # The arm does not do exactly what was planned.
    actual = plan[0] + 0.05 * rng.standard_normal(joints)
    q, v = q + STEP * v + 0.5 * STEP**2 * actual, v + STEP * actual
    errors.append(np.abs(q - goal.at(np.array([STEP * (k + 1)]))[0][0]).max())

print(f"{len(spent)} control steps: median {1e3 * np.median(spent):.1f} ms, "
      f"worst {1e3 * max(spent):.1f} ms of {1e3 * STEP:.0f}")  # fmt: skip
print(f"largest torque {excess:.2f} of the limit, largest error {1e3 * max(errors):.1f} mrad")
assert excess < 1.05
