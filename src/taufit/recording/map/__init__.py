"""Parsing of column maps. In: YAML data. Out: a checked `ColumnMap`.

Not here: finding the file (`recording/column_map.py`).
"""
