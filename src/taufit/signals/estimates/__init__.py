"""What signals say about themselves: a cut-off from the spectrum, the period of a motion.

In: arrays on a uniform grid. Out: numbers with their reason. Left to others: using them.
"""
