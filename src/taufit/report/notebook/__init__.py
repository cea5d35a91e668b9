"""Nouns as notebooks show them. In: a noun. Out: HTML with the report's charts, or matplotlib axes.

Left to others: pages that are files (report), every number shown.
"""

from taufit.report.notebook.html import html
from taufit.report.notebook.plots import plot_friction, plot_recording, plot_samples, plot_torque

__all__ = ["html", "plot_friction", "plot_recording", "plot_samples", "plot_torque"]
