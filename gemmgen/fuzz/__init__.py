"""Random legal schedules, each run at ragged shapes; failures are attributed to a pass and shrunk.

A schedule is drawn in two steps: a ``Plan`` gives every factor (a storage order, the width of a
hop, a number of stages) one of its classes, so that pairs of classes can be counted; numbers and
text follow from it.
"""
