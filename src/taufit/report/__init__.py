"""Pages people look at. In: models, samples, scores, motions. Out: one self-contained HTML text.

Left to others: every number on the page.
"""

from taufit.report.fit_page import fit_page, model_page
from taufit.report.model_view import Run
from taufit.report.motion_page import motion_page
from taufit.report.page import Section, page

__all__ = ["Run", "Section", "fit_page", "model_page", "motion_page", "page"]
