"""``gemmgen tune``: the best schedule of a search space, found by measuring.

``space`` numbers the points and ``legal`` keeps those that compile; ``footprint`` has their sizes;
``sampler`` proposes which to try, ``cubins`` compiles them, ``gpu_measuring`` checks and times
them; ``search`` drives all of these, and ``successive_halving`` finds the winner.
"""
