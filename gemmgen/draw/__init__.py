"""Drawings of a schedule, from its IR: what a block, a thread and a step of time have to do."""
