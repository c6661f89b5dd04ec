"""Proof of a kernel, layer by layer: each is one file, ``run.verify`` runs them all.

A layer that can't run here is skipped with its reason, and never counts as passed.
"""
