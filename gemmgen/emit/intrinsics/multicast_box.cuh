// cp.async.bulk.tensor, multicast: TMA loads a box, zeros outside the tensor, into the same shared
// address of each block of the cluster whose bit is set; the barrier there counts its bytes.
__device__ __forceinline__ void gg_multicast_box_${rank}d(void *target, const gg_tensor_map &map,
    unsigned long long &barrier, $parameters, int blocks)
{ asm volatile("cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {$numbers}], [%2], $blocks;"
               :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),$gap$operands,
                  "h"(static_cast<unsigned short>(blocks)) : "memory"); }
