"""Simulated controllers for unmodified clients, and the interpreter of their programs.

In: a twin of `sim`, bytes of a client. Out: bytes as the real controller would send them.
"""
