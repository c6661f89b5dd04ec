// cp.async.bulk.tensor, multicast: the copy engine copies a box of a matrix, from row y and column x on,
// to this place in the shared memory of each block of the cluster whose bit is set; the barrier at this
// place in each counts its bytes.
__device__ __forceinline__ void gg_multicast_box_2d(void *target, const gg_tensor_map &map,
                                                    unsigned long long &barrier, int x, int y,
                                                    unsigned blocks)
{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    const unsigned counts = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;"
                 :: "r"(to), "l"(&map), "r"(counts), "r"(x), "r"(y),
                    "h"(static_cast<unsigned short>(blocks)) : "memory");
}
