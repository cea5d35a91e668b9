"""Signal estimates: cut-off frequency from the spectrum, period of a motion.

In: arrays on a uniform grid. Out: estimates with their reason. Not here: their use.
"""
