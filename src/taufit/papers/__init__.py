"""The four papers taufit implements, table by table. In: a paper's name. Out: its numbers and ours.

Left to others: everything that is computed; this room only asks and compares.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.papers.exhibit import Entry as Entry, Exhibit as Exhibit, Paper as Paper
    from taufit.papers.paper_page import paper_page as paper_page
    from taufit.papers.papers import PAPERS as PAPERS, read_paper as read_paper

lazy_room(__name__)
