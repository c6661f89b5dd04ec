#pragma once

#include "runner.h"

namespace gg {

constexpr unsigned NOBODY = MAX_ACTORS;

// `word` counts from the beginning of shared memory.
void note_read(size_t word, unsigned actor);
unsigned find_unseen_read(size_t word);  // an actor's that the running thread does not know of

}  // namespace gg
