"""Verbs about what the arm's tip does to whoever is in its way.

Left to others: the energies themselves (model), contacts that happened (contact).
"""
