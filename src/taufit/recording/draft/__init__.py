"""First column maps. In: a table nobody has described. Out: a `Draft`, a map with its reasons.

Left to others: reading the file (readers), applying the map (assemble).
"""

from taufit.recording.draft.draft import Draft, draft_map, draft_text

__all__ = ["Draft", "draft_map", "draft_text"]
