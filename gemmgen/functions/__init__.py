"""``gemmgen.matmul`` and ``gemmgen.linear``: one function for NumPy, CuPy and PyTorch.

``arrangement`` gives the dimensions letters, ``call_epilogue`` reads what follows the product,
``problems`` writes the gemm line, ``direct`` runs it on arrays, ``torch_calls`` by operators.
"""
