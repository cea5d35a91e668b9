"""Readers, one file per format. In: a file. Out: `Recording`s, or a table for a column map.

Not here: selection of the reader (`recording/read.py`), meaning of columns (column maps).
"""
