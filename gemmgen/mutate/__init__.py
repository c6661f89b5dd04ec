"""The checkers' own test: kernels with one thing changed, which a checked run must find out."""
