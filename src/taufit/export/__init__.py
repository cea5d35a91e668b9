"""The fitted model in other tools' forms: URDF, MJCF, JSON, C.

Left to others: reading those forms (robot).
"""
