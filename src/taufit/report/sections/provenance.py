"""Provenance sections: recordings, files with hashes, settings, versions."""

from __future__ import annotations

import html
import json

import numpy as np

from taufit.model.record_file import provenance_to_dict
from taufit.report.model_view import ModelView
from taufit.report.page import Section, bullets, paragraph


def provenance(view: ModelView) -> Section:
    """Provenance as in the model file."""
    origin = view.model.training.provenance
    if origin is None:
        return Section("Provenance", paragraph("This model has no provenance."))
    text = json.dumps(provenance_to_dict(origin), indent=1)
    return Section("Provenance", f"<pre tabindex='0'>{html.escape(text)}</pre>")


def recordings(view: ModelView) -> Section | None:
    """Facts and findings of each run."""
    if not view.runs:
        return None
    out = []
    for run in view.runs:
        samples = run.samples
        out.append(f"<h3>{html.escape(run.name)}</h3>")
        facts = [
            f"{run.score.seconds:.1f} s in motion on a grid of {samples.rate_hz:g} Hz",
            f"friction delayed by {1000 * samples.delay_s:.1f} ms",
        ]
        if samples.gain is not None and not np.allclose(samples.gain, 1.0):
            facts.append("torque per ampere " + ", ".join(f"{g:.3f}" for g in samples.gain))
        out.append(paragraph("; ".join(facts) + "."))
        findings = [str(f) for f in samples.findings] + list(run.score.findings)
        if findings:
            out.append(bullets(findings))
    return Section("Recordings", "".join(out))
