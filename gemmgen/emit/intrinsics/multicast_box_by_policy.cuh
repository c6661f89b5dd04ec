// cp.async.bulk.tensor, multicast: TMA loads a box, zeros outside the tensor, into the same shared
// address of each block of the cluster whose bit is set; the barrier there counts its bytes.
// L2 keeps them by `policy`.
__device__ __forceinline__ void gg_multicast_box_${rank}d(
    void *target, const gg_tensor_map &map, unsigned long long &barrier,
    $parameters, int blocks, unsigned long long policy)
{ asm volatile("cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster.L2::cache_hint [%0], [%1, {$numbers}], [%2], $blocks, $policy;"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),$gap$operands,
                  "h"(static_cast<unsigned short>(blocks)), "l"(policy) : "memory"); }
