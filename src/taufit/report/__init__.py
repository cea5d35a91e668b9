"""HTML reports. In: models, samples, scores, motions. Out: one self-contained HTML text.

Not here: the computation of the numbers shown.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.report.fit_page import fit_page as fit_page, model_page as model_page
    from taufit.report.model_view import ReportRun as ReportRun
    from taufit.report.motion_page import motion_page as motion_page
    from taufit.report.page import Section as Section, render_page as render_page

lazy_package(__name__)
