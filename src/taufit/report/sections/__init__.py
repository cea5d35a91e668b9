"""Sections of a page about a model. In: a `ModelView`. Out: a `Section`, or None
without content.

Not here: the page around them (`report/page.py`) and the computation of the numbers.
"""

from collections.abc import Callable

from taufit.report.model_view import ModelView
from taufit.report.page import Section
from taufit.report.sections.friction import friction, friction_and_temperature, run_by_run_section
from taufit.report.sections.parameters import (
    identifiability,
    information_shares,
    nominal_robot,
    parameters,
)
from taufit.report.sections.provenance import provenance, recordings
from taufit.report.sections.torque import residuals, torque_signs
from taufit.report.sections.verdict import per_joint, verdict_section, warnings
from taufit.report.sections.zeros_and_compensators import zeros_and_compensators

MODEL_SECTIONS: tuple[Callable[[ModelView], Section | None], ...] = (
    verdict_section,
    warnings,
    per_joint,
    torque_signs,
    friction,
    friction_and_temperature,
    run_by_run_section,
    zeros_and_compensators,
    parameters,
    identifiability,
    information_shares,
    nominal_robot,
    residuals,
    recordings,
    provenance,
)

__all__ = ["MODEL_SECTIONS"]
