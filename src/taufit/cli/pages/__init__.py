"""Verbs that open a page on this computer until Ctrl-C: what a robot does now, what a file holds.

Left to others: the pages and their server (live).
"""
