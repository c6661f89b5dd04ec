"""Attention: softmax(Q K^T / sqrt(d)) V, as two batched GEMMs and a softmax between them.

    S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]        the scores
    O[b, h, i, d] = P[b, h, i, j] * V[b, h, j, d]        the weighted means, P = softmax of S

The letters are the indices of sequence (b), head (h), query (i), key (j) and channel of a head (d).
b and h are in both operands and in the result, so they are batches, and one launch multiplies all.

The three inputs are parts of one array, the output of one projection: ``qkv[b, i, 3, h, d]``.
Their rows are 3 * h * d elements apart, their heads d, and the kernels take these strides without a
copy.

The scale is in the epilogue of the first GEMM.  A mask could be there too, without another pass
over S: ``where(j <= i, scale * acc, -3e38)`` is that of a language model.

The sequence's length is ragged (77), so rows of S and P are aligned to four bytes only:
``vectorize`` names Q, K, V and O, whose rows are multiples of four elements, and of P only the
reads of shared memory.
"""

import numpy as np
import run

BATCH, LENGTH, HEADS, SIZE = 2, 77, 3, 40


def softmax(scores: np.ndarray) -> np.ndarray:
    """Along the last axis, in float64."""
    scores = scores.astype(np.float64)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the output in float64: by PyTorch if it is installed, else by NumPy."""
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    if torch := run.torch:
        q, k, v = (torch.from_numpy(each) for each in (q, k, v))
        attend = torch.nn.functional.scaled_dot_product_attention
        return (scale * q @ k.mT).numpy(), attend(q, k, v, scale=scale).numpy()
    scores = scale * np.einsum("bhid,bhjd->bhij", q, k)
    return scores, softmax(scores) @ v


def main() -> None:
    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((BATCH, LENGTH, 3, HEADS, SIZE), np.float32)
    q, k, v = (qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3))  # views: b, h, i, d
    scale = np.float32(SIZE**-0.5)

    scores, values = run.load("attention_scores.sched", "attention_values.sched")
    s = scores(Q=q, K=k, scale=scale)
    p = softmax(s).astype(np.float32)
    o = values(P=p, V=v)

    # A score is a sum of SIZE products, scaled.
    want_s, want_o = reference(q, k, v, float(scale))
    size = np.einsum("bhid,bhjd->bhij", np.abs(q), np.abs(k))
    bound_s = run.rounding(SIZE + 1, scale * size)
    # An error e of scores changes weights by at most a factor of exp(2 e); P is rounded, then
    # summed.
    factor = np.exp(2 * bound_s.max(axis=-1, keepdims=True).astype(np.float64))
    means = softmax(want_s) @ np.abs(v)
    bound_o = (factor - 1) * means + run.rounding(LENGTH + 1, factor * means)
    run.finish(run.check("S", s, want_s, bound_s), run.check("O", o, want_o, bound_o))


if __name__ == "__main__":
    main()
