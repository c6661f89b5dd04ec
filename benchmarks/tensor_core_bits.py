"""How the tensor cores of this GPU add products, bit by bit.

    python benchmarks/tensor_core_bits.py RESULTS.jsonl [--record FOLDER] [--only PATTERN]

Runs random batches through each instruction, searches a grid of candidates for the rules that
explain all outputs (``tensor_core_search.py``), and compares every output with the rule found.
Prints a row per instruction and category with differences, and writes all of it as JSON lines.

--record FOLDER also writes operands and results of some tiles as .npz files, so that other
candidates can be tried without a GPU: ``--replay FOLDER`` in place of one.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from tensor_core_batches import CATEGORIES, Tiles, batch
from tensor_core_kernels import INSTRUCTIONS, Instruction, text
from tensor_core_model import decode
from tensor_core_search import Search, Seen, equal, is_nan, model_of, search, undecided

EXAMPLES = 8
RECORDED = 1024
"""Outputs of a category that --record keeps."""
Row = dict[str, Any]


class Device(Protocol):
    def run(self, what: Instruction, tiles: Tiles) -> np.ndarray:
        """The accumulators' bits after the chain over K."""
        ...


class Gpu:
    """This machine's GPU, through CuPy; texts are compiled for all features of its architecture."""

    def __init__(self) -> None:
        import cupy
        from cupy_backends.cuda.libs import nvrtc

        self._cupy, self._nvrtc = cupy, nvrtc
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        capability = f"{properties['major']}{properties['minor']}"
        self.arch = f"sm_{capability}" + ("a" if int(capability) >= 90 else "")
        self.name = properties["name"].decode()
        self.compiler = "NVRTC {}.{}".format(*nvrtc.getVersion())
        self._folder = tempfile.TemporaryDirectory()
        self._kernels: dict[str, Any] = {}

    def _kernel(self, what: Instruction) -> Any:
        if what.name not in self._kernels:
            program = self._nvrtc.createProgram(text(what), "tile.cu", (), ())
            options = (f"--gpu-architecture={self.arch}",)
            try:
                self._nvrtc.compileProgram(program, options)
            except Exception as error:
                raise RuntimeError(self._nvrtc.getProgramLog(program)) from error
            path = Path(self._folder.name) / f"{what.name}.cubin"
            path.write_bytes(self._nvrtc.getCUBIN(program))
            self._kernels[what.name] = self._cupy.RawModule(path=str(path)).get_function("tile")
        return self._kernels[what.name]

    def run(self, what: Instruction, tiles: Tiles) -> np.ndarray:
        cp = self._cupy
        a, b, c = (cp.asarray(np.ascontiguousarray(each)) for each in tiles)
        d = cp.full_like(c, 0x5A)
        shape = (len(tiles[0]),), (what.threads,)
        self._kernel(what)(*shape, (a, b, c, d, np.int32(a.shape[-1])))
        cp.cuda.runtime.deviceSynchronize()
        return cp.asnumpy(d)


def observe(device: Device, what: Instruction, seed: int) -> dict[str, tuple[Tiles, np.ndarray]]:
    """Each category's operands, and what the device makes of them."""
    found = {}
    for category in CATEGORIES:
        tiles = batch(what, category, seed)
        found[category] = (tiles, device.run(what, tiles))
    return found


def _hex(value: Any) -> str:
    return f"0x{int(value):x}"


def _example(tiles: Tiles, got: np.ndarray, want: np.ndarray, at: int, what: Instruction) -> Row:
    a, b, c = tiles
    tile, row, column = (int(i) for i in np.unravel_index(at, c.shape))
    left, right = a[tile, row], b[tile, column]
    found: Row = {
        "tile": [tile, row, column],
        "c": _hex(c[tile, row, column]),
        "got": _hex(got.ravel()[at]),
        "want": _hex(want.ravel()[at]),
        "a": [_hex(x) for x in left[:64]],
        "b": [_hex(x) for x in right[:64]],
    }
    if what.acc != "f64" and len(left) <= 64:
        with np.errstate(invalid="ignore"):
            products = decode(left, what.a).value * decode(right, what.b).value
        values = decode(
            np.array([c[tile, row, column], got.ravel()[at], want.ravel()[at]]), what.acc
        )
        found["products"] = [float(x).hex() for x in products]
        found["values of c, got, want"] = [float(x).hex() for x in values.value]
    return found


def judge(seen: Seen, what: Instruction) -> list[Row]:
    """Rows of one instruction: the search, then each category against the rule that it found."""
    began = time.perf_counter()
    core, edges = search(seen, what)
    rule = edges.best
    rows: list[Row] = [_verdict(what, core, edges, time.perf_counter() - began)]
    for category, (tiles, got) in seen.items():
        want = model_of(rule, what, tiles)
        same = equal(got, want, what.acc).ravel()
        nans = np.unique(got[is_nan(got, what.acc)])[:8]
        wrong = np.flatnonzero(~same)[:EXAMPLES]
        rows.append(
            {
                "row": "category",
                "instruction": what.name,
                "category": category,
                "products": tiles[0].shape[-1],
                "outputs": int(same.size),
                "equal": int(same.sum()),
                "NaN bits": [_hex(x) for x in nans],
                "examples": [_example(tiles, got, want, int(at), what) for at in wrong],
            }
        )
    return rows


def _verdict(what: Instruction, core: Search, edges: Search, seconds: float) -> Row:
    return {
        "row": "instruction",
        "instruction": what.name,
        "tried": core.tried + edges.tried,
        "core": [rule.text() for rule in core.explain[:8]],
        "core count": len(core.explain),
        "core share": core.share,
        "core best": core.best.text(),
        "edges count": len(edges.explain),
        "edges share": edges.share,
        "undecided": undecided(edges.explain),
        "core undecided": undecided(core.explain),
        "rule": edges.best.text(),
        "fields": asdict(edges.best),
        "seconds": round(seconds, 2),
    }


def report(rows: list[Row]) -> str:
    """The rows of one instruction for people."""
    head = rows[0]
    lines = [f"{head['instruction']}: {head['rule']}"]
    if head["core count"] != 1:
        lines.append(
            f"  normal numbers: {head['core count']} candidates explain all, best share "
            f"{head['core share']:.5f} {head['core undecided'] or ''}"
        )
    lines.append(
        f"  all numbers: {head['edges count']} of {head['tried']} candidates explain all, best "
        f"share {head['edges share']:.5f}; undecided {head['undecided'] or 'nothing'}"
    )
    for row in rows[1:]:
        same = row["equal"] == row["outputs"]
        lines.append(
            f"  {row['category']:12} {row['equal']:7} of {row['outputs']:7} equal"
            + (f"  NaN {' '.join(row['NaN bits'])}" if row["NaN bits"] else "")
        )
        if not same and row["examples"]:
            lines.append(f"    first: {json.dumps(row['examples'][0])}")
    return "\n".join(lines)


def record(folder: Path, what: Instruction, seen: Seen) -> None:
    """A few tiles of each category but chains, as ``folder/INSTRUCTION.npz``."""
    arrays: dict[str, np.ndarray] = {}
    for category, ((a, b, c), d) in seen.items():
        if a.shape[-1] > what.k:
            continue
        tiles = max(1, RECORDED // (what.m * what.n))
        for name, each in zip("abcd", (a, b, c, d), strict=True):
            arrays[f"{category}.{name}"] = each[:tiles]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{what.name}.npz", **arrays)


def replayed(path: Path) -> dict[str, tuple[Tiles, np.ndarray]]:
    """What ``record`` wrote."""
    with np.load(path) as arrays:
        names = dict.fromkeys(key.rsplit(".", 1)[0] for key in arrays.files)
        return {
            name: (
                (arrays[f"{name}.a"], arrays[f"{name}.b"], arrays[f"{name}.c"]),
                arrays[f"{name}.d"],
            )
            for name in names
        }


def observed(options: argparse.Namespace) -> tuple[Row, list[tuple[Instruction, Seen]], list[Row]]:
    """What ran where, the instructions that ran, and rows of those that failed."""
    chosen = [each for each in INSTRUCTIONS if fnmatch.fnmatch(each.name, options.only)]
    if options.replay:
        folder = Path(options.replay)
        known = [each for each in chosen if (folder / f"{each.name}.npz").exists()]
        found = [(each, replayed(folder / f"{each.name}.npz")) for each in known]
        return {"row": "device", "replay": options.replay}, found, []
    gpu = Gpu()
    ran: list[tuple[Instruction, Seen]] = []
    failed: list[Row] = []
    for what in chosen:
        try:
            ran.append((what, observe(gpu, what, options.seed)))
        except Exception as error:
            failed.append({"row": "failed", "instruction": what.name, "error": str(error)[:500]})
            print(f"{what.name}: failed: {str(error)[:300]}", flush=True)
    about = {"row": "device", "name": gpu.name, "arch": gpu.arch, "compiler": gpu.compiler}
    return about, ran, failed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("results")
    parser.add_argument("--record")
    parser.add_argument("--replay")
    parser.add_argument("--only", default="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(16, os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    about, ran, failed = observed(options)
    print(f"{about}; ran in {time.perf_counter() - began:.1f} s", flush=True)
    unexplained: list[str] = []
    with open(options.results, "w", encoding="utf-8") as file:
        for row in (about, *failed):
            file.write(json.dumps(row) + "\n")
        if options.record:
            for what, seen in ran:
                record(Path(options.record), what, seen)
        with _pool(options.jobs) as pool:
            futures = [pool.submit(judge, seen, what) for what, seen in ran]
            for (what, _), future in zip(ran, futures, strict=True):
                rows = future.result()
                print(report(rows), flush=True)
                file.writelines(json.dumps(row) + "\n" for row in rows)
                file.flush()
                if any(row["equal"] != row["outputs"] for row in rows[1:]):
                    unexplained.append(what.name)
    print(
        f"{len(ran) - len(unexplained)} of {len(ran)} instructions explained bit for bit, "
        f"{len(failed)} failed; {time.perf_counter() - began:.1f} s"
    )
    if unexplained:
        print("not explained: " + " ".join(unexplained))
    return 0 if ran and not unexplained and not failed else 1


def _pool(jobs: int) -> ProcessPoolExecutor:
    """Processes that do not inherit the GPU's context."""
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
