"""Font of the formulas, cut to the signs that formulas use when the documentation is built.

Without a font that has a table of mathematical constants, browsers leave brackets and bars at
letter size. STIX Two Math (SIL Open Font License 1.1, whose text stays in the font's names) comes
with the package ziamath; nothing of it is in the repository.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

# Latin, Greek, punctuation, arrows, operators, brackets, bold and italic letters.
_SIGNS = (
    (0x20, 0x7E), (0xA0, 0xFF), (0x370, 0x3FF), (0x2010, 0x2044), (0x2190, 0x21D5),
    (0x2200, 0x22A5), (0x2308, 0x230B), (0x239B, 0x23AE), (0x27E6, 0x27EF), (0x1D400, 0x1D467),
    (0x1D6A8, 0x1D71B),
)  # fmt: skip
_NAME = "assets/formula.woff"


def on_post_build(config: Any) -> None:
    """Write the font beside the other files of the site."""
    from fontTools import subset

    options = subset.Options(flavor="woff", name_IDs=["*"], layout_features=["ssty"])
    font = subset.load_font(str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=[sign for a, b in _SIGNS for sign in range(a, b + 1)])
    cutter.subset(font)
    target = Path(config["site_dir"]) / _NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)
