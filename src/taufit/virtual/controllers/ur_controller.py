"""A Universal Robots controller without sockets: modes, program, target, servo and the arm."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.dynamics import gravity_torque
from taufit.sim.loop import TICK_S
from taufit.sim.payload import CarriedPayload
from taufit.sim.stepped import ControlSample
from taufit.sim.twin import Twin
from taufit.virtual.controllers.kinematics import Kinematics, from_pose
from taufit.virtual.controllers.ur_fields import INPUTS, Version, outputs
from taufit.virtual.controllers.ur_functions import functions
from taufit.virtual.urscript import Machine, ScriptError, load
from taufit.wire.rtde import TYPES

# Modes as the controller numbers them.
POWER_OFF, IDLE, RUNNING = 3, 5, 7
NORMAL, PROTECTIVE_STOP = 1, 3
STOPPED, PLAYING, PAUSED = 1, 2, 4
HOME = (0.0, -1.5707963267948966, 1.5707963267948966, -1.5707963267948966, -1.5707963267948966, 0.0)
# The servo behind every command but servoj: stiff, critically damped, with speed fed forward.
_STIFF = (2.0 * np.pi * 25.0) ** 2
# Deceleration of a stop nobody has commanded [rad/s^2], and of a protective stop.
_LAPSE, _BRAKE = 4.0, 20.0
# Lag of the servo below which it may change its stiffness [rad].
_CAUGHT_UP = 2e-3
# Tracking error at which a protective stop comes [rad].
_LARGEST_ERROR = 0.35


class UrController:
    """The controller and its arm, moved by `tick`, one control step at a time.

    Args:
        twin: The arm; six joints.
        version: Of the software; major 3 is a CB3 at 125 Hz, others run at 500 Hz.
        seed: Of everything random.
        payload: Carried from the start.
        home: Where the arm stands.
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
        self.types = outputs(version)
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
        self._followed = [self.target.copy(), np.zeros(6), np.zeros(6)]
        self._functions = functions(self)
        self.sample: ControlSample = self._move()

    # What programs do.

    def command(self, q: Float[Array, " 6"], *, servo: tuple[float, float] | None = None) -> None:
        """The target at the end of this control step; `servo` is servoj's gain and lookahead."""
        speed = (q - self.target) / self.step
        self.target_acceleration = (speed - self.target_speed) / self.step
        self.target, self.target_speed = np.array(q), speed
        self._commanded = True
        if servo is not None:
            self._servo = servo
        elif float(np.abs(self.target - self._followed[0]).max()) < _CAUGHT_UP:
            # The stiff servo takes over once the soft one has caught up; else the arm would jerk.
            self._servo = (0.0, 0.0)

    def accelerate(self, change: Float[Array, " 6"]) -> None:
        """The target with another speed."""
        speed = self.target_speed + change
        self.command(self.target + self.step * speed)
        # The quotient of differences has lost some digits.
        self.target_speed = speed

    def play(self, text: str) -> None:
        """Start a program; one that cannot be compiled leaves a running one alone."""
        self.start(self.compiled(text))

    def compiled(self, text: str) -> Machine:
        """A program that can be started. Long ones take seconds: for a thread of its own."""
        return load(text, self._functions)

    def start(self, machine: Machine) -> None:
        """Start a program in the place of a running one."""
        if self.robot_mode != RUNNING or self.safety_mode != NORMAL:
            raise ScriptError("the robot is not ready: power on and brake release, or unlock it.")
        self.stop()
        self.program, self.runtime_state = machine, PLAYING

    def stop(self) -> None:
        """End the program; the arm comes to rest by itself."""
        if self.program is not None:
            self.program.stop()
        self.program, self.runtime_state = None, STOPPED

    def pause(self, on: bool) -> None:
        """Hold the program, or go on."""
        if self.program is not None:
            self.runtime_state = PAUSED if on else PLAYING

    def protective_stop(self, why: str) -> None:
        """Brake, and stay stopped until unlocked."""
        if self.safety_mode == NORMAL:
            self.safety_mode = PROTECTIVE_STOP
            self.say(f"protective stop: {why}", 1)
            self.stop()

    def unlock(self) -> None:
        """End a protective stop."""
        self.safety_mode = NORMAL

    def power(self, on: bool) -> None:
        """Motors on (brakes closed) or off."""
        self.stop()
        self.robot_mode = IDLE if on else POWER_OFF

    def release(self) -> None:
        """Open the brakes."""
        self.robot_mode = RUNNING

    def say(self, text: str, level: int = 3) -> None:
        """A message for every client; 0 exception, 1 error, 2 warning, 3 information."""
        self.messages.append((text, level))

    @property
    def speed_scaling(self) -> float:
        return self.slider

    # One control step.

    def tick(self) -> ControlSample:
        """Let the program act, move the arm; the sample at the beginning of the step."""
        if self.inputs["speed_slider_mask"]:
            self.slider = float(np.clip(self.inputs["speed_slider_fraction"], 0.0, 1.0))
        self._commanded = False
        if self.program is not None and self.runtime_state == PLAYING:
            self._run()
        if not self._commanded:
            self._coast()
        self._check()
        self.sample = self._move()
        self.history.append(self.sample.position)
        self.steps += 1
        if float(np.abs(self.sample.position - self._followed[0]).max()) > _LARGEST_ERROR:
            self.protective_stop("the arm does not follow its target")
        return self.sample

    def _run(self) -> None:
        assert self.program is not None
        program = self.program
        try:
            going = program.tick()
        except ScriptError as error:
            going = False
            self.say(f"runtime error, the program was stopped: {error}", 0)
        if not going and self.program is program:
            self.stop()

    def _coast(self) -> None:
        """Nobody moves the target: it comes to rest."""
        fastest = float(np.abs(self.target_speed).max())
        if fastest == 0.0:
            self.target_acceleration = np.zeros(6)
            return
        rate = _BRAKE if self.safety_mode != NORMAL else _LAPSE
        self.accelerate(-self.target_speed * min(1.0, rate * self.step / fastest))

    def _check(self) -> None:
        """A target beyond the joints' limits is not followed."""
        limits = self.twin.robot.limits
        beyond = np.maximum(self.target - limits.upper, limits.lower - self.target)
        # Set points of servoj may come in leaps; what counts is what the servo makes of them.
        speed = self._followed[1] if self._servo[0] else self.target_speed
        fast = np.abs(speed) - 1.05 * limits.velocity
        for what, excess in (("position", beyond), ("speed", fast)):
            if self.safety_mode == NORMAL and float(excess.max()) > 1e-9:
                name = self.twin.robot.joint_names[int(excess.argmax())]
                self.protective_stop(f"{what} of {name} beyond its limit")
                self._hold()

    def _hold(self) -> None:
        """Back to where the arm is led to: a target beyond the limits was never passed on."""
        self.target, self.target_speed = self._followed[0].copy(), self._followed[1].copy()
        self.target_acceleration = np.zeros(6)

    def _move(self) -> ControlSample:
        """Lead the arm to the target through the servo; the twin takes a row per millisecond."""
        return self.arm.step(*self.follow(round(self.step / TICK_S)))

    def follow(self, ticks: int) -> tuple[Float[Array, "t 6"], ...]:
        """What the drives are given: the target x through a servo of second order,

            r'' = g (x - r) + d (f x' - r'),

        with g the gain and d = g lookahead, f = 0 under servoj, so that r lags a steadily moving
        set point by the lookahead time; else stiff, critically damped and with f = 1.
        """
        gain, ahead = self._servo
        servo = gain > 0.0
        g = gain if servo else _STIFF
        d = gain * ahead if servo else 2.0 * float(np.sqrt(_STIFF))
        r, speed, _ = self._followed
        start = self.target - self.step * self.target_speed
        rows = np.empty((3, ticks, 6))
        for k in range(ticks):
            share = (k + 1) / ticks
            x = start + share * self.step * self.target_speed
            push = g * (x - r) + d * ((0.0 if servo else self.target_speed) - speed)
            speed = speed + TICK_S * push
            r = r + TICK_S * speed
            rows[0, k], rows[1, k], rows[2, k] = r, speed, push
        self._followed = [r, speed, push]
        return rows[0], rows[1], rows[2]

    # What clients read.

    def value(self, name: str) -> Any:
        """The present value of an RTDE output."""
        if name.startswith("output_int_register_"):
            return self.integers[int(name[20:])]
        if name.startswith("output_double_register_"):
            return self.doubles[int(name[23:])]
        known = _VALUES.get(name)
        if known is not None:
            return known(self)
        count = TYPES[self.types[name]][2]
        return 0 if count == 1 else [0] * count

    def status_bits(self) -> int:
        """Power on, program running."""
        return int(self.robot_mode >= IDLE) | (2 if self.runtime_state == PLAYING else 0)

    def safety_bits(self) -> int:
        """Normal mode, protective stopped."""
        return 1 if self.safety_mode == NORMAL else 4

    def torque_without_gravity(self) -> list[float]:
        """What the drives give beyond the weight of the arm the controller assumes."""
        model = self.twin.controller.model or self.twin.robot
        return (self.sample.torque - gravity_torque(model, self.target[None])[0]).tolist()

    def tool_pose(self, q: Float[Array, " 6"]) -> list[float]:
        """Of the tool centre point, x, y, z, rx, ry, rz."""
        return from_pose(self.kinematics.flange(q) @ self.tool)

    def tool_speed(self, q: Float[Array, " 6"], v: Float[Array, " 6"]) -> list[float]:
        """Of the tool centre point in base axes."""
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
