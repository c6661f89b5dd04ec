// What the Python package of mini calls: a product with its arguments in one struct, and a
// workspace that is kept.
#include "mini.h"

#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace {

constexpr size_t COUNTERS = 65536;  // bytes at the beginning of a workspace: zeros

struct Workspace {
    char *memory = nullptr;
    size_t bytes = 0;
};

// A device, a stream, and a capture, or 0. A captured graph may run at the same time as other calls
// on the stream that it was captured on, so it has a workspace of its own.
using Place = std::tuple<int, unsigned long long, unsigned long long>;

// They live as long as the process: a graph may end after static destructors. No function of CUDA is
// called under the lock, since CUDA calls `give_back` from a thread of its own.
std::mutex &lock = *new std::mutex;
std::map<Place, Workspace> &kept = *new std::map<Place, Workspace>;
std::vector<Workspace> &spare = *new std::vector<Workspace>;

// A graph's workspace; it ends with the graph and all that was instantiated of it.
struct OfGraph {
    Place place;
    Workspace workspace;
};

void give_back(void *ended)
{
    const OfGraph *const own = static_cast<OfGraph *>(ended);
    {
        const std::lock_guard<std::mutex> locked(lock);
        spare.push_back(own->workspace);
        const auto found = kept.find(own->place);
        if (found != kept.end() && found->second.memory == own->workspace.memory) kept.erase(found);
    }
    delete own;
}

// While a stream is captured, allocating memory and loading a kernel are allowed in this mode alone.
struct Relaxed {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
    ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
};

// The device is the current one as long as this lives; -1: that which is current.
struct OnDevice {
    int device, before = 0;
    cudaError_t error;
    explicit OnDevice(int wanted) : device(wanted), error(cudaGetDevice(&before))
    {
        if (device < 0) device = before;
        if (error == cudaSuccess && device != before) error = cudaSetDevice(device);
    }
    ~OnDevice() { if (device != before) cudaSetDevice(before); }
};

// An error that was reported: the next launcher would read it as its own.
cudaError_t reported(cudaError_t error)
{
    if (error != cudaSuccess) cudaGetLastError();
    return error;
}

// On a stream of its own: the caller's may be captured.
cudaError_t zero_counters(char *memory)
{
    cudaStream_t own = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    if (error != cudaSuccess) return error;
    error = cudaMemsetAsync(memory, 0, COUNTERS, own);
    if (error == cudaSuccess) error = cudaStreamSynchronize(own);
    cudaStreamDestroy(own);
    return error;
}

// A graph's workspace that is free again, or new memory. Memory is not freed: that would wait for
// the device, and earlier calls may still use it. It grows at least twofold.
cudaError_t allocate(size_t bytes, bool captured, Workspace &found)
{
    if (captured) {
        const std::lock_guard<std::mutex> locked(lock);
        for (size_t at = 0; at < spare.size() && !found.memory; ++at)
            if (spare[at].bytes >= bytes) found = spare[at], spare.erase(spare.begin() + at);
    }
    if (!found.memory) {
        void *memory = nullptr;
        const cudaError_t error = cudaMalloc(&memory, bytes);
        if (error != cudaSuccess) return error;
        found = {static_cast<char *>(memory), bytes};
    }
    return zero_counters(found.memory);
}

cudaError_t workspace_for(int device, cudaStream_t stream, size_t bytes, Workspace &found)
{
    if (bytes == 0) return cudaSuccess;
    cudaStreamCaptureStatus status;
    unsigned long long stream_id = 0, capture = 0;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &capture, &graph);
    if (error == cudaSuccess) error = cudaStreamGetId(stream, &stream_id);
    if (error != cudaSuccess) return error;
    if (status == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
    const bool captured = status == cudaStreamCaptureStatusActive;
    const Place place(device, stream_id, captured ? capture : 0);
    size_t before = 0;
    {
        const std::lock_guard<std::mutex> locked(lock);
        const auto there = kept.find(place);
        if (there != kept.end()) before = there->second.bytes;
        if (before >= bytes) return found = there->second, cudaSuccess;
    }
    error = allocate(bytes > 2 * before ? bytes : 2 * before, captured, found);
    if (error == cudaSuccess && captured) {
        cudaUserObject_t owner = nullptr;
        OfGraph *const own = new OfGraph{place, found};
        error = cudaUserObjectCreate(&owner, own, give_back, 1, cudaUserObjectNoDestructorSync);
        if (error == cudaSuccess)
            error = cudaGraphRetainUserObject(graph, owner, 1, cudaGraphUserObjectMove);
    }
    if (error != cudaSuccess) return error;
    const std::lock_guard<std::mutex> locked(lock);
    kept[place] = found;
    return cudaSuccess;
}

}  // namespace

extern "C" const char *mini_error_text(int error)
{
    return cudaGetErrorString(static_cast<cudaError_t>(error));
}

// The device whose memory a pointer is in; -1: the host's.
extern "C" int mini_device_of_pointer(const void *pointer)
{
    cudaPointerAttributes found = {};
    const bool known = reported(cudaPointerGetAttributes(&found, pointer)) == cudaSuccess;
    const bool there = found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
    return known && there ? found.device : -1;
}

// What is launched on `after` from now on waits for what was launched on `before`.
extern "C" cudaError_t mini_order_streams(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event = nullptr;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error != cudaSuccess) return reported(error);
    error = cudaEventRecord(event, before);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(after, event, 0);
    cudaEventDestroy(event);
    return reported(error);
}

struct product_arguments {
    int device;
    int M;
    int N;
    int K;
    float alpha;
    const float *A;
    int lda;
    const float *B;
    int ldb;
    float beta;
    float *C;
    int ldc;
    cudaStream_t stream;
};

extern "C" cudaError_t mini_product_packed(const char *packed)
{
    product_arguments a;
    std::memcpy(&a, packed, sizeof a);
    const OnDevice on(a.device);
    if (on.error != cudaSuccess) return reported(on.error);
    const Relaxed relaxed;
    Workspace found;
    const size_t bytes = mini_product_workspace(a.M, a.N, a.K);
    const cudaError_t error = workspace_for(on.device, a.stream, bytes, found);
    if (error != cudaSuccess) return reported(error);
    return reported(mini_product(a.M, a.N, a.K, a.alpha, a.A, a.lda, a.B, a.ldb, a.beta, a.C,
        a.ldc, found.memory, found.bytes, a.stream));
}
