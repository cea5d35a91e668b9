"""Pieces of verbs that are no verbs themselves. In: options. Out: what a verb does in part.

Left to others: the verbs (`cli/<verb>.py`).
"""
