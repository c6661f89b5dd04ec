// gemmgen/sim/boxes.h as functions that a test can call.
#include "boxes.h"

extern "C" {
unsigned box_size() { return sizeof(gg::Box); }
unsigned bytes_of_box(const gg::Box *box) { return gg::box_bytes(*box); }
void load(const gg::Box *box, unsigned char *shared, unsigned target) {
  gg::load_box(*box, shared, target);
}
void store(const gg::Box *box, const unsigned char *shared, unsigned source) {
  gg::store_box(*box, shared, source);
}
}
