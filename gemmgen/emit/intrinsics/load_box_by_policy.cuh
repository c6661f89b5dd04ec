// cp.async.bulk.tensor: TMA loads a box of a tensor, from these coordinates on, into shared
// memory; elements outside the tensor are zeros.  The barrier counts the bytes.
// L2 keeps them by `policy`.
__device__ __forceinline__ void gg_load_box_${rank}d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, $parameters, unsigned long long policy)
{ asm volatile("cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".L2::cache_hint [%0], [%1, {$numbers}], [%2], $policy;"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),
                  $operands, "l"(policy) : "memory"); }
