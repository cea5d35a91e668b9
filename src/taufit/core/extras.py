"""Optional libraries: purpose and installation.

`pyproject.toml` lists the extras under equal names; a test compares the two.
"""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

from taufit.core.dataclasses import dataclass
from taufit.core.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Extra:
    """Optional library.

    Attributes:
        library: Package name for `pip install`.
        module: Module name for `import`.
        use: Purpose in taufit.
        also: Further packages installed with it.
    """

    library: str
    module: str
    use: str
    also: tuple[str, ...] = ()


EXTRAS = {
    "sim": Extra("mujoco", "mujoco", "simulated arms"),
    "ros": Extra("rosbags", "rosbags", "ROS bags and MCAP files"),
    "arrow": Extra("pyarrow", "pyarrow", "Parquet files of other programs, LeRobot, Arrow"),
    "hdf5": Extra("h5py", "h5py", "HDF5 and MATLAB v7.3 files"),
    "xacro": Extra("xacrodoc", "xacrodoc", "xacro robot descriptions"),
    "ros2": Extra("cyclonedds", "cyclonedds", "ROS 2 topics of a robot that is on"),
    "fleet": Extra("distributed", "distributed", "Dask clusters and object stores"),
    "casadi": Extra("casadi", "casadi", "models for planning in CasADi"),
    "plot": Extra("matplotlib", "matplotlib", "plots in notebooks"),
    "live": Extra("uvicorn", "uvicorn", "live pages in the browser", ("starlette",)),
    "pinocchio": Extra("pin", "pinocchio", "comparison with Pinocchio"),
    "figaroh": Extra("figaroh", "figaroh", "comparison with FIGAROH"),
}


def missing_extra(name: str, feature: str, alternative: str = "") -> MissingExtraError:
    """Create the error for a missing optional library, with the installation command.

    Args:
        name: Name of the extra.
        feature: Feature that needs it, as the beginning of a sentence.
        alternative: Alternative, as the end of a sentence.
    """
    extra = EXTRAS[name]
    alternative_text = f", or {alternative}" if alternative else ""
    packages = " ".join([extra.library, *extra.also])
    return MissingExtraError(
        f"{feature} needs {extra.library}: install it with `pip install {packages}` "
        f"(it is the extra taufit[{name}]){alternative_text}."
    )


def installed_extras() -> dict[str, str | None]:
    """Version of the library of each extra, or None if not installed."""
    return {name: _version(extra) for name, extra in EXTRAS.items()}


def _version(extra: Extra) -> str | None:
    if find_spec(extra.module) is None:
        return None
    try:
        return metadata.version(extra.library)
    except metadata.PackageNotFoundError:
        return "installed"
