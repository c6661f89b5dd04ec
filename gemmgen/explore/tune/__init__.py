"""The best schedule of a search space, found by measuring: what ``gemmgen tune`` does.

``space`` numbers the points and ``legal`` keeps those that compile; ``model`` ranks them;
``explore`` proposes which to try, ``build`` compiles them, a ``lab`` checks and times them;
``search`` is the order of it all, ``finals`` how the winner is told from its rivals.
"""
