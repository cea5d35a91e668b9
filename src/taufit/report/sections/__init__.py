"""The sections of a page about a model, one file each. In: a `ModelView`. Out: a `Section`, or None
where there is nothing to show.

Left to others: the page around them (`report/page.py`), every number on it.
"""

from collections.abc import Callable

from taufit.report.model_view import ModelView
from taufit.report.page import Section
from taufit.report.sections.friction import friction
from taufit.report.sections.friction_and_temperature import friction_and_temperature
from taufit.report.sections.from_data import from_data
from taufit.report.sections.identifiability import identifiability
from taufit.report.sections.nominal_robot import nominal_robot
from taufit.report.sections.parameters import parameters
from taufit.report.sections.provenance import provenance
from taufit.report.sections.recordings import recordings
from taufit.report.sections.residuals import residuals
from taufit.report.sections.run_by_run import run_by_run_section
from taufit.report.sections.torque import torque
from taufit.report.sections.torque_signs import torque_signs
from taufit.report.sections.verdict import verdict_section
from taufit.report.sections.zeros_and_compensators import zeros_and_compensators

MODEL_SECTIONS: tuple[Callable[[ModelView], Section | None], ...] = (
    verdict_section,
    torque,
    torque_signs,
    run_by_run_section,
    residuals,
    friction,
    friction_and_temperature,
    zeros_and_compensators,
    parameters,
    identifiability,
    from_data,
    nominal_robot,
    recordings,
    provenance,
)

__all__ = ["MODEL_SECTIONS"]
