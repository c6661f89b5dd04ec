#include "counter.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

Index threadIdx, blockIdx;

namespace {

struct Region { std::string name; const char *base; std::size_t bytes; int element; bool shared; };
struct Total { long elements, requests, sectors, lines, phases, wavefronts, ways; };
// A statement's access of one width, in bytes; of each thread the byte where it begins.
using Request = std::tuple<const void *, std::vector<int>, int, bool, int>;

std::vector<Region> regions;
std::vector<int> trips;
std::map<Request, std::array<long, 32>> warp;
std::map<std::pair<std::string, bool>, Total> totals;
int lane;

void count_global(Total &total, const std::array<long, 32> &first, int bytes) {
    std::set<long> sectors, lines;
    for (long at : first)
        for (int byte = 0; at >= 0 && byte < bytes; ++byte) {
            sectors.insert((at + byte) / 32);
            lines.insert((at + byte) / 128);
        }
    total.sectors += sectors.size();
    total.lines += lines.size();
}

void count_shared(Total &total, const std::array<long, 32> &first, int bytes) {
    const int group = 32 / std::max(1, bytes / 4);
    for (int start = 0; start < 32; start += group) {
        std::map<long, std::set<long>> banks;
        for (int i = start; i < start + group; ++i)
            for (int byte = 0; first[i] >= 0 && byte < bytes; ++byte) {
                const long word = (first[i] + byte) / 4;
                banks[word % 32].insert(word);
            }
        long worst = 0;
        for (const auto &[bank, words] : banks) worst = std::max(worst, (long)words.size());
        total.phases += worst > 0;
        total.wavefronts += worst;
        total.ways = std::max(total.ways, worst);
    }
}

void count_warp() {
    for (const auto &[request, first] : warp) {
        const auto &[statement, at, region, write, bytes] = request;
        Total &total = totals[{regions[region].name, write}];
        total.requests += 1;
        for (long at : first) total.elements += at >= 0 ? bytes / regions[region].element : 0;
        if (regions[region].shared)
            count_shared(total, first, bytes);
        else
            count_global(total, first, bytes);
    }
    warp.clear();
}

}  // namespace

void watch(const char *name, const void *base, std::size_t bytes, int element, bool shared) {
    for (const Region &region : regions)
        if (region.base == base) return;
    regions.push_back({name, static_cast<const char *>(base), bytes, element, shared});
}

void see(const void *address, int bytes, bool write, const void *statement) {
    const char *place = static_cast<const char *>(address);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const Region &region = regions[i];
        if (place < region.base || place >= region.base + region.bytes) continue;
        const Request request{statement, trips, static_cast<int>(i), write, bytes};
        auto found = warp.find(request);
        if (found == warp.end()) {
            found = warp.emplace(request, std::array<long, 32>()).first;
            found->second.fill(-1);
        }
        found->second[lane] = place - region.base;
    }
}

Trip::Trip(int value) { trips.push_back(value); }
Trip::~Trip() { trips.pop_back(); }

int run(int grid, int x, int y) {
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x)
        for (int thread = 0; thread < x * y; ++thread) {
            threadIdx = {thread % x, thread / x};
            lane = thread % 32;
            launch_one();
            if (lane == 31 || thread == x * y - 1) count_warp();
        }
    for (const auto &[key, t] : totals)
        std::printf("%s %d %ld %ld %ld %ld %ld %ld %ld\n", key.first.c_str(), key.second, t.elements,
                    t.requests, t.sectors, t.lines, t.phases, t.wavefronts, t.ways);
    return 0;
}
