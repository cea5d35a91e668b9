"""How the robot's own description does on the training data."""

from __future__ import annotations

from taufit.report.model_view import ModelView
from taufit.report.page import Section, paragraph, table


def nominal_robot(view: ModelView) -> Section | None:
    """RMSE per joint of the nominal robot, with fitted friction, and of the fitted model."""
    compared = view.nominal
    if compared is None:
        return None
    rows = [
        ("nominal robot", *(float(x) for x in compared.nominal.rmse)),
        ("nominal links, fitted friction", *(float(x) for x in compared.with_friction.rmse)),
        ("fitted", *(float(x) for x in compared.fitted.rmse)),
    ]
    words = paragraph(
        "RMSE in N m on the training data. Identification removes "
        f"{100 * compared.reduction:.0f} % of the error of the robot's description."
    )
    listed = table(("model", *(f"J{i + 1}" for i in range(view.joints))), rows)
    return Section("Comparison with the nominal robot", words + listed)
