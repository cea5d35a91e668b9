"""Parameters in words with their units."""

from __future__ import annotations

from taufit.core.parameters import parse_name
from taufit.model.fitted_model import FittedModel

_LINK_WORDS = {"m": ("mass", "kg")}
_LINK_WORDS |= {f"h{x}": (f"mass times centre, {x}", "kg m") for x in "xyz"}
_LINK_WORDS |= {
    f"I{a}{b}": (f"inertia {a}{b}", "kg m²") for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
}
_JOINT_WORDS = {
    "rotor": "rotor inertia",
    "offset": "torque offset",
    "coulomb": "Coulomb friction",
    "static": "static friction",
    "viscous": "viscous friction",
    "viscous2": "viscous friction, second order",
    "viscous3": "viscous friction, third order",
    "load": "friction per load torque",
    "stiffness": "spring stiffness",
}


def parameter_words(model: FittedModel, name: str) -> tuple[str, str]:
    """Name of a parameter in words, and its unit."""
    kind, number, quantity = parse_name(name)
    if kind == "link" and quantity in _LINK_WORDS:
        words, unit = _LINK_WORDS[quantity]
        return f"Link {number + 1}: {words}", unit
    units = {p.name: p.unit for p in model.term_sum.parameters}
    unit = (
        {"rotor": "kg m^2", "offset": "N m", **units}.get(quantity, "")
        .replace("^2", "²")
        .replace("^3", "³")
        .replace("^", "")
    )
    stem, _, rest = quantity.partition("_")
    if quantity in _JOINT_WORDS:
        words = _JOINT_WORDS[quantity]
    elif stem == "ripple":
        wave, _, order = rest.partition("_")
        words = f"ripple, {order} per turn, {'sine' if wave == 'sin' else 'cosine'}"
    elif stem == "presliding":
        words = f"presliding element {rest}"
    else:
        words = quantity.replace("_", " ")
    owner = f"Joint {number + 1}" if number >= 0 else kind
    return f"{owner}: {words}", "" if unit == "1" else unit
