// A tensor as the copy engine sees it: a CUtensorMap, encoded by the launcher.
struct alignas(128) gg_tensor_map {
    unsigned long long words[16];
};
