"""One file per format that is read. In: a file. Out: `Recording`s, or a table for a column map.

Left to others: which reader a file needs (`recording/read.py`), what columns mean (column maps).
"""
