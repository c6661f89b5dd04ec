"""``gemmgen tune --gemm``: a fast schedule for each of a list of shapes, without a space file.

``first_candidates`` are stored results, then the top of ``suggest``'s ranking.  ``proposals`` goes
on with neighbors of the fastest (``neighbors``) in a default space (``default_spaces``, data in
``spaces/``).  ``judged_candidates`` compiles them in worker processes up to the kernel's limits and
estimates their time.  ``shape_tuning`` divides the time among the shapes and has the result of
each; ``keeping`` stores results, ``result_table`` prints them, ``gpu_tuning`` does all on a GPU.
"""
