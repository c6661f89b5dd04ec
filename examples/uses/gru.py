"""A GRU cell in two launches; the second one includes all that is left to compute.

    Gates[s, g] = XH[s, k] * W[g, k]        + bias[g] in the epilogue
    New[s, u]   = H[s, k] * W[u, k]         and the cell itself in the epilogue

s is the index of the sequence; g runs along the reset gate, the update gate and the candidate, u
along the state.  As in the LSTM cell, [x, h] is one array, and the weights of x and of h are
stacked once.  The candidate differs: its share of h is multiplied by the reset gate, element by
element, before it is added,

    New = (1 - z) tanh(X + r (W h + bias)) + z h,    r = sigmoid(R), z = sigmoid(Z)

so its rows of the stacked weights have zeros for h, and h's share is its own product.  Its
epilogue reads the columns of Gates as three matrices, R, Z and X, and writes the new state.  A
fifth of the first launch multiplies by zeros, which is less than a third launch costs at such
sizes.
"""

import numpy as np
import run

SEQUENCES, INPUTS, STATE = 20, 36, 60

FUNCTION = 8 * run.UNIT
"""More than sigmoid and tanh are off in float32: their values are at most 1."""


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def reference(
    x: np.ndarray, h: np.ndarray, of_x: np.ndarray, of_h: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """The new state in float64: by PyTorch if it is installed, else by NumPy.

    ``of_x`` and ``of_h`` are the weights of both, ``bias`` their two biases, (2, 3 * STATE).
    """
    x, h, of_x, of_h, bias = (each.astype(np.float64) for each in (x, h, of_x, of_h, bias))
    if torch := run.torch:
        gru = torch.nn.GRUCell(INPUTS, STATE, dtype=torch.float64)
        with torch.no_grad():
            gru.weight_ih.copy_(torch.from_numpy(of_x))
            gru.weight_hh.copy_(torch.from_numpy(of_h))
            gru.bias_ih.copy_(torch.from_numpy(bias[0]))
            gru.bias_hh.copy_(torch.from_numpy(bias[1]))
            return gru(torch.from_numpy(x), torch.from_numpy(h)).numpy()
    r, z, n = np.split(x @ of_x.T + bias[0], 3, axis=1)
    r_h, z_h, n_h = np.split(h @ of_h.T + bias[1], 3, axis=1)
    z = sigmoid(z + z_h)
    return (1 - z) * np.tanh(n + sigmoid(r + r_h) * n_h) + z * h


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SEQUENCES, INPUTS), np.float32)
    h = np.tanh(rng.standard_normal((SEQUENCES, STATE), np.float32))
    of_x = rng.standard_normal((3 * STATE, INPUTS), np.float32) / np.float32(8)
    of_h = rng.standard_normal((3 * STATE, STATE), np.float32) / np.float32(8)
    bias = rng.standard_normal((2, 3 * STATE), np.float32)

    # The rows of the candidate: zeros for h, whose product and bias come in the second launch.
    w, first = np.hstack([of_x, of_h]), bias.sum(axis=0)
    w[2 * STATE :, INPUTS:] = 0
    first[2 * STATE :] = bias[0, 2 * STATE :]
    of_state, last = np.ascontiguousarray(of_h[2 * STATE :]), bias[1, 2 * STATE :].copy()

    gates, state = run.load("gru_gates.sched", "gru_state.sched")
    xh = np.hstack([x, h])
    sums = gates(XH=xh, W=w, bias=first)
    r, z, n = (np.ascontiguousarray(each) for each in np.split(sums, 3, axis=1))
    new = state(H=h, W=of_state, R=r, Z=z, X=n, Old=h, bias=last)

    # The slope of sigmoid is at most 1/4, that of tanh at most 1; r, z and tanh are at most 1.
    scale = np.abs(xh) @ np.abs(w).T + np.abs(bias).sum(axis=0)
    off_r, off_z, off_n = np.split(run.rounding(INPUTS + STATE + 2, scale), 3, axis=1)
    off_r, off_z = off_r / 4 + FUNCTION, off_z / 4 + FUNCTION
    product = np.abs(h) @ np.abs(of_state).T + np.abs(last)
    off_product = run.rounding(STATE + 1, product)
    inside = off_n + off_r * product + off_product + run.rounding(2, np.abs(n) + product)
    bound = off_z * (1 + np.abs(h)) + inside + FUNCTION + run.rounding(4, 1 + np.abs(h))
    run.finish(run.check("h", new, reference(x, h, of_x, of_h, bias), bound))


if __name__ == "__main__":
    main()
