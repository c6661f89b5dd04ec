"""Drawings of a schedule from its IR: the work of a block, of a thread, and of a step in time."""
