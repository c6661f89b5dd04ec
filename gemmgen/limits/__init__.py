"""What a GPU, TMA and the names of a kernel allow, checked on the program that passes made.

These checks know the schedule: a refusal names the directive that asked for too much, and its hint
is a line that fits.
"""
