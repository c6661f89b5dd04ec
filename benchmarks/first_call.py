"""Seconds of the first call of a shape, in a new process: with nothing kept, and with what an
earlier process kept.

    python benchmarks/first_call.py [--shape MxNxK]... [--rounds N] [--json FILE]

Each call is made in a process of its own, after ``import torch``, ``import gemmgen`` and the
creation of the tensors; its time ends when the result is in memory and has been compared with
torch.mm's.  "cold" begins with an empty cache, "warm" has the cache that the cold call left.
"import" is the time of ``import gemmgen`` with the modules of the call's function; "again" is a
second shape's first call in the same process, whose code no process has kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = ("torch.op", "matmul of PyTorch", "matmul of CuPy")
SHAPES = ("2048x2304x768", "1000x1048x776", "4096x4096x4096")

CALL = """
import json, sys, time
kind, shape = sys.argv[1], [int(x) for x in sys.argv[2].split("x")]
def tensors(m, n, k):
    if kind == "matmul of CuPy":
        return cupy.ones((m, k), "float16") / 8, cupy.ones((k, n), "float16") / 8
    return [torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (k, n))]
if kind == "matmul of CuPy":
    import cupy
    wait = cupy.cuda.runtime.deviceSynchronize
else:
    import torch
    wait = torch.cuda.synchronize
a, b = tensors(64, 64, 64)
a @ b
wait()
begin = time.perf_counter()
import gemmgen
if kind == "torch.op":
    import gemmgen.torch
    made = gemmgen.torch.op("gemm C[m, n] = A[m, k] * B[k, n]\\ndtype bf16\\n", name="first::call")
else:
    made = gemmgen.matmul
found = {"import": time.perf_counter() - begin}
for name, (m, n, k) in (("first", shape), ("again", (shape[0] + 8, shape[1] + 8, shape[2]))):
    a, b = tensors(m, n, k)
    expected = a @ b
    wait()
    begin, cpu = time.perf_counter(), time.process_time()
    c = made(a, b)
    wait()
    found[name], found[name + " cpu"] = time.perf_counter() - begin, time.process_time() - cpu
    error = abs(c - expected).max() / abs(expected).max()
    assert float(error) < 1e-2, f"wrong by {error}"
print(json.dumps(found))
"""


def timed(kind: str, shape: str, folder: str) -> dict[str, float]:
    """The seconds that one process reports; its caches are in ``folder``."""
    command = [sys.executable, "-c", CALL, kind, shape]
    env = {**os.environ, "XDG_CACHE_HOME": folder}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{kind}, {shape}: {ran.stderr[-3000:]}")
    return json.loads(ran.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", metavar="MxNxK")
    parser.add_argument("--rounds", type=int, default=3, help="warm processes (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    rows = []
    print("| call | shape | import | cold | again | warm | its CPU seconds |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        for shape in given.shape or SHAPES:
            with tempfile.TemporaryDirectory() as folder:
                cold = timed(kind, shape, folder)
                warm = [timed(kind, shape, folder) for _ in range(given.rounds)]
            row = {
                "kind": kind,
                "shape": shape,
                "import": statistics.median(x["import"] for x in warm),
                "cold": cold["first"],
                "again": cold["again"],
                "warm": statistics.median(x["first"] for x in warm),
                "warm cpu": statistics.median(x["first cpu"] for x in warm),
            }
            rows.append(row)
            print(
                "|",
                " | ".join(x if isinstance(x, str) else f"{x:.2f}" for x in row.values()),
                "|",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
