"""A column map as data -> `ColumnMap`. In: what YAML says. Out: checked columns.

Left to others: finding the file (`recording/column_map.py`).
"""
