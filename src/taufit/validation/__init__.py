"""Whether to believe a model. In: a fitted model and samples it has not seen. Out: figures, verdicts.

Left to others: pictures (report).
"""
