// Hilbert curve: `number` counts tiles column by column in a band of `side` rows, a power of two.
// Returns the `number`-th tile if each square of side x side tiles follows the curve.
__device__ __forceinline__ int gg_hilbert(int number, int side) {
    const int square = number / (side * side) * (side * side);
    int row = 0, column = 0, rest = number - square;
    for (int half = 1; half < side; half *= 2) {
        const int right = rest / 2 % 2, lower = (rest + right) % 2;
        if (!lower) {
            const int old_row = row;
            row = right ? half - 1 - column : column;
            column = right ? half - 1 - old_row : old_row;
        }
        row += lower * half;
        column += right * half;
        rest /= 4;
    }
    return square + column * side + row;
}
