"""Provenance sections: recordings, files with hashes, settings, versions."""

from __future__ import annotations

import html
import json

import numpy as np

from taufit.core.number_text import count_text, fixed, significant
from taufit.model.record_file import provenance_to_dict
from taufit.report.model_view import ModelView
from taufit.report.page import Section, bullets, code_block, paragraph


def _delay_text(delay_s: float | tuple[float, ...]) -> str:
    return ", ".join(fixed(1000 * float(delay), 1) for delay in np.atleast_1d(delay_s))


def provenance(view: ModelView) -> Section:
    """Provenance as in the model file, and the command that repeats the fit."""
    origin = view.model.training.provenance
    if origin is None:
        return Section("Provenance", paragraph("This model has no provenance."), "not recorded")
    text = json.dumps(provenance_to_dict(origin), indent=1)
    repeat_command = ""
    if view.model_file and origin.sources.get("arguments"):
        repeat_command = paragraph(
            "The same fit again, refused if a file has changed:"
        ) + code_block(view.command("fit", "--again", view.model_file, "-o", "again.json"))
    gist = f"taufit {origin.taufit}, {origin.created[:10]}"
    body = f"{repeat_command}<details><summary>Files, hashes, settings</summary><pre tabindex='0'>"
    return Section("Provenance", f"{body}{html.escape(text)}</pre></details>", gist)


def recordings(view: ModelView) -> Section | None:
    """Facts and findings of each run."""
    if not view.runs:
        return None
    out = []
    remarks = 0
    for run in view.runs:
        samples = run.samples
        out.append(f"<h3>{html.escape(run.name)}</h3>")
        facts = [
            f"{fixed(run.score.seconds, 1)} s in motion on a grid of {samples.rate_hz:g} Hz",
            f"torque behind motion by {_delay_text(samples.delay_s)} ms",
        ]
        if samples.gain is not None and not np.allclose(samples.gain, 1.0):
            gains = ", ".join(significant(float(g)) for g in samples.gain)
            facts.append(f"torque per ampere {gains} N m/A")
        out.append(paragraph("; ".join(facts) + "."))
        findings = [str(f) for f in samples.findings] + list(run.score.findings)
        remarks += len(findings)
        if findings:
            out.append(bullets(findings))
    gist = f"{count_text(len(view.runs), 'recording')}, {count_text(remarks, 'remark')}"
    return Section("Recordings", "".join(out), gist)
