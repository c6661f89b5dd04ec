// The CUDA runtime of the tests: it logs what allocates, zeroes, orders and retains.
#pragma once
#include <cstdlib>
#include <cstring>
#include <string>

enum cudaError_t {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMisalignedAddress = 716,
    cudaErrorStreamCaptureInvalidated = 901
};
typedef void *cudaStream_t;
typedef void *cudaGraph_t;
typedef void *cudaEvent_t;
typedef void *cudaUserObject_t;
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed = 2 };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice,
    cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; int device; };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaUserObjectNoDestructorSync = 1,
    cudaGraphUserObjectMove = 1 };

namespace stub {
extern unsigned long long capture;  // of every stream; 0: none
extern void (*destroy)(void *);
extern void *owned;
void log(const std::string &text);
inline thread_local int device = 0;
inline thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
inline void end_graph() { destroy(owned); }
}

inline cudaError_t cudaGetDevice(int *found) { *found = stub::device; return cudaSuccess; }
inline cudaError_t cudaSetDevice(int device)
{ stub::device = device; stub::log("device " + std::to_string(device)); return cudaSuccess; }
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{ std::swap(*mode, stub::mode); return cudaSuccess; }
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus *status,
    unsigned long long *id, cudaGraph_t *graph)
{
    *status = stub::capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    *id = stub::capture;
    *graph = &stub::capture;
    return cudaSuccess;
}
inline cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{ *id = reinterpret_cast<unsigned long long>(stream); return cudaSuccess; }
// Memory on device 1 begins at 2^40, the host's ends at 4096: what the tests' arrays say.
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *found, const void *pointer)
{
    const unsigned long long at = reinterpret_cast<unsigned long long>(pointer);
    *found = {at < 4096 ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice, at >> 40 ? 1 : 0};
    return cudaSuccess;
}
inline cudaError_t cudaMalloc(void **found, size_t bytes)
{
    if (stub::capture && stub::mode != cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    *found = std::malloc(bytes);
    std::memset(*found, 1, bytes);
    stub::log("malloc " + std::to_string(bytes));
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned)
{ *made = &stub::owned; return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    std::memset(memory, value, bytes);
    stub::log("memset " + std::to_string(bytes));
    return cudaSuccess;
}
inline cudaError_t cudaUserObjectCreate(cudaUserObject_t *made, void *own, void (*destroy)(void *),
    unsigned, unsigned)
{ *made = stub::owned = own; stub::destroy = destroy; return cudaSuccess; }
inline cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned)
{ stub::log("retain"); return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned)
{ *made = nullptr; return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream)
{ stub::log("record " + std::to_string(reinterpret_cast<size_t>(stream))); return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned)
{ stub::log("wait " + std::to_string(reinterpret_cast<size_t>(stream))); return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { stub::log("error taken"); return cudaSuccess; }
inline const char *cudaGetErrorString(cudaError_t error)
{ return error == cudaErrorInvalidValue ? "invalid argument" : "another error"; }
