"""``gemmgen prove``: facts about a lowered kernel for all extents, leading dimensions and pointers.

The threads of a block are a fixed number, so they are enumerated with NumPy; extents, leading
dimensions, blocks and trips of loops are symbols, and z3 decides what depends on them.
"""
