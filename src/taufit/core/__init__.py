"""Common tools: errors, array types, safe files and names, statistics; and `compute`.

In: paths, bytes, plain numbers. Out: checked values, atomic files, cached results.
Elsewhere: anything that depends on robots.
"""
