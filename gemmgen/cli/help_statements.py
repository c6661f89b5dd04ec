"""What ``gemmgen help`` says of dtype, assume and require after their summaries."""

DETAILS = {
    "dtype": """\
`dtype bf16` gives A, B and C that type; `dtype A=bf16 B=bf16 C=f32` names them. Types by name:

    f32, f16, bf16        any tensor, in any combination; bf16 needs target sm_80
    e4m3, e5m2 (FP8)      the same, from target sm_89 on
    i8                    the same, the integers from -128 to 127
    f64                   A, B, C and acc, or none of them
    tf32                  A or B: stored as f32; tensor cores multiply 10 bits of the fraction
    i32                   C, if A and B are i8

acc is the accumulator's type: f64 with f64, i32 if A and B are i8, else f32. The epilogue computes
in it, in f32 if acc is i32 and C is not. C is rounded once, when it is stored. A tensor of the
epilogue has C's type unless the line names it, as in `dtype bf16 bias=f32`; alpha, beta and other
numbers are float, or double if acc=f64. Multiplying f16, bf16, tf32, e4m3, e5m2 or i8 on tensor
cores takes a `tensor_core` line.""",
    "assume": """\
    assume N % 4 == 0      an extent or a leading dimension is a multiple of 1 to 65536
    assume ldc % 4 == 0
    assume lda == K        a leading dimension is an extent: rows of A are dense
    assume M == N          two extents are equal

The names are M, N, K (the extents, in capitals) and lda, ldb, ldc. The kernel then has no guard for
what cannot happen, and no parameter for what is equal. The launcher refuses a call that breaks an
assumption, and so do calls from Python. A fixed size is not assumed but given to the commands, as
in `--shape 4096x4096x4096`.""",
    "require": """\
    require shared <= 48KiB     shared memory of a block, static and dynamic: bytes, B or KiB
    require threads == 256      threads of a block
    require registers <= 128    registers of a thread, as compiled
    require spills == 0         bytes that a thread spills to local memory, as compiled

    require same_bits over m    a row's bits do not depend on the number of rows

A bound takes <= or ==, once. Threads and shared memory are checked when the schedule is compiled.
Registers and spills need a compiler (nvrtc): `gemmgen emit`, `check` and `verify` compile the
kernel for its target and fail if a limit does not hold. If no compiler is installed the limits are
not checked, and the exit code is 3.

`same_bits over m` (batch invariance) names letters of C. It refuses a schedule in which the order
that an element is summed in may depend on their extents, or on the run: `split_k reduce=atomic`.
`suggest`, `tune --gemm`, `torch.op` and `matmul` then choose among schedules with one summation
order, which follows from the types and the other extents alone.""",
}
