"""Simulated Universal Robots controller without sockets: modes, program, target, servo, robot."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.dynamics import gravity_torque
from taufit.sim.payload import CarriedPayload
from taufit.sim.simulation_loop import TICK_S
from taufit.sim.stepped_twin import ControlSample
from taufit.sim.twin import Twin
from taufit.virtual.controllers.kinematics import Kinematics, from_pose
from taufit.virtual.controllers.rtde_variables import INPUTS, Version, output_types
from taufit.virtual.controllers.ur_functions import controller_functions
from taufit.virtual.urscript import Machine, ScriptError, load_program
from taufit.wire.rtde import TYPES

# Modes as the controller numbers them.
POWER_OFF, IDLE, RUNNING = 3, 5, 7
NORMAL, PROTECTIVE_STOP = 1, 3
STOPPED, PLAYING, PAUSED = 1, 2, 4
HOME = (0.0, -1.5707963267948966, 1.5707963267948966, -1.5707963267948966, -1.5707963267948966, 0.0)
# Stiffness of the servo for all commands but servoj: critically damped, with speed feed-forward.
_SERVO_STIFFNESS = (2.0 * np.pi * 25.0) ** 2
# Deceleration of a stop without command, and of a protective stop [rad/s^2].
_COAST_DECELERATION, _STOP_DECELERATION = 4.0, 20.0
# Largest servo error at which the stiffness may change [rad].
_MAX_SWITCH_ERROR = 2e-3
# Tracking error that causes a protective stop [rad].
_MAX_TRACKING_ERROR = 0.35


class UrController:
    """Simulated controller and robot; `tick` advances one control step.

    Args:
        twin: Simulated robot with six joints.
        version: Software version; major 3 is a CB3 at 125 Hz, others run at 500 Hz.
        seed: Seed of the random numbers.
        payload: Payload from the start.
        home: Start position.
    """

    def __init__(
        self,
        twin: Twin,
        *,
        version: Version = (5, 23, 0, 0),
        seed: int = 0,
        payload: tuple[CarriedPayload, ...] = (),
        home: tuple[float, ...] = HOME,
    ) -> None:
        if twin.robot.joints != 6:
            raise TaufitError(
                f"{twin.robot.name} has {twin.robot.joints} joints; a virtual UR controller moves "
                "six. Serve it as another controller (--protocol)."
            )
        self.twin, self.version = twin, version
        self.rate_hz = 125.0 if version[0] < 5 else 500.0
        self.step = 1.0 / self.rate_hz
        self.arm = twin.start(np.array(home), seed=seed, payload=payload, rate_hz=self.rate_hz)
        self.kinematics = Kinematics(twin.robot)
        self.gravity = twin.robot.gravity.tolist()
        self.types = output_types(version)
        self.inputs: dict[str, Any] = {
            name: 0 if TYPES[kind][2] == 1 else [0.0] * TYPES[kind][2]
            for name, kind in INPUTS.items()
        }
        self.integers, self.doubles = [0] * 48, [0.0] * 48
        self.messages: deque[tuple[str, int]] = deque(maxlen=200)
        self.robot_mode, self.safety_mode, self.runtime_state = RUNNING, NORMAL, STOPPED
        self.steps = 0
        self.slider = 1.0
        self.mass, self.centre, self.inertia = 0.0, [0.0] * 3, [0.0] * 6
        self.tool = np.eye(4)
        self.target = np.array(home)
        self.target_speed, self.target_acceleration = np.zeros(6), np.zeros(6)
        self.history: deque[Float[Array, " 6"]] = deque([self.target.copy()], maxlen=512)
        self.program: Machine | None = None
        self.program_name = ""
        self._commanded, self._servo = False, (0.0, 0.0)
        self._servo_state = [self.target.copy(), np.zeros(6), np.zeros(6)]
        self._functions = controller_functions(self)
        self.sample: ControlSample = self._move()

    # Commands of programs.

    def command(self, q: Float[Array, " 6"], *, servo: tuple[float, float] | None = None) -> None:
        """Set the target at the end of this control step; `servo` is servoj's gain and
        lookahead."""
        speed = (q - self.target) / self.step
        self.target_acceleration = (speed - self.target_speed) / self.step
        self.target, self.target_speed = np.array(q), speed
        self._commanded = True
        if servo is not None:
            self._servo = servo
        elif float(np.abs(self.target - self._servo_state[0]).max()) < _MAX_SWITCH_ERROR:
            # Switch to the stiff servo once the soft one has converged, to avoid a jerk.
            self._servo = (0.0, 0.0)

    def accelerate(self, change: Float[Array, " 6"]) -> None:
        """Change the speed of the target."""
        speed = self.target_speed + change
        self.command(self.target + self.step * speed)
        # More exact than the difference quotient.
        self.target_speed = speed

    def play(self, text: str) -> None:
        """Start a program; a running one continues if it cannot be compiled."""
        self.start(self.compile_program(text))

    def compile_program(self, text: str) -> Machine:
        """Compile a program. Long ones take seconds and are compiled in a thread."""
        return load_program(text, self._functions)

    def start(self, machine: Machine) -> None:
        """Start a program, replacing a running one."""
        if self.robot_mode != RUNNING or self.safety_mode != NORMAL:
            raise ScriptError("the robot is not ready: power on and brake release, or unlock it.")
        self.stop()
        self.program, self.runtime_state = machine, PLAYING

    def stop(self) -> None:
        """End the program; the robot decelerates to standstill."""
        if self.program is not None:
            self.program.stop()
        self.program, self.runtime_state = None, STOPPED

    def pause(self, on: bool) -> None:
        """Pause or resume the program."""
        if self.program is not None:
            self.runtime_state = PAUSED if on else PLAYING

    def protective_stop(self, reason: str) -> None:
        """Brake, and stay stopped until unlocked."""
        if self.safety_mode == NORMAL:
            self.safety_mode = PROTECTIVE_STOP
            self.add_message(f"protective stop: {reason}", 1)
            self.stop()

    def unlock_protective_stop(self) -> None:
        """End a protective stop."""
        self.safety_mode = NORMAL

    def set_power(self, on: bool) -> None:
        """Motors on (brakes closed) or off."""
        self.stop()
        self.robot_mode = IDLE if on else POWER_OFF

    def release_brakes(self) -> None:
        """Open the brakes."""
        self.robot_mode = RUNNING

    def add_message(self, text: str, level: int = 3) -> None:
        """Add a message for every client; 0 exception, 1 error, 2 warning, 3 information."""
        self.messages.append((text, level))

    @property
    def speed_scaling(self) -> float:
        return self.slider

    # One control step.

    def tick(self) -> ControlSample:
        """Run the program and move the robot for one control step; return its first sample."""
        if self.inputs["speed_slider_mask"]:
            self.slider = float(np.clip(self.inputs["speed_slider_fraction"], 0.0, 1.0))
        self._commanded = False
        if self.program is not None and self.runtime_state == PLAYING:
            self._run()
        if not self._commanded:
            self._decelerate()
        self._check_limits()
        self.sample = self._move()
        self.history.append(self.sample.position)
        self.steps += 1
        if float(np.abs(self.sample.position - self._servo_state[0]).max()) > _MAX_TRACKING_ERROR:
            self.protective_stop("the arm does not follow its target")
        return self.sample

    def _run(self) -> None:
        assert self.program is not None
        program = self.program
        try:
            is_running = program.tick()
        except ScriptError as error:
            is_running = False
            self.add_message(f"runtime error, the program was stopped: {error}", 0)
        if not is_running and self.program is program:
            self.stop()

    def _decelerate(self) -> None:
        """Decelerate the target if no command was given."""
        max_speed = float(np.abs(self.target_speed).max())
        if max_speed == 0.0:
            self.target_acceleration = np.zeros(6)
            return
        rate = _STOP_DECELERATION if self.safety_mode != NORMAL else _COAST_DECELERATION
        self.accelerate(-self.target_speed * min(1.0, rate * self.step / max_speed))

    def _check_limits(self) -> None:
        """Protective stop if the target exceeds joint limits."""
        limits = self.twin.robot.limits
        position_excess = np.maximum(self.target - limits.upper, limits.lower - self.target)
        # Set points of servoj may jump; the servo's output is checked.
        speed = self._servo_state[1] if self._servo[0] else self.target_speed
        speed_excess = np.abs(speed) - 1.05 * limits.velocity
        for quantity, excess in (("position", position_excess), ("speed", speed_excess)):
            if self.safety_mode == NORMAL and float(excess.max()) > 1e-9:
                name = self.twin.robot.joint_names[int(excess.argmax())]
                self.protective_stop(f"{quantity} of {name} beyond its limit")
                self._reset_target()

    def _reset_target(self) -> None:
        """Reset the target to the servo's state."""
        self.target, self.target_speed = self._servo_state[0].copy(), self._servo_state[1].copy()
        self.target_acceleration = np.zeros(6)

    def _move(self) -> ControlSample:
        """Move the robot to the target through the servo; the twin takes one row per
        millisecond."""
        return self.arm.step(*self.servo_output(round(self.step / TICK_S)))

    def servo_output(self, ticks: int) -> tuple[Float[Array, "t 6"], ...]:
        """Servo output to the drives: the target x through a second-order servo,

            r'' = g (x - r) + d (f x' - r'),

        with g the gain and d = g lookahead, f = 0 under servoj, so that r lags a steadily moving
        set point by the lookahead time; else stiff, critically damped and with f = 1.
        """
        gain, lookahead = self._servo
        is_servoj = gain > 0.0
        g = gain if is_servoj else _SERVO_STIFFNESS
        d = gain * lookahead if is_servoj else 2.0 * float(np.sqrt(_SERVO_STIFFNESS))
        r, speed, _ = self._servo_state
        start = self.target - self.step * self.target_speed
        rows = np.empty((3, ticks, 6))
        for k in range(ticks):
            fraction = (k + 1) / ticks
            x = start + fraction * self.step * self.target_speed
            servo_acceleration = g * (x - r) + d * (
                (0.0 if is_servoj else self.target_speed) - speed
            )
            speed = speed + TICK_S * servo_acceleration
            r = r + TICK_S * speed
            rows[0, k], rows[1, k], rows[2, k] = r, speed, servo_acceleration
        self._servo_state = [r, speed, servo_acceleration]
        return rows[0], rows[1], rows[2]

    # Values for clients.

    def output_value(self, name: str) -> Any:
        """Current value of an RTDE output."""
        if name.startswith("output_int_register_"):
            return self.integers[int(name[20:])]
        if name.startswith("output_double_register_"):
            return self.doubles[int(name[23:])]
        getter = _VALUES.get(name)
        if getter is not None:
            return getter(self)
        count = TYPES[self.types[name]][2]
        return 0 if count == 1 else [0] * count

    def status_bits(self) -> int:
        """Power on, program running."""
        return int(self.robot_mode >= IDLE) | (2 if self.runtime_state == PLAYING else 0)

    def safety_bits(self) -> int:
        """Normal mode, protective stopped."""
        return 1 if self.safety_mode == NORMAL else 4

    def torque_without_gravity(self) -> list[float]:
        """Drive torque minus the gravity torque of the controller's model [N m]."""
        model = self.twin.controller.model or self.twin.robot
        return (self.sample.torque - gravity_torque(model, self.target[None])[0]).tolist()

    def tool_pose(self, q: Float[Array, " 6"]) -> list[float]:
        """Pose of the tool centre point, x, y, z, rx, ry, rz."""
        return from_pose(self.kinematics.flange(q) @ self.tool)

    def tool_speed(self, q: Float[Array, " 6"], v: Float[Array, " 6"]) -> list[float]:
        """Velocity of the tool centre point in base axes."""
        return (self.kinematics.jacobian(q, self.tool) @ v).tolist()


_VALUES: dict[str, Any] = {
    "timestamp": lambda c: c.sample.time,
    "control_step": lambda c: c.steps,
    "target_q": lambda c: c.target.tolist(),
    "target_qd": lambda c: c.target_speed.tolist(),
    "target_qdd": lambda c: c.target_acceleration.tolist(),
    "target_current": lambda c: c.sample.target_current.tolist(),
    "target_moment": lambda c: c.sample.target_torque.tolist(),
    "actual_q": lambda c: c.sample.position.tolist(),
    "actual_qd": lambda c: c.sample.velocity.tolist(),
    "actual_current": lambda c: c.sample.signal.tolist(),
    "joint_control_output": lambda c: c.sample.signal.tolist(),
    "actual_current_as_torque": lambda c: c.torque_without_gravity(),
    "joint_temperatures": lambda c: c.sample.temperature.tolist(),
    "actual_TCP_pose": lambda c: c.tool_pose(c.sample.position),
    "target_TCP_pose": lambda c: c.tool_pose(c.target),
    "actual_TCP_speed": lambda c: c.tool_speed(c.sample.position, c.sample.velocity),
    "target_TCP_speed": lambda c: c.tool_speed(c.target, c.target_speed),
    "robot_mode": lambda c: c.robot_mode,
    "safety_mode": lambda c: c.safety_mode,
    "safety_status": lambda c: c.safety_mode,
    "runtime_state": lambda c: c.runtime_state,
    "joint_mode": lambda c: [253 if c.robot_mode == RUNNING else 239] * 6,
    "robot_status_bits": lambda c: c.status_bits(),
    "safety_status_bits": lambda c: c.safety_bits(),
    "speed_scaling": lambda c: c.slider,
    "target_speed_fraction": lambda c: c.slider,
    "actual_main_voltage": lambda c: 48.0,
    "actual_robot_voltage": lambda c: 48.0,
    "actual_joint_voltage": lambda c: [48.0] * 6,
    "payload": lambda c: c.mass,
    "payload_cog": lambda c: list(c.centre),
    "payload_inertia": lambda c: list(c.inertia),
    "target_gravity": lambda c: c.gravity,
    "tcp_offset": lambda c: from_pose(c.tool),
}
