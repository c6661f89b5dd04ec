"""GPT-2 of ``transformers`` whose products are gemmgen's: its layers, its attention, its logits.

    python gpt2.py [--dtype bf16]

builds a model with random weights, gives a copy of it generated kernels, and compares logits and
gradients with the original in float64: eager, then compiled to one graph.  On a GPU it is GPT-2 as
published, with the schedules in this folder: those of `gemmgen suggest` that are fastest at these
extents on an NVIDIA H200.  In bf16 each product is a bare gemm, for which `gemmgen.torch.op` asks
`suggest`.  Without a GPU it is a small model, and g++ compiles naive kernels.

Three operations are fused for which PyTorch has separate kernels: biases, the activation between
the two layers of an MLP, and the scale and causal mask of the scores.  The output of attention is
written as ``O[b, i, h, d]``, as the next layer reads it, so nothing is transposed in memory.
"""

from __future__ import annotations

import argparse
import copy
import sys
from pathlib import Path

import torch
from transformers import AttentionInterface, GPT2Config, GPT2LMHeadModel

import gemmgen.torch

HERE = Path(__file__).parent
ON_GPU = torch.cuda.is_available()
SIZES = {} if ON_GPU else {"vocab_size": 257, "n_embd": 64, "n_layer": 2, "n_head": 4}
BATCH, TOKENS = (2, 512) if ON_GPU else (2, 20)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
MOST_ERROR = 1e-4
"""Of logits and gradients in float32."""
MORE = 2.0
"""In bf16: their error over that of PyTorch's model, at most."""


def product(name: str, dtype: str):
    """The operator ``gpt2::name`` of the schedule ``gpt2_name.sched``, which is for float32; for
    bf16, of what that computes."""
    text = (HERE / f"gpt2_{name}.sched").read_text()
    if not ON_GPU or dtype != "f32":  # without a GPU: g++ takes a while for large tiles
        words = ("gemm", "kernel", "fuse_epilogue")
        text = "".join(x for x in text.splitlines(True) if x.startswith(words))
        text += f"dtype {dtype}\n"
    return gemmgen.torch.op(text, name=f"gpt2::{name}")


class Layer(torch.nn.Module):
    """``product`` of rows of X, with the parameters of the layer that it replaces."""

    def __init__(self, product, layer: torch.nn.Module):
        super().__init__()
        self.product, self.weight = product, layer.weight
        self.bias = getattr(layer, "bias", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parameters = (self.weight,) if self.bias is None else (self.weight, self.bias)
        y = self.product(x.reshape(-1, x.shape[-1]), *parameters)
        return y.reshape(*x.shape[:-1], -1)


def generated(model: GPT2LMHeadModel, dtype: str) -> GPT2LMHeadModel:
    """The model with generated kernels for its products; they share its parameters."""
    names = ("c_attn", "c_proj", "c_fc", "down")
    c_attn, c_proj, c_fc, down = (product(name, dtype) for name in names)
    for block in model.transformer.h:
        attn, mlp = block.attn, block.mlp
        attn.c_attn, attn.c_proj = Layer(c_attn, attn.c_attn), Layer(c_proj, attn.c_proj)
        mlp.c_fc, mlp.c_proj = Layer(c_fc, mlp.c_fc), Layer(down, mlp.c_proj)
        mlp.act = torch.nn.Identity()  # it is in the epilogue of c_fc
    model.lm_head = Layer(product("lm_head", dtype), model.lm_head)
    scores, means = product("scores", dtype), product("means", dtype)

    def attention(module, q, k, v, mask, scaling: float, dropout: float = 0.0, **_):
        """Causal attention of whole sequences: no mask is needed besides the epilogue's."""
        weights = torch.softmax(scores(q, k, scaling), dim=-1)
        return means(torch.dropout(weights, dropout, module.training), v), weights

    AttentionInterface.register("gemmgen", attention)
    model.set_attn_implementation("gemmgen")
    return model


def models(dtype: str = "f32") -> tuple[GPT2LMHeadModel, GPT2LMHeadModel, torch.Tensor]:
    """GPT-2 with random weights, a copy with generated kernels, and tokens for both."""
    torch.manual_seed(0)
    config = GPT2Config(attn_implementation="eager", use_cache=False, **SIZES)
    device = "cuda" if ON_GPU else "cpu"
    model = GPT2LMHeadModel(config).to(device, DTYPES[dtype]).eval()
    tokens = torch.randint(config.vocab_size, (BATCH, TOKENS), device=device)
    return model, generated(copy.deepcopy(model), dtype), tokens


def errors(model, tokens: torch.Tensor, exact) -> dict[str, float]:
    """The errors of logits and gradients relative to ``exact``, a model in float64: the norm of the
    difference, as a share of the norm."""
    found, wanted = model(tokens).logits, exact(tokens).logits
    names = [name for name, _ in exact.named_parameters()]
    parameters = {n.removeprefix("_orig_mod."): p for n, p in model.named_parameters()}
    got = torch.autograd.grad(loss(found, tokens), [parameters[name] for name in names])
    truth = torch.autograd.grad(loss(wanted, tokens), list(exact.parameters()))
    pairs = [("logits", found, wanted), *zip(names, got, truth, strict=True)]
    return {name: ((x - y).norm() / y.norm()).item() for name, x, y in pairs}


def loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The loss of the next token."""
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="f32")
    asked = parser.parse_args()
    model, fast, tokens = models(asked.dtype)
    exact = copy.deepcopy(model).double()
    compiled = torch.compile(fast, fullgraph=True, backend="inductor" if ON_GPU else "aot_eager")
    theirs, right = errors(model, tokens, exact), True
    for what, one in (("PyTorch", model), ("gemmgen", fast), ("gemmgen, compiled", compiled)):
        found = errors(one, tokens, exact)
        worst = max(found, key=lambda name: found[name])
        bound = MOST_ERROR if asked.dtype == "f32" else MORE * max(theirs.values())
        right = right and found[worst] < bound
        print(f"{what}: logits off by {found['logits']:.1e}, {worst} by {found[worst]:.1e}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
