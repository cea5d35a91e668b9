"""What the columns of a log are, found out with its owner. In: a file. Out: a column map, a fit.

Left to others: the first guess (recording.draft), reading (recording), fitting (workflow).
"""
