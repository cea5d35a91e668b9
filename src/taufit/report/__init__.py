"""Pages people look at. In: models, samples, verdicts. Out: one self-contained HTML file.

Left to others: every number on the page.
"""
