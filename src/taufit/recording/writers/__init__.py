"""One file per format that is written. In: a `Recording`. Out: a file.

Left to others: which writer a name asks for (`recording/write.py`).
"""
