"""Known payload of a model: part rigidly attached to the last link, with its uncertainty."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, TaufitError
from taufit.core.fields import Field
from taufit.core.files import write_text
from taufit.core.plain_data import read_json
from taufit.robot.inertia import from_centre_of_mass, pseudo_inertia, to_centre_of_mass

FORMAT = "taufit-payload"
# Density of aluminium [kg/m^3], for the inertia of payloads given by mass and centre only.
_DENSITY = 2700.0
# Negative eigenvalue of the pseudo-inertia, relative to its trace, that is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """Part rigidly attached to the last link.

    Attributes:
        parameters: Ten inertial parameters in the last link's frame.
        covariance: Their covariance; None if the payload is known exactly.
    """

    parameters: Float[Array, " 10"]
    covariance: Float[Array, "10 10"] | None = None

    @classmethod
    def from_mass(
        cls,
        mass: float,
        centre: Sequence[float] | Float[Array, " 3"] = (0.0, 0.0, 0.0),
        inertia: Float[Array, "3 3"] | None = None,
    ) -> Payload:
        """Payload from mass [kg], centre in the last link's frame [m] and inertia about it.

        Default inertia: that of an aluminium sphere [kg m^2].
        """
        if not (np.isfinite(mass) and mass > 0.0) or not np.all(np.isfinite(centre)):
            raise InfeasibleError(f"a payload has a positive mass and a finite centre, not {mass}.")
        if inertia is None:
            radius = (mass / _DENSITY * 3.0 / (4.0 * np.pi)) ** (1.0 / 3.0)
            inertia = 0.4 * mass * radius**2 * np.eye(3)
        payload = cls(from_centre_of_mass(mass, np.asarray(centre, float), np.asarray(inertia)))
        pseudo = pseudo_inertia(payload.parameters)
        smallest = float(np.linalg.eigvalsh(pseudo)[0])
        if smallest < -_ROUNDING * float(np.trace(pseudo)):
            raise InfeasibleError(
                "this payload is not physically possible: its pseudo-inertia has the eigenvalue "
                f"{smallest:.3g}. Check the moments of inertia about the centre of mass."
            )
        return payload

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.parameters[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        mass, centre, inertia = to_centre_of_mass(self.parameters)
        covariance = None if self.covariance is None else self.covariance.tolist()
        return {
            "format": FORMAT,
            "version": 1,
            "frame": "last link",
            "mass": float(mass),
            "com": np.asarray(centre).tolist(),
            "inertia": np.asarray(inertia).tolist(),
            "parameters": self.parameters.tolist(),
            "covariance": covariance,
        }


def payload_from_field(file: Field) -> Payload:
    """Payload of a file; invalid values raise with their place."""
    if file["format"].value != FORMAT:
        raise TaufitError(
            f"{file.source} is not a payload file. `taufit payload ... -o FILE` writes one."
        )
    parameters = file["parameters"].numbers(10)
    covariance = None
    if not file["covariance"].missing:
        covariance = file["covariance"].matrix(10, 10)
    mass, centre, inertia = to_centre_of_mass(parameters)
    Payload.from_mass(float(mass), centre, inertia)
    return Payload(parameters, covariance)


def read_payload(path: str | os.PathLike[str]) -> Payload:
    """Read the payload file that `taufit payload ... -o FILE` writes."""
    data = read_json(path, "a payload file")
    if not isinstance(data, dict):
        raise TaufitError(f"{path} is not a payload file.")
    return payload_from_field(Field(data, str(path)))


def write_payload(payload: Payload, path: str | os.PathLike[str]) -> None:
    """Write a payload as JSON."""
    import json

    write_text(path, json.dumps(payload.to_dict(), allow_nan=False, indent=1) + "\n")


def parse_payload(text: str) -> Payload:
    """Payload from `MASS[,CX,CY,CZ]` (last link's frame, m) or from the path of a payload file."""
    if Path(text).suffix == ".json":
        if not Path(text).exists():
            raise TaufitError(
                f"there is no payload file {text}. `taufit payload MODEL RECORDING -o "
                f"{shlex.quote(text)}` writes one."
            )
        return read_payload(text)
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    # Squares of values above a hundred tonnes would overflow.
    if len(values) not in (1, 4) or not np.all(np.abs(values) < 1e5):
        raise TaufitError(
            f"{text!r} is no payload: give MASS,CX,CY,CZ (kg, m in the last link's frame), for "
            "example 2.5,0,0,0.05, or a file that `taufit payload ... -o FILE` wrote."
        )
    return Payload.from_mass(values[0], values[1:] or (0.0, 0.0, 0.0))
