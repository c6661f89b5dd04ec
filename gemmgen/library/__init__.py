"""``gemmgen library``: kernels for a set of products, and what builds and calls them from C.

A spec (TOML) lists products with shapes.  Each shape gets a schedule, by ``suggest``; a kernel is
emitted once, for all shapes that have it.  ``emit.library_texts`` prints what is beside the
kernels: a dispatcher for each product, a header, CMakeLists.txt, a Makefile and a self-test.
"""
