"""Fits the trees of ``explore.warpgroup_trees`` to times of ``docs/data/warpgroups*.json``, or of
``bytes_*.json``.

    pip install -e '.[fit]'
    python benchmarks/warpgroup_trees.py [--trees 500] [--leaves 24] [--folds 8] [--write]
    python benchmarks/warpgroup_trees.py --bytes --trees 150 --leaves 16 --rate 0.08 --write

LightGBM fits the logarithm of the measured over the estimated time.  A plan weighs the less the
longer it takes than the fastest of its shape, and more in files of ``RECENT``.  Prints how much
longer the chosen plans take than the fastest ones that were timed, and PyTorch's time over theirs:
by the cost model, and by the corrected one for shapes that the trees were not fitted to, fold by
fold.  ``--write`` fits all shapes and writes the trees.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from warpgroup_fit import BYTES, FILES, Timed, outcome, read, summary

from gemmgen.explore.suggest.warpgroup_plan import WarpgroupForm, WarpgroupPlan
from gemmgen.explore.warpgroup_cost import ATOM_BYTES
from gemmgen.explore.warpgroup_trees import FILES as TREES
from gemmgen.explore.warpgroup_trees import FOLDER

FAST = 0.3
"""A plan whose time's logarithm is above the fastest one's by this weighs 1/e."""
RECENT = {"warpgroups_7": 2, "warpgroups_8": 2, "warpgroups_9": 4, "warpgroups_10": 4}
"""Weights of files, 1 for the others: tiles follow from the waves and narrow rows of C are not
swizzled in all four, and TMA reads L2 by 128 bytes in the last two, by 256 before.  Chosen by
cross-validation on these two."""
DIGITS = 5


@dataclass(frozen=True)
class Case:
    """A shape: each plan's features, estimate in microseconds, and measured time."""

    timed: Timed
    features: np.ndarray
    modeled: np.ndarray
    us: np.ndarray
    weight: int


def cases(paths: Sequence[Path]) -> list[Case]:
    return [case for path in paths for case in _cases(path)]


def _cases(path: Path) -> list[Case]:
    found: list[Case] = []
    for timed in read([path]):
        plans = [
            WarpgroupPlan(
                WarpgroupForm(
                    (*x.tile, ATOM_BYTES // x.item[0] * x.atom_columns),
                    x.consumers,
                    x.pingpong,
                    x.cluster,
                    x.parts,
                    x.swapped,
                ),
                timed.request,
                x,
            )
            for x in timed.sizes
        ]
        modeled = np.array([plan.modeled for plan in plans]) * 1e6
        features = np.array([plan.features for plan in plans])
        found.append(Case(timed, features, modeled, np.array(timed.us), RECENT.get(path.stem, 1)))
    return found


def fitted(known: Sequence[Case], asked: argparse.Namespace) -> lightgbm.LGBMRegressor:
    model = lightgbm.LGBMRegressor(
        n_estimators=asked.trees,
        learning_rate=asked.rate,
        num_leaves=asked.leaves,
        min_child_samples=10,
        reg_lambda=1.0,
        colsample_bytree=0.5,
        subsample=0.8,
        subsample_freq=1,
        n_jobs=1,
        verbose=-1,
        random_state=1,
        deterministic=True,
    )
    weights = [case.weight * np.exp(-np.log(case.us / case.us.min()) / FAST) for case in known]
    model.fit(
        np.concatenate([case.features for case in known]),
        np.concatenate([np.log(case.us / case.modeled) for case in known]),
        sample_weight=np.concatenate(weights),
    )
    return model


def held_out(known: Sequence[Case], asked: argparse.Namespace) -> list[tuple[float, float]]:
    """Outcomes of shapes that the trees were not fitted to."""
    order = random.Random(1).sample(range(len(known)), len(known))
    found: list[tuple[float, float]] = []
    for fold in range(asked.folds):
        own = set(order[fold :: asked.folds])
        model = fitted([x for at, x in enumerate(known) if at not in own], asked)
        for at in own:
            case = known[at]
            estimates = case.modeled * np.exp(model.predict(case.features))
            found.append(outcome(case.timed, list(estimates)))
    return found


def nodes(tree: dict[str, Any]) -> list[list[float]]:
    """``warpgroup_trees.Tree`` of a tree as LightGBM dumps it."""
    rows: list[list[float]] = []

    def add(node: dict[str, Any]) -> int:
        at = len(rows)
        rows.append([])
        if "leaf_value" in node:
            rows[at] = [0, round(node["leaf_value"], DIGITS), -1, -1]
            return at
        left, right = add(node["left_child"]), add(node["right_child"])
        rows[at] = [node["split_feature"], rounded(node["threshold"]), left, right]
        return at

    add(tree["tree_structure"])
    return [list(column) for column in zip(*rows, strict=True)]


def rounded(bound: float) -> float:
    """Six digits."""
    return float(f"{bound:.6g}")


def written(model: lightgbm.LGBMRegressor, known: Sequence[Case], paths: Sequence[Path]) -> str:
    """The file's text, with a line for each tree."""
    about = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    head = {key: about[-1][key] for key in ("gpu", "driver", "cuda")}
    head["dtype"] = "; ".join(sorted({data["dtype"] for data in about}))
    head |= {"fitted": datetime.now(UTC).date().isoformat(), "shapes": len(known)}
    rows = [nodes(tree) for tree in model.booster_.dump_model()["tree_info"]]
    lines = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
    return f'{json.dumps(head)[:-1]},\n "trees": [\n{lines}\n ]}}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.06)
    parser.add_argument("--folds", type=int, default=8)
    parser.add_argument("--bytes", action="store_true", help="the trees of e4m3 and i8")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    paths = BYTES if asked.bytes else FILES
    known = cases(paths)
    print(f"{len(known)} shapes, {sum(len(case.us) for case in known)} plans")
    fastest = [(1.0, case.timed.torch / case.us.min()) for case in known]
    print(f"the fastest timed: {math.exp(np.mean([math.log(x) for _, x in fastest])):.3f}")
    print(f"modeled: {summary([outcome(x.timed, list(x.modeled)) for x in known])}")
    if asked.folds:
        print(f"corrected, held out: {summary(held_out(known, asked))}")
    if asked.write:
        target = FOLDER / TREES[1 if asked.bytes else 2]
        target.write_text(written(fitted(known, asked), known, paths), encoding="utf-8")
        print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
