"""Functional mock-up unit of a model: description and sources, as texts."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

from taufit.core.dataclasses import dataclass
from taufit.export.c import c_name, c_texts
from taufit.export.c.names import set_prefix
from taufit.export.fmu.description import build_description, model_description
from taufit.export.fmu.drives import drive_functions, drive_tables, presliding, slow_parts
from taufit.export.fmu.variables import Variables, forward_variables, inverse_variables
from taufit.model.fitted_model import FittedModel

FMI_VERSIONS = ("2.0", "3.0")
KINDS = ("inverse", "forward")
SOURCES = ("arm.c", "unit.c", "motion.c", "fmi.c")
# Maximum communication step [s]: a longer one is a mistake, and would take minutes.
MAXIMUM_STEP_S = 1000.0


@dataclass(frozen=True, slots=True)
class FmuSources:
    """Texts of one unit.

    Attributes:
        fmi: FMI version, 2.0 or 3.0.
        identifier: Name of the binary.
        description: modelDescription.xml.
        sources: File names and their texts, including headers.
    """

    fmi: str
    identifier: str
    description: str
    sources: dict[str, str]


def make_unit(model: FittedModel, fmi: str = "2.0", kind: str = "inverse") -> FmuSources:
    """Unit of a model: inverse dynamics (motion in, torque out) or forward dynamics."""
    assert fmi in FMI_VERSIONS and kind in KINDS
    name = c_name(model)
    if kind == "inverse":
        variables, marks = inverse_variables(model), {}
        state = "  arm_state friction;\n  double sampled;\n  int samples;"
    else:
        variables = forward_variables(model, presliding(model))
        marks = {"TABLES": drive_tables(model), "LEVEL": drive_functions(model)}
        state = "\n".join(
            [
                *(
                    f"  double {field}[ARM_JOINTS];"
                    for field in ("half", "last", "bristle", "before", "load", "integral")
                ),
                f"  double slow[ARM_JOINTS][{slow_parts(model)[0].shape[1]}];",
                "  double h;",
            ]
        )
    needs_temperature = "temperature" in variables.places
    marks |= {
        "STATE": state,
        "TEMPERATURE": "u->value + TEMPERATURE" if needs_temperature else "NULL",
        "LONGEST": repr(MAXIMUM_STEP_S),
        **_numbers(variables),
    }
    texts = c_texts(model, "arm")
    templates = {
        "unit.h": "unit.h",
        "unit.c": "unit.c",
        "motion.c": f"{kind}.c",
        "fmi.c": f"fmi{fmi[0]}.c",
        "fmi_common.h": "fmi_common.h",
    }
    sources = {"arm.h": texts.header, "arm.c": texts.source}
    sources |= {
        file: set_prefix(_fill_template(_template(origin), marks), name)
        for file, origin in templates.items()
    }
    identifier = f"{name}_{kind}"
    title = f"{model.robot.name}: {kind} dynamics"
    # Token from the content, so that equal models give equal archives.
    description = model_description(fmi, identifier, title, "@TOKEN@", variables, SOURCES)
    content = description + "".join(sources.values())
    token = "{" + hashlib.sha256(content.encode()).hexdigest()[:32] + "}"
    sources["unit.h"] = sources["unit.h"].replace("@TOKEN@", token)
    if fmi == "3.0":
        sources["buildDescription.xml"] = build_description(identifier, SOURCES)
    return FmuSources(
        fmi,
        identifier,
        model_description(fmi, identifier, title, token, variables, SOURCES),
        sources,
    )


def _numbers(variables: Variables) -> dict[str, str]:
    places = (f"#define {name.upper()} {place}" for name, place in variables.places.items())
    return {
        "VARIABLES": str(variables.count(2)),
        "INPUTS": str(variables.count(0)),
        "STARTS": str(variables.count(1)),
        "PLACES": "\n".join(places),
        "START": ", ".join(repr(float(x)) for x in variables.starts),
    }


def _template(file: str) -> str:
    return files("taufit.export.fmu").joinpath(file).read_text(encoding="utf-8")


def _fill_template(text: str, marks: dict[str, str]) -> str:
    """Replace all marks in one pass, except that of the token."""
    return re.sub("@([A-Z]+)@", lambda match: marks.get(match[1], match[0]), text)
