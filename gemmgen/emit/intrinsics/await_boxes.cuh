// cp.async.bulk.wait_group.read: waits until all but the `pending` newest groups have been read.
template <int pending>
__device__ __forceinline__ void gg_await_boxes() {
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}
