// cp.async.bulk.tensor: the copy engine copies a box of shared memory to a matrix, from row y and
// column x on; elements outside the matrix are left out.
__device__ __forceinline__ void gg_store_box_2d(
    const gg_tensor_map &map, const void *source, int x, int y)
{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(source));
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(&map), "r"(from), "r"(x), "r"(y) : "memory");
}
