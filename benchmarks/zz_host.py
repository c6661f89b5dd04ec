"""Host time of an operator's call beside torch's."""

import time

import torch

import gemmgen
import gemmgen.torch

torch.backends.cuda.matmul.allow_tf32 = False
f = gemmgen.torch.op(
    "tile m=64 n=64 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\nfuse_epilogue acc + bias[n]\n",
    name="t::f",
)
a = torch.randn(64, 64, device="cuda")
b = torch.randn(64, 64, device="cuda")
c = torch.randn(64, device="cuda")
k = gemmgen.compile(
    "tile m=64 n=64 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\nfuse_epilogue acc + bias[n]\n"
)


def host(g, n=3000):
    for _ in range(50):
        g()
    torch.cuda.synchronize()
    t = time.perf_counter()
    for _ in range(n):
        g()
    t = time.perf_counter() - t
    torch.cuda.synchronize()
    return t / n * 1e6


print(
    "op %.1f kernel %.1f addmm %.1f us"
    % (
        host(lambda: f(a, b, c)),
        host(lambda: k(A=a, B=b, bias=c)),
        host(lambda: torch.addmm(c, a, b)),
    )
)
