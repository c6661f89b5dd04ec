"""An LSTM cell: its eight products are one GEMM, of [x, h] with all the weights stacked.

    Gates[s, g] = XH[s, k] * W[g, k]        + bias[g] in the epilogue

s is the index of the sequence; k runs along x and then h, g along the four gates, each as long as
the state: input, forget, candidate, output, in PyTorch's order.  W is the concatenation of its
``weight_ih`` and ``weight_hh``, bias the sum of its two: weights are concatenated once, and then a
step of all sequences is a single launch; [x, h] is one array too, into which a step writes its h.

The cell's own arithmetic follows: an element of the state needs four columns of Gates.

Twenty sequences are one tile of 32 rows, so the matrix has only as many tiles as g has 64s.  A GPU
has more multiprocessors than that, and ``split_k parts=4`` gives each tile to four blocks, each of
which sums a quarter of k.  The last one adds the parts in a fixed order, so that every run gives
the same bits.
"""

import numpy as np
import run

SEQUENCES, INPUTS, STATE = 20, 36, 60


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell(gates: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The new h and c, in float64."""
    i, f, g, o = np.split(gates.astype(np.float64), 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def reference(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, w: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The step in float64: by PyTorch if it is installed, else by NumPy."""
    x, h, c, w, bias = (each.astype(np.float64) for each in (x, h, c, w, bias))
    of_x, of_h = np.split(w, [INPUTS], axis=1)
    if torch := run.torch:
        lstm = torch.nn.LSTMCell(INPUTS, STATE, dtype=torch.float64)
        with torch.no_grad():
            lstm.weight_ih.copy_(torch.from_numpy(of_x))
            lstm.weight_hh.copy_(torch.from_numpy(of_h))
            lstm.bias_ih.copy_(torch.from_numpy(bias))
            lstm.bias_hh.zero_()
            given = (torch.from_numpy(each) for each in (x, h, c))
            new_h, new_c = lstm(next(given), tuple(given))
        return new_h.numpy(), new_c.numpy()
    return cell(x @ of_x.T + h @ of_h.T + bias, c)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SEQUENCES, INPUTS), np.float32)
    h, c = np.tanh(rng.standard_normal((2, SEQUENCES, STATE), np.float32))
    w = rng.standard_normal((4 * STATE, INPUTS + STATE), np.float32) / np.float32(8)
    bias = rng.standard_normal(4 * STATE, np.float32)

    (lstm,) = run.load("lstm.sched")
    xh = np.concatenate([x, h], axis=1)
    gates = lstm(XH=xh, W=w, bias=bias)
    new_h, new_c = cell(gates, c)

    # A gate is a sum of products and the bias.  The slope of tanh is at most 1, sigmoid's 1/4.
    off = run.rounding(INPUTS + STATE + 1, np.abs(xh) @ np.abs(w).T + np.abs(bias))
    i, f, g, o = np.split(off, 4, axis=1)
    bound_c = np.abs(c) * f / 4 + i / 4 + g
    bound_h = o / 4 + bound_c
    want_h, want_c = reference(x, h, c, w, bias)
    run.finish(
        run.check("h", new_h, want_h, bound_h),
        run.check("c", new_c, want_c, bound_c),
    )


if __name__ == "__main__":
    main()
