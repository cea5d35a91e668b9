"""What is kept between passes. In: conditioned parts and their friction columns. Out: the same,
from memory or from files.

Left to others: how parts come about (signals).
"""
