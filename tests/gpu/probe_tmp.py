import sys, time

sys.path.insert(0, ".")
sys.path.insert(0, "tests")
import cupy as cp, torch
from gpu import kernels
from gemmgen.gpu import nvrtc, device, bench, cublas, sass
from gemmgen.gpu.launch import Kernel

print(
    device.name(0), device.capability(0), device.shared_limit(0), nvrtc.version(), cublas.version()
)
try:
    b = nvrtc._CupyBackend()
    print(
        "cupy nvrtc",
        b.version(),
        len(
            b.compile(
                kernels.text("tiled"), "gemm.cu", ("--gpu-architecture=sm_90", *nvrtc.OPTIONS)
            )[0]
        ),
    )
except Exception as e:
    print("cupy backend", repr(e))
try:
    b.compile("xx", "gemm.cu", ("--gpu-architecture=sm_90",))
except Exception as e:
    print(repr(e))
k = Kernel(kernels.text("tiled"), kernels.interface(*kernels.PLAIN["tiled"]))


def per(f, n=3000):
    for _ in range(100):
        f()
    cp.cuda.Device().synchronize()
    t = time.perf_counter()
    for i in range(n):
        f()
        if i % 500 == 499:
            pass
    d = (time.perf_counter() - t) / n * 1e6
    cp.cuda.Device().synchronize()
    return round(d, 2)


A, B, C = (cp.ones((32, 32), "float32") for _ in range(3))
print("cupy call", per(lambda: k(A=A, B=B, C=C)), "no C", per(lambda: k(A=A, B=B)))
print("prepare", per(lambda: k.prepare(A=A, B=B, C=C)), "launch", per(k.prepare(A=A, B=B, C=C)))
tA, tB, tC = (torch.ones(32, 32, device="cuda") for _ in range(3))
print(
    "torch call",
    per(lambda: k(A=tA, B=tB, C=tC)),
    "torch.mm",
    per(lambda: torch.mm(tA, tB, out=tC)),
    "cupy matmul",
    per(lambda: cp.matmul(A, B, out=C)),
)
print("cublas launch", per(cublas.sgemm(*(cublas.matrix(x) for x in (A, B, C)))))
rb = kernels.relu_bias()


def ref(g):
    x = cp.asarray(g["A"]) @ cp.asarray(g["B"]) + cp.asarray(g["bias"])
    return cp.maximum(x, 0).get()


db = kernels.interface((32, 32), 32, 32)
E = [
    bench.Entry("tiled", k),
    bench.Entry("double_buffered", Kernel(kernels.text("double_buffered"), db)),
    bench.Entry("vectorized", Kernel(kernels.text("vectorized"), rb), ref),
]
t = time.time()
rows = bench.bench(
    E, [{"M": n, "N": n, "K": n} for n in (128, 512, 1024, 2048, 4096, 4097)], warmup=1.0, rounds=10
)
for r in rows:
    print(
        r.name,
        r.shape[0][1],
        f"{r.ms:.5f} [{r.lower:.5f} {r.upper:.5f}] {r.tflops:.2f} share {r.share} floor {r.floor:.5f} {r.checked} {r.verdict} {r.note}",
    )
# L2 and graph: ours with graph False for the small one
from gemmgen.gpu.timing import time_interleaved
x,y,z=(cp.ones((128,128),"float32") for _ in range(3))
L=k.prepare(A=x,B=y,C=z); 
print("128 graph", time_interleaved({"l":L},warmup=.2)["l"].median, "batch", time_interleaved({"l":L},warmup=.2,graph=False)["l"].median)
print("bench took", time.time() - t)
from rich.console import Console

Console(width=120).print(bench.table(rows))
