"""Reproduction of the four papers that taufit implements. In: a paper's name. Out: its values and
ours.

Left to others: all computation; this room only requests and compares.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.papers.exhibit import (
        KINDS as KINDS,
        ComparedRow as ComparedRow,
        ComparedValue as ComparedValue,
        Exhibit as Exhibit,
        Paper as Paper,
        count_by_kind as count_by_kind,
    )
    from taufit.papers.paper_page import paper_page as paper_page
    from taufit.papers.papers import PAPERS as PAPERS, read_paper as read_paper

lazy_package(__name__)
