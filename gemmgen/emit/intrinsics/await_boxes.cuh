// cp.async.bulk.wait_group.read: waits until at most `pending` groups still read shared memory.
template <int pending> __device__ __forceinline__ void gg_await_boxes()
{ asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory"); }
