"""Presets of simulated robots, stored as YAML files.

A preset names a bundled robot and adds further data: true inertial parameters, rotor inertias,
drive gains, controller, effects, rate and a motion.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.core.plain_data import parse_yaml
from taufit.excitation import Motion
from taufit.excitation.motion_file import motion_from_dict
from taufit.robot import Robot, read_robot
from taufit.sim.controller import Controller
from taufit.sim.effects import DriveFriction, Effects, Encoder, PositionRipple, Sensing
from taufit.sim.effects_file import effects_from_dict
from taufit.sim.payload import CarriedPayload
from taufit.sim.random_motion import random_fourier
from taufit.sim.twin import Twin


@dataclass(frozen=True, slots=True, eq=False)
class Preset:
    """Simulated robot, a motion for it and the source of its data.

    Attributes:
        name: Name of the preset.
        about: Description: which data are measured, printed or assumed.
        twin: Simulated robot.
        payload: Payload of its experiment, or None.
        sources: Description of the motion; `motion` builds it.
    """

    name: str
    about: str
    twin: Twin
    payload: CarriedPayload | None
    sources: Mapping[str, Any]

    def motion(self, seed: int = 0, periods: float | None = None) -> Motion:
        """Motion of the preset; a random one is drawn from `seed`."""
        data = dict(self.sources)
        if data.get("kind") == "random":
            settings = {key: value for key, value in data.items() if key != "kind"}
            if periods is not None:
                settings["periods"] = periods
            return random_fourier(self.twin.robot, seed=seed, **settings)
        if periods is not None:
            data["periods"] = periods
        return motion_from_dict(data, f"the motion of {self.name}")


@cache
def presets() -> tuple[str, ...]:
    """Names of all presets."""
    folder = resources.files("taufit.sim") / "presets"
    return tuple(sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".yaml")))


def read_preset(name: str) -> Preset:
    """Read a preset by its name."""
    if name not in presets():
        raise TaufitError(f"there is no preset {name!r}; there are {', '.join(presets())}.")
    text = (resources.files("taufit.sim") / "presets" / f"{name}.yaml").read_text("utf-8")
    return preset_from_text(text, name)


# Keys of a preset; "believed" holds the keys that differ in the controller's model.
_ARM = ("robot", "parameters", "rotor", "gain")
_KEYS = (*_ARM, "about", "rate_hz", "controller", "believed", "effects", "payload", "motion")
_CONTROLLER = ("bandwidth_hz", "damping", "integral_hz", "delay", "friction", "knows_payload")
_RANDOM = tuple(
    key for key in inspect.signature(random_fourier).parameters if key not in ("robot", "seed")
)


def preset_from_text(text: str, name: str) -> Preset:
    """Preset from YAML; TaufitError with the place of unknown keys."""
    page = Field(parse_yaml(text, name, "a preset"), name)
    _require_keys(page, _KEYS)
    robot = _robot(page)
    settings: dict[str, Any] = {}
    for key in _require_keys(page["controller"], _CONTROLLER):
        value = page["controller"][key]
        if key == "knows_payload":
            settings[key] = value.flag()
        elif isinstance(value.value, list):
            settings[key] = value.numbers(robot.joints, above=0.0)
        else:
            settings[key] = value.number(low=0.0)
    controller = Controller(**settings)
    if not page["believed"].missing:
        _require_keys(page["believed"], _ARM)
        controller_data = {**page.mapping(), **page["believed"].mapping()}
        controller = replace(controller, model=_robot(Field(controller_data, name)))
    motion = page["motion"].required()
    if motion["kind"].text() == "random":
        for key in _require_keys(motion, ("kind", *_RANDOM)):
            if key == "centre":
                motion[key].numbers(robot.joints)
            elif key == "at_rest":
                motion[key].flag()
            elif key != "kind":
                motion[key].number(above=0.0)
    else:
        motion_from_dict(dict(motion.mapping()), f"the motion of {name}")
    twin = Twin(
        robot,
        effects_from_dict(page["effects"].required().mapping(), name),
        controller,
        rate_hz=page["rate_hz"].required().number(above=0.0),
        name=name,
    )
    payload = page["payload"]
    preset_payload = None if payload.missing else CarriedPayload(payload.numbers(10))
    return Preset(
        name, page["about"].required().text(), twin, preset_payload, dict(motion.mapping())
    )


def _require_keys(field: Field, keys: Sequence[str]) -> tuple[str, ...]:
    """Keys of a field; TaufitError for unknown ones."""
    if field.missing:
        return ()
    for key in field.mapping():
        if key not in keys:
            raise TaufitError(
                f"{field.source}: {field.path or 'the preset'} has no {key!r}; it has "
                f"{', '.join(keys)}."
            )
    return tuple(field.mapping())


def _robot(page: Field) -> Robot:
    robot = read_robot(page["robot"].required().text(), expand=False)
    joints = robot.joints
    if not page["parameters"].missing:
        rows = page["parameters"]
        flat = bool(rows.value) and not isinstance(rows.value[0], list)
        size = len(robot.parameters)
        robot = robot.with_parameters(
            rows.numbers(size) if flat else rows.matrix(robot.bodies, 10).ravel()
        )
    if not page["rotor"].missing:
        rotors = page["rotor"].numbers(joints, low=0.0).tolist()
        robot = robot.with_rotor_inertias(np.array(rotors))
    if not page["gain"].missing:
        gain = page["gain"].numbers(joints, above=0.0)
        robot = replace(robot, drives=replace(robot.drives, gain=gain))
    return robot


def typical_effects(robot: Robot) -> Effects:
    """Plausible friction and noise for a robot without measured data.

    Magnitudes follow the rated torque of each joint: its torque limit if it has one, else the
    gravity torque it may meet. A guess for test data, not a statement about this robot.
    """
    rated_torque = _rated_torque(robot)
    coefficients = np.stack([0.03 * rated_torque, 0.03 * rated_torque], 1)
    return Effects(
        friction=DriveFriction(
            coefficients=coefficients, load_factor=0.01, presliding=5e-4, breakaway=0.1
        ),
        ripple=PositionRipple(
            amplitude=np.outer(0.002 * rated_torque, [1.0, 0.5]), cycles=(2.0, 4.0)
        ),
        sensing=Sensing(white=0.004 * rated_torque, coloured=0.001 * rated_torque),
        encoder=Encoder(noise=2e-5, velocity_noise=2e-3),
    )


def typical_rotor(robot: Robot) -> Robot:
    """Robot with rotor inertias if it has none: 0.3 % of the rated torque of each joint."""
    if np.any(robot.rotor_inertias > 0.0):
        return robot
    return robot.with_rotor_inertias(0.003 * np.asarray(_rated_torque(robot), float))


def _rated_torque(robot: Robot) -> Any:
    """Rated torque of each joint [N m]: its limit, or three times its largest gravity torque."""
    from taufit.sim.mujoco_arm import build_arm

    rng = np.random.default_rng(0)
    pose = rng.uniform(-np.pi, np.pi, (200, robot.joints))
    # At standstill rotor inertia does not matter; with it no joint is without inertia.
    arm = build_arm(robot, rotor=np.ones(robot.joints))
    holding = np.abs(arm.torque(pose, 0 * pose, 0 * pose)).max(0)
    default = np.maximum(3.0 * holding, 0.05 * 3.0 * holding.max())
    return np.where(np.isfinite(robot.limits.torque), robot.limits.torque, default)


__all__ = [
    "Preset",
    "preset_from_text",
    "presets",
    "read_preset",
    "typical_effects",
    "typical_rotor",
]
