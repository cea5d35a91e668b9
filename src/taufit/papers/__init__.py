"""The four papers taufit implements, table by table. In: a paper's name. Out: its numbers and ours.

Left to others: everything that is computed; this room only asks and compares.
"""

from taufit.papers.exhibit import Entry, Exhibit, Paper
from taufit.papers.paper_page import paper_page
from taufit.papers.papers import PAPERS, read_paper

__all__ = ["PAPERS", "Entry", "Exhibit", "Paper", "paper_page", "read_paper"]
