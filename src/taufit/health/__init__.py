"""Drift and wear, told apart from temperature. In: a fitted model and runs. Out: verdicts.

Left to others: pictures (report).
"""
