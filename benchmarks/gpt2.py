"""GPT-2's forward pass with PyTorch's products and with gemmgen's, on this GPU.

    python benchmarks/gpt2.py [--dtype bf16]

Batch 2, 512 tokens, random weights, no TF32.  Each line is the median of rounds that interleave the
models in an order drawn anew, each for at least 20 ms after 15 ms of itself: eager, replayed from a
CUDA graph, and compiled by ``torch.compile``.  Last come errors of logits against float64.
"""

from __future__ import annotations

import argparse
import copy
import math
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "torch"))
import gpt2

ROUNDS, CALLS, SEED = 15, 5, 17
LEAD, SPAN = 15.0, 20.0
"""Milliseconds before a sample, and of one."""


def captured(run: Callable[[], object]) -> Callable[[], object]:
    """``run`` as a graph's replay."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def milliseconds(run: Callable[[], object], calls: int, before: int = 0) -> float:
    """The time of a call, averaged over ``calls``, which follow others ``before`` them."""
    for _ in range(before):
        run()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / calls


def in_turns(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    for run in runs.values():
        for _ in range(3):
            run()
    rough = {name: milliseconds(run, CALLS, before=CALLS) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    orders = random.Random(SEED)
    for _ in range(ROUNDS):
        for name in orders.sample(list(runs), len(runs)):
            before, calls = (math.ceil(least / rough[name]) for least in (LEAD, SPAN))
            times[name].append(milliseconds(runs[name], calls, before))
    return {name: statistics.median(found) for name, found in times.items()}


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", choices=tuple(gpt2.DTYPES), default="f32")
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    model, generated, tokens = gpt2.models(asked.dtype)
    attentive = copy.deepcopy(model)
    attentive.set_attn_implementation("sdpa")
    models = {"PyTorch": model, "PyTorch, sdpa": attentive, "gemmgen": generated}
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, ms")
    kinds: dict[str, Callable[[torch.nn.Module], Callable[[], object]]] = {
        "eager": lambda one: lambda: one(tokens),
        "graph": lambda one: captured(lambda: one(tokens)),
        "compiled": lambda one: _compiled(one, tokens),
    }
    for kind, make in kinds.items():
        runs: dict[str, Callable[[], object]] = {}
        for name, one in models.items():
            try:
                runs[name] = make(one)
                runs[name]()
            except Exception as error:  # eager attention copies its mask, which no graph captures
                runs.pop(name, None)
                print(f"{kind}, {name}: {type(error).__name__}: {str(error).splitlines()[0]}")
        found = in_turns(runs)
        fastest = min((time, name) for name, time in found.items() if name != "gemmgen")
        share = fastest[0] / found["gemmgen"]
        listed = ", ".join(f"{name} {time:.3f}" for name, time in found.items())
        print(f"{kind}: {listed}; {fastest[1]} / gemmgen = {share:.3f}")
    exact = copy.deepcopy(model).double()(tokens).logits
    for name, one in models.items():
        error = (one(tokens).logits - exact).norm() / exact.norm()
        print(f"{name}: logits off by {float(error):.1e}")


def _compiled(model: torch.nn.Module, tokens: torch.Tensor) -> Callable[[], object]:
    run = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    return lambda: run(tokens)


if __name__ == "__main__":
    main()
