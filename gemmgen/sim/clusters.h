// Blocks of a cluster: they run together, and reach one another's shared memory.
//
// The shared memory of the block whose thread runs is the program's thread-local segment, as it is
// without clusters; that of the others is kept aside and changes places with it when one of their
// threads runs.  So an array has one address in all blocks.
#pragma once

#include "mbarriers.h"

namespace gg {

// Shared memory of some block of the cluster.
struct Place {
  uint32_t rank, offset;
};

// Where an address in the window of the cluster is; one in a block's own window, an offset, is in
// the running thread's block.
Place place_of(uint32_t address);

void begin_cluster(unsigned first_block);  // its shared memory is NaN
void enter_block(unsigned rank);           // one of its threads is about to run
unsigned char *memory_of(unsigned rank);   // at present

// The running thread has left the kernel.  With the last one of a block its shared memory ends.
void leave_block();

// The running thread is about to reach `place`; ends the run if its block has ended.
void check_reach(const Place &place, const Call &by);

// It has done so itself: the block may not end before.
void note_reach(const Place &place, const Call &by);

// " of block 3", if that is another block than that of the thread, else "".
struct Whose {
  char text[32];
};
Whose whose(unsigned rank, const Call &by);

void begin_cluster_barrier();  // cluster_barrier.cpp
void leave_cluster_barrier();  // called when a thread leaves the kernel

}  // namespace gg
