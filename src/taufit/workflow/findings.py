"""What is worth saying about recordings before they are fitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.diagnosis.evidence import Evidence
from taufit.diagnosis.load import load_finding
from taufit.recording import Finding
from taufit.workflow.training_data import TrainingData


def undescribed_load(
    data: TrainingData, evidence: Evidence | None, known: Sequence[Finding]
) -> list[Finding]:
    """A load that nobody mentioned; where something else is wrong, no load can be told."""
    signed = data.source.head.signed
    unsigned = signed is not None and not np.all(signed)
    unclear = any(f.severity == "error" or f.kind == "gains_unknown" for f in known)
    described = bool(np.any(data.robot.parameters)) and not any(r.payload for r in data.recordings)
    if evidence is None or unsigned or unclear or not described:
        return []
    found = load_finding(evidence)
    return [] if found is None else [found]


def noticed(data: TrainingData) -> list[Finding]:
    """What readers and conditioning noticed, gravest first."""
    found = [*(f for r in data.recordings for f in r.findings), *data.source.head.findings]
    return [f for f in found if f.severity == "error"] + [
        f for f in found if f.severity == "warning"
    ]


def recording_warnings(data: TrainingData) -> list[str]:
    """Findings worth a warning, in words."""
    grave = noticed(data)
    reasons = [str(finding) for finding in grave]
    carried = {r.payload for r in data.recordings if r.payload}
    if carried:
        masses = ", ".join(f"{mass:g} kg" for mass in sorted(carried))
        reasons.append(
            f"the arm carried {masses}: the fitted last link contains that payload. Fit an empty "
            "arm for `taufit payload`."
        )
    return reasons
