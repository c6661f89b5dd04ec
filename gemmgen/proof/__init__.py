"""Proof of a kernel, layer by layer: each is one file, ``run.verify`` runs them all.

Skipped is never passed: a layer that can't run here says why.
"""
