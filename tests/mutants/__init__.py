"""Mutation tests of the checkers: kernels with one change, which C2 must detect."""
