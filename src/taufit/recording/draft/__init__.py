"""Drafts of column maps. In: a table without description. Out: a `Draft`, a map with its reasons.

Not here: reading the file (readers), applying the map (assemble).
"""

from taufit.recording.draft.draft import Draft, draft_map, draft_text

__all__ = ["Draft", "draft_map", "draft_text"]
