"""Notebook display of objects. In: a robot, recording, model or result. Out: HTML with charts, or
matplotlib axes.

Not here: pages written to files (report), the computation of the numbers.
"""

from taufit.report.notebook.html import html
from taufit.report.notebook.plots import plot_friction, plot_recording, plot_samples, plot_torque

__all__ = ["html", "plot_friction", "plot_recording", "plot_samples", "plot_torque"]
