"""Where and whether work is done: `cache` finds results again, `engines` map and reduce.

In: functions of plain nouns. Out: their results, computed here, elsewhere, or found in the cache.
"""
