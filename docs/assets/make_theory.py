"""The figure of docs/theory.md, from the friction model itself. Needs matplotlib.

python docs/assets/make_theory.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from taufit.terms import TermInput
from taufit.terms.friction import Presliding

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "taufit"
mpl.rcParams["svg.fonttype"] = "none"


def main() -> None:
    """Write the figure beside this file."""
    import matplotlib.pyplot as plt

    step, widths = 1e-3, (0.0005, 0.003, 0.02)
    time = np.arange(0.0, 4.0, step)
    position = 0.03 * np.sin(np.pi * time)
    velocity = 0.03 * np.pi * np.cos(np.pi * time)
    friction = Presliding(widths, load=False)
    columns = friction.columns(TermInput(velocity, position, step=step), ())
    # The columns after the first are differences from it.
    states = columns[:, : len(widths)] + np.where(np.arange(len(widths)) > 0, columns[:, :1], 0.0)
    shown = time >= 2.0
    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    for k, (width, colour) in enumerate(
        zip(widths, ("#7aa6c2", "#4f86a8", "#2c6288"), strict=True)
    ):
        axes.plot(1e3 * position[shown], states[shown, k], color=colour, lw=1.2,
                  label=f"width {1e3 * width:g} mrad")  # fmt: skip
    total = states.mean(axis=1)
    axes.plot(
        1e3 * position[shown],
        total[shown],
        color="#c2541c",
        lw=2.2,
        label="all three, equal levels",
    )
    axes.set(xlabel="joint position, mrad", ylabel="friction / Coulomb friction")
    axes.grid(alpha=0.3)
    axes.legend(loc="center", frameon=False, fontsize=9)
    figure.savefig(Path(__file__).with_name("theory_presliding.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
