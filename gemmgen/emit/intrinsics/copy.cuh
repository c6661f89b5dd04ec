// Copies $width contiguous elements in one access.
__device__ __forceinline__ void copy$width($type *target, const $type *source)
{ *reinterpret_cast<$vector *>(target) = *reinterpret_cast<const $vector *>(source); }
