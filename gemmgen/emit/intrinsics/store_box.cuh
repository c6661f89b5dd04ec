// cp.async.bulk.tensor: TMA stores a box to a tensor, from these coordinates on, not outside it.
__device__ __forceinline__ void gg_store_box_${rank}d(const gg_tensor_map &map, const void *source,
    $parameters)
{ asm volatile("cp.async.bulk.tensor.${rank}d.global.shared::cta.tile.bulk_group"
               " [%0, {$numbers}], [%1];"
               :: "l"(&map), "r"(gg_shared(source)),$gap$operands : "memory"); }
