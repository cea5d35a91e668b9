"""Execution of computations: `cache` stores results, `engines` map and reduce.

In: functions of plain data. Out: their results, computed here, elsewhere, or from the cache.
"""
