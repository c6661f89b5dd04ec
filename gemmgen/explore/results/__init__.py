"""Measured results, stored and reused: written by ``tune``, read by ``suggest``.

``measured_result`` is what one is, ``database`` keeps them, ``shipped_table`` has those that ship
with gemmgen, ``results_store`` is both together, and ``freshness`` tells stale ones.
"""
