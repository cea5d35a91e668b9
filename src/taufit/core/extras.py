"""Optional libraries: what each is for, and what to install where one is missing.

`pyproject.toml` lists the same extras under the same names; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from taufit.core.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Extra:
    """One optional library.

    Attributes:
        library: As `pip install` calls it.
        module: As `import` calls it.
        use: What taufit does with it.
        also: Libraries that come with it.
    """

    library: str
    module: str
    use: str
    also: tuple[str, ...] = ()


EXTRAS = {
    "sim": Extra("mujoco", "mujoco", "simulated arms"),
    "ros": Extra("rosbags", "rosbags", "ROS bags and MCAP files"),
    "hdf5": Extra("h5py", "h5py", "HDF5 and MATLAB v7.3 files"),
    "xacro": Extra("xacrodoc", "xacrodoc", "xacro robot descriptions"),
    "ros2": Extra("cyclonedds", "cyclonedds", "ROS 2 topics of a robot that is on"),
    "fleet": Extra("distributed", "distributed", "Dask clusters and object stores"),
    "plot": Extra("matplotlib", "matplotlib", "plots in notebooks"),
    "live": Extra("uvicorn", "uvicorn", "live pages in the browser", ("starlette",)),
    "pinocchio": Extra("pin", "pinocchio", "comparison with Pinocchio"),
    "figaroh": Extra("figaroh", "figaroh", "comparison with FIGAROH"),
}


def missing_extra(name: str, feature: str, alternative: str = "") -> MissingExtraError:
    """The error that says what is missing and how to install it.

    Args:
        name: Of the extra.
        feature: Needs it, as the beginning of a sentence.
        alternative: What else would do, as the end of one.
    """
    extra = EXTRAS[name]
    alternative_text = f", or {alternative}" if alternative else ""
    packages = " ".join([extra.library, *extra.also])
    return MissingExtraError(
        f"{feature} needs {extra.library}: install it with `pip install {packages}` "
        f"(it is the extra taufit[{name}]){alternative_text}."
    )


def installed_extras() -> dict[str, str | None]:
    """{extra: version of its library, or None where it is not installed}."""
    return {name: _version(extra) for name, extra in EXTRAS.items()}


def _version(extra: Extra) -> str | None:
    if find_spec(extra.module) is None:
        return None
    try:
        return metadata.version(extra.library)
    except metadata.PackageNotFoundError:
        return "installed"
