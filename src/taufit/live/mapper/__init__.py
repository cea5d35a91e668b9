"""Column mapping of a recording in the browser. In: a file. Out: a column map, a fit.

Not here: drafting (recording.draft), reading (recording), fitting (workflow).
"""
