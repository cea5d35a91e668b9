"""modelDescription.xml of FMI 2.0 and 3.0, and the build description of 3.0."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from taufit.core.names import clean_name
from taufit.export.fmu.variables import Variable, Variables

# Exponents of the base units, and the offset of degrees Celsius.
BASE_UNITS: dict[str, dict[str, str]] = {
    "s": {"s": "1"},
    "rad": {"rad": "1"},
    "rad/s": {"rad": "1", "s": "-1"},
    "rad/s2": {"rad": "1", "s": "-2"},
    "m": {"m": "1"},
    "m/s": {"m": "1", "s": "-1"},
    "m/s2": {"m": "1", "s": "-2"},
    "N": {"kg": "1", "m": "1", "s": "-2"},
    "N.m": {"kg": "1", "m": "2", "s": "-2"},
    "degC": {"K": "1", "offset": "273.15"},
    "N.m/rad": {"kg": "1", "m": "2", "s": "-2", "rad": "-1"},
    "N.m.s/rad": {"kg": "1", "m": "2", "s": "-1", "rad": "-1"},
    "N.m/(rad.s)": {"kg": "1", "m": "2", "s": "-3", "rad": "-1"},
    "N/m": {"kg": "1", "s": "-2"},
    "N.s/m": {"kg": "1", "s": "-1"},
    "N/(m.s)": {"kg": "1", "s": "-3"},
}
STEP = 0.001


def model_description(
    fmi: str,
    identifier: str,
    title: str,
    token: str,
    variables: Variables,
    sources: tuple[str, ...],
) -> str:
    """modelDescription.xml of one unit.

    Args:
        fmi: FMI version, 2.0 or 3.0.
        identifier: Model identifier, the name of its binary.
        title: Model name; escaped here.
        token: Token that links binary and description.
        variables: Inputs, parameters and outputs.
        sources: Source file names in the order of compilation.
    """
    newer = fmi == "3.0"
    root = ET.Element(
        "fmiModelDescription",
        {
            "fmiVersion": fmi,
            "modelName": clean_name(title),
            "instantiationToken" if newer else "guid": token,
            "generationTool": "taufit",
            "variableNamingConvention": "structured",
        },
    )
    state = "FMUState" if newer else "FMUstate"
    slave = ET.SubElement(
        root,
        "CoSimulation",
        {
            "modelIdentifier": identifier,
            "canHandleVariableCommunicationStepSize": "true",
            f"canGetAndSet{state}": "true",
            f"canSerialize{state}": "true",
        },
    )
    if not newer:
        listed = ET.SubElement(slave, "SourceFiles")
        for name in sources:
            ET.SubElement(listed, "File", name=name)
    units = ET.SubElement(root, "UnitDefinitions")
    for name in sorted({"s", *(one.unit for _, one in variables.each())}):
        ET.SubElement(ET.SubElement(units, "Unit", name=name), "BaseUnit", BASE_UNITS[name])
    messages = ET.SubElement(root, "LogCategories")
    ET.SubElement(messages, "Category", name="logStatusError", description="why a call was refused")
    ET.SubElement(root, "DefaultExperiment", startTime="0", stepSize=repr(STEP))
    _list_variables(root, variables, newer)
    _list_structure(root, variables, newer)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _list_variables(root: ET.Element, variables: Variables, newer: bool) -> None:
    listed = ET.SubElement(root, "ModelVariables")
    time = Variable("time", "independent", "continuous", None, None, "s", "simulated time")
    for reference, one in ((0, time), *variables.each()):
        about = {
            "name": one.name,
            "valueReference": str(reference),
            "description": one.description,
            "causality": one.causality,
            "variability": one.variability,
        }
        if one.initial is not None:
            about["initial"] = one.initial
        value = {"unit": one.unit}
        if one.start is not None:
            value["start"] = repr(one.start)
        if newer:
            ET.SubElement(listed, "Float64", about | value)
        else:
            ET.SubElement(ET.SubElement(listed, "ScalarVariable", about), "Real", value)


def _list_structure(root: ET.Element, variables: Variables, newer: bool) -> None:
    """List outputs and initial unknowns; without a list of dependencies they depend on all."""
    structure = ET.SubElement(root, "ModelStructure")
    outputs = [k for k, one in variables.each() if one.causality == "output"]
    unknown = [k for k, one in variables.each() if one.initial == "calculated"]
    if newer:
        for kind, references in (("Output", outputs), ("InitialUnknown", unknown)):
            for k in references:
                ET.SubElement(structure, kind, valueReference=str(k))
        return
    for kind, references in (("Outputs", outputs), ("InitialUnknowns", unknown)):
        listed = ET.SubElement(structure, kind)
        for k in references:
            # Index from 1, with time first.
            ET.SubElement(listed, "Unknown", index=str(k + 1))


def build_description(identifier: str, sources: tuple[str, ...]) -> str:
    """sources/buildDescription.xml of FMI 3.0."""
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    build = ET.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ET.SubElement(build, "SourceFileSet", language="C99")
    for name in sources:
        ET.SubElement(files, "SourceFile", name=name)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
