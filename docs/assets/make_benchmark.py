"""The figure of docs/paper.md, from the results of the open benchmark. Needs matplotlib.

python docs/assets/make_benchmark.py
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "taufit"
mpl.rcParams["svg.fonttype"] = "none"
HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks" / "open" / "results.json"
INK = {"light": ("#1b2733", "#d3dae0", "#0a5fa8"), "dark": ("#e3e9ee", "#35424d", "#6fb4f0")}
MARKERS = {
    "plain": ("s", "#b04a0a"),
    "figaroh": ("^", "#0b6e45"),
    "aurt": ("v", "#855400"),
    "mujoco_sysid": ("D", "#7a4fa0"),
    "boosting": ("x", "#82909c"),
}


def main() -> None:
    """Write the figure in both schemes beside this file."""
    import matplotlib.pyplot as plt

    results = json.loads(RESULTS.read_text("utf-8"))
    cells = [c for c in results["cells"] if c["task"] == "unseen motion" and "value" in c]
    ours = {c["arm"]: c["value"] for c in cells if c["tool"] == "taufit"}
    arms = sorted(ours, key=lambda arm: -ours[arm])
    for scheme, (ink, line, model) in INK.items():
        figure, axes = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
        for tool, (marker, colour) in {**MARKERS, "taufit": ("o", model)}.items():
            points = [(c["value"], arms.index(c["arm"])) for c in cells if c["tool"] == tool]
            title = results["tools"][tool]["title"]
            axes.scatter(*zip(*points, strict=True), marker=marker, color=colour, s=34, label=title)
        axes.set_xscale("log")
        axes.set_yticks(range(len(arms)), [results["arms"][arm]["title"] for arm in arms])
        axes.set_xlabel("nrmse on unseen motion", color=ink)
        axes.grid(axis="both", color=line, lw=0.6)
        axes.tick_params(colors=ink, which="both")
        for side in axes.spines.values():
            side.set_color(line)
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes.legend(**place, fontsize=8, frameon=False, labelcolor=ink)
        file = HERE / f"open_benchmark_{scheme}.svg"
        figure.savefig(file, transparent=True, metadata={"Date": None})
        plt.close(figure)
        print(file.name)


if __name__ == "__main__":
    main()
