// Compares each product of mini with its plain kernel, at the known shapes and at ragged ones.
// Exit code 0 if all agree, 1 if one does not, 2 if CUDA fails.
#include "mini.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

cudaError_t launch_mini_product_plain(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, cudaStream_t stream);

namespace {

void check(cudaError_t error, int line)
{
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
    std::exit(2);
}
#define CHECK(call) check(call, __LINE__)

// Numbers between -1 and 1, of a byte between -4 and 4, as they are stored.
template <typename Stored> Stored stored(float number)
{
    return static_cast<Stored>(std::is_integral_v<Stored> ? 4 * number : number);
}

[[maybe_unused]] unsigned bits_of(float number)
{
    unsigned bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// A number with `exponent` bits of exponent and `fraction` bits of fraction, cut off to them.
[[maybe_unused]] unsigned encoded(float number, int exponent, int fraction)
{
    const unsigned bits = bits_of(number);
    const int power = static_cast<int>(bits >> 23 & 255) - 127 + (1 << (exponent - 1)) - 1;
    const unsigned magnitude = power <= 0 ? 0 : power << fraction | (bits & 0x7fffff) >> (23 - fraction);
    return bits >> 31 << (exponent + fraction) | magnitude;
}
[[maybe_unused]] float decoded(unsigned bits, int exponent, int fraction)
{
    const int power = bits >> fraction & ((1 << exponent) - 1);
    const float sign = bits >> (exponent + fraction) ? -1.0f : 1.0f;
    const float part = (bits & ((1 << fraction) - 1)) / static_cast<float>(1 << fraction);
    const int bias = (1 << (exponent - 1)) - 1;
    return sign * (power ? std::ldexp(1 + part, power - bias) : std::ldexp(part, 1 - bias));
}

// A matrix on the GPU. Its elements are bits with EXPONENT and FRACTION bits, or, for 0, a C type.
template <typename Stored, int EXPONENT, int FRACTION>
struct Matrix {
    std::vector<Stored> here;
    Stored *there = nullptr;

    Matrix(size_t count, unsigned seed) : here(count)
    {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> between(-1.0f, 1.0f);
        for (Stored &element : here) {
            const float number = between(random);
            if constexpr (EXPONENT != 0)
                element = static_cast<Stored>(encoded(number, EXPONENT, FRACTION));
            else
                element = stored<Stored>(number);
        }
        CHECK(cudaMalloc(&there, (count + 1) * sizeof(Stored)));
        CHECK(cudaMemcpy(there, here.data(), count * sizeof(Stored), cudaMemcpyHostToDevice));
    }
    Matrix(const Matrix &) = delete;
    ~Matrix() { cudaFree(there); }

    std::vector<double> numbers() const
    {
        std::vector<Stored> found(here.size());
        CHECK(cudaMemcpy(found.data(), there, found.size() * sizeof(Stored), cudaMemcpyDeviceToHost));
        std::vector<double> numbers;
        for (const Stored element : found) {
            if constexpr (EXPONENT != 0)
                numbers.push_back(decoded(element, EXPONENT, FRACTION));
            else
                numbers.push_back(static_cast<double>(element));
        }
        return numbers;
    }
};

// Whether two results agree: `unit` bounds the rounding of a result, relative to it, and kernels
// add K products in different orders.
bool agree(const std::vector<double> &found, const std::vector<double> &wanted, double unit, int K)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        if (!std::isfinite(found[i]) && std::isfinite(wanted[i])) return false;
        error = std::fmax(error, std::fabs(found[i] - wanted[i]));
        size = std::fmax(size, std::fabs(wanted[i]));
    }
    return error <= 2 * unit * size + 64 * 0x1p-24 * std::sqrt(static_cast<double>(K)) * (1 + size);
}

bool test_product(int M, int N, int K)
{
    const int lda = K;
    const int ldb = N;
    const int ldc = N;
    Matrix<float, 0, 0> A((long long)M * lda, 1);
    Matrix<float, 0, 0> B((long long)K * ldb, 2);
    Matrix<float, 0, 0> C((long long)M * ldc, 3);
    Matrix<float, 0, 0> wanted((long long)M * ldc, 3);
    const float alpha = 1;
    const float beta = 0;
    const size_t bytes = mini_product_workspace(M, N, K);
    void *workspace = nullptr;
    CHECK(cudaMalloc(&workspace, bytes + 1));
    CHECK(cudaMemset(workspace, 0, bytes));
    CHECK(mini_product(M, N, K, alpha, A.there, lda, B.there, ldb, beta, C.there, ldc, workspace,
        bytes, nullptr));
    CHECK(launch_mini_product_plain(M, N, K, alpha, A.there, lda, B.there, ldb, beta, wanted.there,
        ldc, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(workspace));
    const bool right = agree(C.numbers(), wanted.numbers(), 0x1p-24, K);
    std::printf("%s product %d %d %d\n", right ? "right" : "WRONG", M, N, K);
    return right;
}

}  // namespace

int main()
{
    bool right = true;
    right &= test_product(512, 512, 512);
    right &= test_product(64, 64, 8192);
    right &= test_product(128, 64, 8192);
    right &= test_product(509, 509, 509);
    return right ? 0 : 1;
}
