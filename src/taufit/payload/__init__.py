"""What a known arm carries. In: a fitted model and samples. Out: mass, centre of mass, inertia.

Left to others: pictures and the wire (report).
"""
