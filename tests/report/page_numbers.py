"""Numbers of a page as a reader sees them, and what is wrong with them."""

from __future__ import annotations

import html
import re
from typing import Any

MINUS = "\N{MINUS SIGN}"
UNITS = r"N m|N|kg m²|kg m|kg|s|Hz|%|×|rad/s|m/s|ms|mm|N m/A|°C|rad|m"


def visible_text(page: str) -> str:
    """Words of a page without scripts, styles, drawings and code."""
    text = re.sub(r"<(script|style|code|pre|svg)\b.*?</\1>", " ", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def faults(page: str) -> list[str]:
    """Negative zeros, needless exponents and figures of the first screen without a unit."""
    text = visible_text(page)
    out = [f"negative zero: {m[0]}" for m in re.finditer(rf"[-{MINUS}]0(?:\.0+)?(?![\d.])", text)]
    for found in re.finditer(r"(\d(?:\.\d+)?)(?:e| × 10)([-−⁻]?[\d⁰¹²³⁴-⁹]+)", text):
        power = int(found[2].translate(str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")))
        if 1e-3 <= float(found[1]) * 10.0**power < 99_999:
            out.append(f"needless exponent: {found[0]}")
    figures = re.findall(r'<div class="numbers">(.*?)</aside>', page, re.S)
    for value in re.findall(r"<div><b>(.*?)</b><span>(.*?)</span>", "".join(figures)):
        words = re.sub(r"<[^>]+>", "", value[0])
        has_unit = re.search(rf"({UNITS})$", words.strip())
        if not has_unit and not re.search(r"correlation|parameters", value[1]):
            out.append(f"no unit: {words} {value[1]}")
    return out


def disagreements(page: str, terminal: str, data: dict[str, Any]) -> list[str]:
    """Quantities that page, terminal and JSON give differently, beyond their rounding."""
    out = []
    text = visible_text(page)
    # None where no joint has measured torque: nothing to compare.
    headline = None if data["unexplained"] is None else f"{100 * data['unexplained']:.1f}"
    for name, said in (("page", text), ("terminal", terminal)):
        shown = re.findall(r"([\d.]+) % of the torque is\s+left\s+unexplained", said)
        if set(shown) != ({headline} - {None}):
            out.append(f"unexplained on the {name}: {shown}, JSON {headline}")
    captions = re.findall(r'class="note">(?:([\d.]+) % · )?RMSE ([\d.]+) N', page)
    judged = (data["holdout"] or [data])[0]
    for j, ((share, rmse), value) in enumerate(zip(captions, judged["rmse"], strict=True), 1):
        if abs(float(rmse) - value) > 0.005 * value + 1e-9:
            out.append(f"RMSE of joint {j}: page {rmse}, JSON {value}")
        nrmse = data["grades"][j - 1]["nrmse"]
        if share and nrmse is not None and abs(float(share) - 100 * nrmse) > 0.0501:
            out.append(f"unexplained of joint {j}: page {share}, JSON {100 * nrmse}")
    floor = re.search(r"The floor, ([\d.]+) %.*?leaves ([\d.]+) %", text, re.S)
    ratio = re.search(r"([\d.]+) ×\s+the floor", text)
    if (floor is None) != (ratio is None) or (data["headroom"] is None) != (ratio is None):
        out.append("headroom is not everywhere")
    elif floor is not None and ratio is not None:
        leaves, floor_share, shown = float(floor[2]), float(floor[1]), float(ratio[1])
        out += [f"{leaves} / {floor_share} is not {shown}"] * (
            abs(leaves / floor_share - shown) > 0.051 + 0.01 * shown
        )
    return out
