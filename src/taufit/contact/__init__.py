"""What the arm feels. In: a `FittedModel` and samples. Out: external torque, contacts, forces.

Left to others: what it carries (payload), what to do about a contact (the controller).
"""
