"""A schedule for a shape without measuring: what ``gemmgen suggest`` writes.

``families`` are tiles that have proved good at some size, ``choose`` takes the one that a cheap
model likes best on a GPU, ``reasons`` says why.
"""
