// cp.async.bulk.tensor, multicast: TMA loads a box of a tensor, from these coordinates on, into the
// same shared address of each block of the cluster whose bit is set; elements outside the tensor
// are zeros.  The barrier at the same address of each block counts its bytes.
__device__ __forceinline__ void gg_multicast_box_${rank}d(
    void *target, const gg_tensor_map &map, unsigned long long &barrier,
    $parameters, int blocks)
{
    asm volatile("cp.async.bulk.tensor.${rank}d.shared::cluster.global.tile$counted [%0], [%1, {$numbers}], [%2], $blocks;"
                 :: "r"(gg_shared(target)), "l"(&map), "r"(gg_shared(&barrier)),$gap$operands,
                    "h"(static_cast<unsigned short>(blocks)) : "memory");
}
