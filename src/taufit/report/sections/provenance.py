"""Where the model came from: files with their hashes, settings, versions."""

from __future__ import annotations

import html
import json

from taufit.model.record_file import provenance_to_dict
from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph


def provenance(view: ModelView) -> Section:
    """As the model file has it."""
    known = view.model.training.provenance
    if known is None:
        return Section("Provenance", paragraph("This model does not say where it came from."))
    text = json.dumps(provenance_to_dict(known), indent=1)
    return Section("Provenance", f"<pre tabindex='0'>{html.escape(text)}</pre>")
