// cp.async.bulk.tensor: TMA loads a box of a tensor, from these coordinates on, into shared
// memory; elements outside the tensor are zeros.  The barrier counts the bytes.$note
__device__ __forceinline__ void gg_load_box_${rank}d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, $parameters$parameter)
{
    asm volatile("cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes$hint [%0], [%1, {$numbers}], [%2]$policy;"
                 :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),
                    $operands$input : "memory");
}
