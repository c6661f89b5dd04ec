"""A fully connected layer, bias and activation included: Y = relu(X W^T + bias).

    Y[b, o] = X[b, i] * W[o, i]        b: the batch's rows, i: inputs, o: outputs

W is stored as PyTorch's ``Linear`` stores it, a row for each output, as the order of its letters
says: nothing is transposed in global memory.  Both operands are contiguous along the contracted
letter, so both are transposed into shared memory: ``cache_shared X[i, b] W[i, o]``.

``fuse_epilogue relu(acc + bias[o])`` is the rest of the layer.  Its only traffic is the bias: a
second kernel would read Y and write it again.  Any expression is allowed there, ``gelu(...)`` or
``... + residual[b, o]`` for instance.

The number of rows is arbitrary; ``vectorize ... width=4`` reads and writes 16 bytes at once, which
requires that inputs and outputs are multiples of four.
"""

import numpy as np
import run

BATCH, INPUTS, OUTPUTS = 45, 200, 132


def reference(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The layer in float64: by PyTorch if it is installed, else by NumPy."""
    x, w, bias = (each.astype(np.float64) for each in (x, w, bias))
    if torch := run.torch:
        given = (torch.from_numpy(each) for each in (x, w, bias))
        return torch.relu(torch.nn.functional.linear(*given)).numpy()
    return np.maximum(x @ w.T + bias, 0)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, INPUTS), np.float32)
    w = rng.standard_normal((OUTPUTS, INPUTS), np.float32)
    bias = rng.standard_normal(OUTPUTS, np.float32)

    (linear,) = run.load("linear.sched")
    y = linear(X=x, W=w, bias=bias)

    # A sum of INPUTS products and the bias; relu does not increase an error.
    bound = run.rounding(INPUTS + 1, np.abs(x) @ np.abs(w).T + np.abs(bias))
    run.finish(run.check("Y", y, reference(x, w, bias), bound))


if __name__ == "__main__":
    main()
