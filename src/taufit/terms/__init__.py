"""What a torque is made of. `friction` has the dissipative terms, one model per file.

In: motion, load, temperature. Out: columns, one per parameter, whose sum is a torque.
Left to others: the links, whose columns are the regressor of `dynamics`.
"""
