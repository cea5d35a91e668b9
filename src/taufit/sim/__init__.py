"""A simulated arm that can prove us wrong. In: a robot, a motion, effects. Out: a recording.

Left to others: believing it.
"""
