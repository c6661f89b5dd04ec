"""How an element of C is summed, as a value: schedules with equal values give equal bits.

``summation_order(program, kernel)`` reads it off a compiled program.  It is read in two ways that
have to agree: ``block_additions`` states the order that the declared program means, and ``k_walk``
runs the expanded program for some K and records which products are added, in which order.
"""

from __future__ import annotations

from gemmgen.summation.order_reading import summation_order
from gemmgen.summation.order_value import SummationOrder

__all__ = ["SummationOrder", "summation_order"]
