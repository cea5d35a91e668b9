"""Dashboard server of a simulated controller: one line in, one line out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController

GREETING = "Connected: Universal Robots Dashboard Server"
_ROBOT_MODES = {3: "POWER_OFF", 5: "IDLE", 7: "RUNNING"}
_SAFETY_MODES = {1: "NORMAL", 3: "PROTECTIVE_STOP"}
_STATES = {1: "STOPPED", 2: "PLAYING", 4: "PAUSED"}
_ACCEPTED = ("popup", "close popup", "close safety popup", "addtolog", "load installation")


def reply_to_line(robot: UrController, line: str) -> str | None:
    """Answer to a dashboard line; None ends the connection."""
    text = " ".join(line.split())
    command = text.lower()
    if command in ("quit", "shutdown"):
        return None
    query = _QUESTIONS.get(command)
    if query is not None:
        return query(robot)
    command_function = _COMMANDS.get(command)
    if command_function is not None:
        return command_function(robot)
    if command.startswith(_ACCEPTED):
        return "ok"
    if command.startswith("load "):
        return f"File not found: {text[5:]}"
    return f"could not understand: '{text[:200]}'"


def _model(robot: UrController) -> str:
    name = robot.twin.robot.name.upper().rstrip("E")
    return name if name.startswith("UR") else "UR10"


def _play(robot: UrController) -> str:
    if robot.program is None:
        return "Failed to execute: play"
    robot.pause(False)
    return "Starting program"


def _pause(robot: UrController) -> str:
    robot.pause(True)
    return "Pausing program"


def _stop(robot: UrController) -> str:
    robot.stop()
    return "Stopped"


def _power_on(robot: UrController) -> str:
    robot.set_power(True)
    return "Powering on"


def _power_off(robot: UrController) -> str:
    robot.set_power(False)
    return "Powering off"


def _release(robot: UrController) -> str:
    robot.release_brakes()
    return "Brake releasing"


def _unlock(robot: UrController) -> str:
    robot.unlock_protective_stop()
    return "Protective stop releasing"


_QUESTIONS = {
    "polyscopeversion": lambda r: "URSoftware {}.{}.{}.{}".format(*r.version),
    "get serial number": lambda r: "20260000001",
    "get robot model": _model,
    "robotmode": lambda r: f"Robotmode: {_ROBOT_MODES[r.robot_mode]}",
    "safetymode": lambda r: f"Safetymode: {_SAFETY_MODES[r.safety_mode]}",
    "safetystatus": lambda r: f"Safetystatus: {_SAFETY_MODES[r.safety_mode]}",
    "running": lambda r: f"Program running: {str(r.runtime_state == 2).lower()}",
    "programstate": lambda r: f"{_STATES[r.runtime_state]} {r.program_name or 'null'}",
    "get loaded program": lambda r: "No program loaded",
    "is in remote control": lambda r: "true",
    "isprogramsaved": lambda r: "true",
    "get operational mode": lambda r: "NONE",
}
_COMMANDS = {
    "play": _play,
    "pause": _pause,
    "stop": _stop,
    "power on": _power_on,
    "power off": _power_off,
    "brake release": _release,
    "unlock protective stop": _unlock,
    "restart safety": _unlock,
}
