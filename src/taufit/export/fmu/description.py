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
    is_fmi3 = fmi == "3.0"
    root = ET.Element(
        "fmiModelDescription",
        {
            "fmiVersion": fmi,
            "modelName": clean_name(title),
            "instantiationToken" if is_fmi3 else "guid": token,
            "generationTool": "taufit",
            "variableNamingConvention": "structured",
        },
    )
    state = "FMUState" if is_fmi3 else "FMUstate"
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
    if not is_fmi3:
        source_files = ET.SubElement(slave, "SourceFiles")
        for name in sources:
            ET.SubElement(source_files, "File", name=name)
    units = ET.SubElement(root, "UnitDefinitions")
    for name in sorted({"s", *(variable.unit for _, variable in variables.enumerate_variables())}):
        ET.SubElement(ET.SubElement(units, "Unit", name=name), "BaseUnit", BASE_UNITS[name])
    messages = ET.SubElement(root, "LogCategories")
    ET.SubElement(messages, "Category", name="logStatusError", description="why a call was refused")
    ET.SubElement(root, "DefaultExperiment", startTime="0", stepSize=repr(STEP))
    _list_variables(root, variables, is_fmi3)
    _list_structure(root, variables, is_fmi3)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _list_variables(root: ET.Element, variables: Variables, is_fmi3: bool) -> None:
    variable_list = ET.SubElement(root, "ModelVariables")
    time = Variable("time", "independent", "continuous", None, None, "s", "simulated time")
    for reference, variable in ((0, time), *variables.enumerate_variables()):
        attributes = {
            "name": variable.name,
            "valueReference": str(reference),
            "description": variable.description,
            "causality": variable.causality,
            "variability": variable.variability,
        }
        if variable.initial is not None:
            attributes["initial"] = variable.initial
        value = {"unit": variable.unit}
        if variable.start is not None:
            value["start"] = repr(variable.start)
        if is_fmi3:
            ET.SubElement(variable_list, "Float64", attributes | value)
        else:
            ET.SubElement(ET.SubElement(variable_list, "ScalarVariable", attributes), "Real", value)


def _list_structure(root: ET.Element, variables: Variables, is_fmi3: bool) -> None:
    """List outputs and initial unknowns; without a list of dependencies they depend on all."""
    structure = ET.SubElement(root, "ModelStructure")
    outputs = [
        k for k, variable in variables.enumerate_variables() if variable.causality == "output"
    ]
    unknown_inputs = [
        k for k, variable in variables.enumerate_variables() if variable.initial == "calculated"
    ]
    if is_fmi3:
        for kind, references in (("Output", outputs), ("InitialUnknown", unknown_inputs)):
            for k in references:
                ET.SubElement(structure, kind, valueReference=str(k))
        return
    for kind, references in (("Outputs", outputs), ("InitialUnknowns", unknown_inputs)):
        unknowns = ET.SubElement(structure, kind)
        for k in references:
            # Index from 1, with time first.
            ET.SubElement(unknowns, "Unknown", index=str(k + 1))


def build_description(identifier: str, sources: tuple[str, ...]) -> str:
    """sources/buildDescription.xml of FMI 3.0."""
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    build = ET.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ET.SubElement(build, "SourceFileSet", language="C99")
    for name in sources:
        ET.SubElement(files, "SourceFile", name=name)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
