"""Drafts of column maps. In: a table without description. Out: a `Draft`, a map with its reasons.

Not here: reading the file (readers), applying the map (assemble).
"""

from taufit.recording.draft.draft import draft_map
from taufit.recording.draft.map_writer import Draft, draft_text

__all__ = ["Draft", "draft_map", "draft_text"]
