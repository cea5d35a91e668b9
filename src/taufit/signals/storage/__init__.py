"""Storage of conditioned parts and cached results between passes.

In: conditioned parts and their friction columns. Out: the same, from memory or files. Not here:
conditioning (signals).
"""
