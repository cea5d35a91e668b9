"""Verbs over many robots at once.

Left to others: what is found about them (fleet), pages (report), where the work is done (engines).
"""
