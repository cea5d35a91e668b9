"""The ROS 2 package: built by CMake against stub headers, loaded, compared with the C in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml

import taufit
from taufit.core.errors import TaufitError
from taufit.export import write_export
from taufit.model.torque_model import TorqueModel
from taufit.terms.friction import Presliding

HERE = Path(__file__).parent
EIGEN = Path("/usr/include/eigen3")


def fitted(name: str):
    model = TorqueModel(taufit.read_robot(name), Presliding(), rotor_inertia=True)
    values = np.random.default_rng(2).uniform(0.1, 1.0, len(model.names))
    values[model.layout.links] = model.robot.parameters
    return model.with_values(values)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace") / "ur5e.ros2"
    write_export(fitted("ur5e"), "ros2", folder)
    return folder


def test_the_package_is_complete_and_parses(package):
    manifest = ET.parse(package / "package.xml").getroot()
    assert manifest.findtext("name") == "taufit_ur5e"
    assert manifest.findtext("export/build_type") == "ament_cmake"
    for name in ("controller", "solver", "interface"):
        library = ET.parse(package / f"{name}_plugins.xml").getroot()
        source = "feed_forward_controller" if name == "controller" else f"{name}_plugin"
        assert library.get("path") == source
        assert (
            library.find("class").get("type").split("::")[1]
            in (package / "src" / f"{source}.cpp").read_text()
        )
    settings = yaml.safe_load((package / "config" / "controller.yaml").read_text())
    parameters = settings["feed_forward_controller"]["ros__parameters"]
    assert parameters["joints"] == list(taufit.read_robot("ur5e").joint_names)
    assert not [file for file in package.rglob("*") if "@" in file.name]
    assert all("@NAME@" not in file.read_text() for file in package.rglob("*") if file.is_file())


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "arm.ros2").write_text("precious")
    with pytest.raises(TaufitError, match="folder"):
        write_export(fitted("ur3"), "ros2", tmp_path / "arm.ros2")


def test_plugins_equal_the_c_and_the_controller_allocates_nothing(package, tmp_path):
    if not EIGEN.is_dir() or shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("CMake, a C++ compiler or Eigen is missing (Debian: libeigen3-dev)")
    stubs, build = HERE / "ros2_stubs", tmp_path / "build"
    environment = {**os.environ, "CXXFLAGS": "-Werror", "CFLAGS": "-Werror"}
    configure = ["cmake", "-S", package, "-B", build, f"-DTAUFIT_STUBS={stubs}"]
    for command in (configure, ["cmake", "--build", build, "-j", "2"]):
        ran = subprocess.run([str(x) for x in command], capture_output=True, text=True,
                             env=environment, check=False)  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
    (tmp_path / "arm_under_test.h").write_text(
        '#include "ur5e.h"\n#define JOINTS UR5E_JOINTS\n'
        "#define ARM(function) ur5e_##function\n#define ARM_TYPE(name) ur5e_##name\n"
    )
    driver = tmp_path / "driver"
    subprocess.run(
        ["c++", "-std=c++17", "-O2", str(HERE / "ros2_driver.cpp"), str(package / "src/ur5e.c"),
         f"-I{stubs}", f"-I{EIGEN}", f"-I{package}/include", f"-I{tmp_path}", "-ldl", "-lm",
         "-o", str(driver)], check=True,
    )  # fmt: skip
    libraries = [
        build / f"lib{name}.so"
        for name in ("solver_plugin", "interface_plugin", "feed_forward_controller")
    ]
    ran = subprocess.run([str(driver), *map(str, libraries), "100000"], capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    difference, allocations, refused = ran.stdout.split()
    # Relative to 100 N m or the torque; compiled twice with other flags: rounding only.
    assert float(difference) < 1e-12
    assert allocations == "0" and refused == "1"
