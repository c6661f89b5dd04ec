// Policies of L2, which change no value (ptx_policies.h).

#include "runner.h"

extern "C" void gg_wrong_policy(unsigned long long policy) {
  gg::fault("thread (%u, %u) copies by %#llx, which is not a policy of createpolicy", threadIdx.x,
            threadIdx.y, policy);
}
