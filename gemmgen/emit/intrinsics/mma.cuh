// mma.$shape: acc += a * b of warp fragments, $operands; adjacent accumulators in $where.
__device__ __forceinline__ void gg_mma_$product(
    $parameters, const $operand *a, const $operand *b)
{ asm volatile("mma.sync.aligned.$shape.row.col.$types "
               "{$of_accumulators}, {$of_a}$between{$of_b}, {$of_accumulators};"
               : $outputs
               : $inputs); }
