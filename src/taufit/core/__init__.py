"""What every room uses: errors, array types, safe files and names, statistics; and `compute`.

In: paths, bytes, plain numbers. Out: checked values, atomic files, cached results.
Left to others: anything that knows what a robot is.
"""
