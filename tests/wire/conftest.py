"""A virtual UR10 for every test that wants one, on free ports of this computer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from taufit.robot import read_robot
from taufit.sim import Twin, read_preset, typical_rotor
from taufit.virtual.controllers import UrController, VirtualUr


@pytest.fixture(scope="session")
def paper_twin():
    return read_preset("ur10-paper").twin


@pytest.fixture(scope="session")
def quiet_twin():
    """An arm without friction and noise: what it does is what its controller asks for."""
    return Twin(typical_rotor(read_robot("ur10e")))


@pytest.fixture
def virtual_ur(quiet_twin):
    with VirtualUr(UrController(quiet_twin)) as robot:
        yield robot


@pytest.fixture
def offline(quiet_twin):
    """The controller without sockets and without a clock."""

    def make(version=(5, 23, 0, 0), **effects):
        twin = replace(quiet_twin, **effects)
        return UrController(twin, version=version)

    return make


@pytest.fixture
def ros2_namespace():
    """Pythons of a real node and of taufit, and a shell in a network namespace with both.

    Set TAUFIT_ROS2_PYTHON to a Python that has rclpy; DDS listens on all interfaces.
    """
    python = os.environ.get("TAUFIT_ROS2_PYTHON")
    if not python:
        pytest.skip("no rclpy: set TAUFIT_ROS2_PYTHON to the Python of a ROS 2 installation")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"]).returncode:
        pytest.skip("DDS listens on all interfaces; no network namespace can be made here")
    domain = "<General><Interfaces><NetworkInterface address='127.0.0.1'/></Interfaces>"
    domain += "<AllowMulticast>false</AllowMulticast></General><Discovery>"
    domain += "<ParticipantIndex>auto</ParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers>"
    environment = {
        **os.environ,
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "CYCLONEDDS_URI": f"<CycloneDDS><Domain>{domain}</Discovery></Domain></CycloneDDS>",
    }

    def use(way):
        settings, reader = dict(environment), sys.executable
        if way == "rclpy":
            reader = python
            settings["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)

        def run(script, folder):
            return subprocess.run(
                ["unshare", "-n", "sh", "-c", f"ip link set lo up; {script}"],
                capture_output=True,
                text=True,
                timeout=240,
                env=settings,
                cwd=folder,
            )

        return python, reader, run

    return use


def ticks(controller, seconds):
    """Let it run; the samples."""
    return [controller.tick() for _ in range(round(seconds / controller.step))]


def path(samples):
    return np.stack([sample.position for sample in samples])
