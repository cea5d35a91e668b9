"""Writers, one file per format. In: a `Recording`. Out: a file.

Not here: selection of the writer (`recording/write.py`).
"""
