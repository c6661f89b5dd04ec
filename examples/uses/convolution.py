"""Convolution by im2col: every window of the images becomes a column of a GEMM's operand.

    Y[f, p] = W[f, k] * X[k, p]

f is the index of the filter; p of the output's pixels, of all images, rows and columns; k of a
window's elements (channel, row, column).  W is PyTorch's array of (filters, channels, 3, 3) with
its last three axes merged, without a copy.  X is a copy of NumPy's view of sliding windows.

The sizes are those of a first layer: 3 channels are sums of 27 products, and two outputs of 13 x 11
have 286 pixels; neither is a multiple of four.  So the kernel must not require anything of extents:
``vectorize`` names only the reads of shared memory, where the kernel chooses the layout.  The tile
is wide along p, which real sizes have thousands of, and narrow along f.
"""

import numpy as np
import run

IMAGES, CHANNELS, HEIGHT, WIDTH = 2, 3, 25, 22
FILTERS, WINDOW, STRIDE, MARGIN = 40, 3, 2, 1


def im2col(images: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """The matrix of all windows (channels * 3 * 3, pixels), and an output's rows and columns."""
    sides = ((0, 0), (0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    padded = np.pad(images, sides)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (WINDOW, WINDOW), axis=(2, 3))
    windows = windows[:, :, ::STRIDE, ::STRIDE]  # images, channels, rows, columns, 3, 3
    matrix = windows.transpose(1, 4, 5, 0, 2, 3).reshape(CHANNELS * WINDOW**2, -1)
    return matrix, windows.shape[2:4]


def reference(images: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The convolution in float64: by PyTorch if it is installed, else pixel by pixel."""
    images, weights, bias = (each.astype(np.float64) for each in (images, weights, bias))
    if torch := run.torch:
        given = (torch.from_numpy(each) for each in (images, weights, bias))
        return torch.nn.functional.conv2d(*given, stride=STRIDE, padding=MARGIN).numpy()
    sides = ((0, 0), (0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    padded = np.pad(images, sides)
    rows, columns = (1 + (n + 2 * MARGIN - WINDOW) // STRIDE for n in (HEIGHT, WIDTH))
    result = np.zeros((len(images), FILTERS, rows, columns)) + bias[:, None, None]
    for row in range(WINDOW):
        for column in range(WINDOW):
            seen = padded[:, :, row::STRIDE, column::STRIDE][:, :, :rows, :columns]
            result += np.einsum("fc,ncyx->nfyx", weights[:, :, row, column], seen)
    return result


def main() -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((IMAGES, CHANNELS, HEIGHT, WIDTH), np.float32)
    weights = rng.standard_normal((FILTERS, CHANNELS, WINDOW, WINDOW), np.float32)
    bias = rng.standard_normal(FILTERS, np.float32)

    (convolution,) = run.load("convolution.sched")
    x, (rows, columns) = im2col(images)
    w = weights.reshape(FILTERS, -1)
    y = convolution(W=w, X=x, bias=bias)
    result = y.reshape(FILTERS, IMAGES, rows, columns).swapaxes(0, 1)

    # A sum of as many products as X has rows, and the bias.
    bound = run.rounding(len(x) + 1, np.abs(w) @ np.abs(x) + np.abs(bias)[:, None])
    bound = bound.reshape(FILTERS, IMAGES, rows, columns).swapaxes(0, 1)
    run.finish(run.check("Y", result, reference(images, weights, bias), bound))


if __name__ == "__main__":
    main()
