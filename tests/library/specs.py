"""Specs for tests."""

SMALL = """\
name = "mini"

[product.linear]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "bf16"
epilogue = "acc + bias[n]"
shapes = ["16x256x512", "300x200x5000"]

[product.single]
gemm = "C[m, n] = A[m, k] * B[k, n]"
shapes = ["512x512x512"]
"""
