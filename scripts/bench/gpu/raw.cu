/* The rows of run.sh in a C program with CUDA's runtime and cuBLAS, one line each as name, value, unit. Times per call
 * are host time with the stream kept fed, the median of 41 batches. Bandwidths are by events, the median of 21 rounds
 * over three sets of random data that the L2 cannot hold. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int check_ = (int)(call);                                                                  \
        if (check_ != 0) {                                                                         \
            fprintf(stderr, "raw.cu:%d: %s returned %d\n", __LINE__, #call, check_);               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

/* Seconds of host time a call. */
template <class Work> static double per_call(Work work, int calls = 500) {
    std::vector<double> times;
    for (int batch = 0; batch < 41 + 3; batch++) {
        double began = now();
        for (int i = 0; i < calls; i++) work();
        if (batch >= 3) times.push_back((now() - began) / calls);
    }
    CHECK(cudaDeviceSynchronize());
    return median(times);
}

/* Seconds of device time a call; work(i) uses set i % 3. */
template <class Work> static double on_device(Work work, int calls = 6) {
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    std::vector<double> times;
    for (int round = 0; round < 21 + 3; round++) {
        CHECK(cudaEventRecord(from));
        for (int i = 0; i < calls; i++) work(i);
        CHECK(cudaEventRecord(to));
        CHECK(cudaEventSynchronize(to));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, from, to));
        if (round >= 3) times.push_back(ms * 1e-3 / calls);
    }
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    return median(times);
}

static void say(const char *name, double value, const char *unit) {
    printf("%s\t%.6g\t%s\n", name, value, unit);
    fflush(stdout);
}

__global__ void add_small(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
__global__ void twice(float *z, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] * 2;
}

/* if (i < n) y[i] += a * x[i], as ours.lua has it in CUDA C. */
static const char scaled_ptx[] = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry add_scaled(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    .reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p, %r5, %r1; @%p bra DONE;
    cvta.to.global.u64 %rd3, %rd2; mul.wide.s32 %rd4, %r5, 4; add.s64 %rd5, %rd3, %rd4;
    cvta.to.global.u64 %rd6, %rd1; add.s64 %rd7, %rd6, %rd4;
    ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd7];
    fma.rn.f32 %f4, %f2, %f1, %f3; st.global.f32 [%rd7], %f4;
DONE:
    ret;
}
)";

__global__ void add(float4 *z, const float4 *x, const float4 *y) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i], b = y[i];
    z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__global__ void mul(float4 *z, const float4 *x, const float4 *y) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i], b = y[i];
    z[i] = make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
__global__ void relu(float4 *x) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i];
    x[i] = make_float4(fmaxf(a.x, 0), fmaxf(a.y, 0), fmaxf(a.z, 0), fmaxf(a.w, 0));
}
__global__ void noise(float *x, unsigned seed) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = (unsigned)i * 2654435761u + seed;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    x[i] = (float)((h ^ (h >> 16)) >> 8) * 0x1p-24f - 0.5f;
}

enum { SETS = 3 };
static const size_t GIB = (size_t)1 << 30, N = GIB / sizeof(float);

static float *random_floats(size_t n) {
    float *x;
    static unsigned seed = 1;
    CHECK(cudaMalloc(&x, n * sizeof *x));
    noise<<<(unsigned)(n / 256), 256>>>(x, seed++);
    return x;
}

static void small_work() {
    const int n = 1024;
    float *x = random_floats(n), *y = random_floats(n);
    cudaStream_t a, b;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    cudaEvent_t e, f;
    CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    say("small kernel", 1e6 * per_call([&] { add_small<<<4, 256, 0, a>>>(y, x, n); }), "us");

    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long keep = ~0ull;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    say("allocate and compute", 1e6 * per_call([&] {
            float *z;
            CHECK(cudaMallocAsync(&z, n * sizeof *z, a));
            twice<<<4, 256, 0, a>>>(z, x, n);
            CHECK(cudaFreeAsync(z, a));
        }), "us");

    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    CHECK(cublasSetStream(blas, a));
    float *p = random_floats(4096), *q = random_floats(4096), *r = random_floats(4096), one = 1, zero = 0;
    say("64x64 matmul", 1e6 * per_call([&] { cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, p, 64, q, 64, &zero, r, 64); }),
        "us");
    say("event record", 1e6 * per_call([&] { CHECK(cudaEventRecord(e, a)); }), "us");
    say("record and wait", 1e6 * per_call([&] {
            CHECK(cudaEventRecord(e, a));
            CHECK(cudaStreamWaitEvent(b, e, 0));
        }), "us");
    say("op, record, wait, both ways", 1e6 * per_call([&] {
            add_small<<<4, 256, 0, a>>>(y, x, n);
            CHECK(cudaEventRecord(e, a));
            CHECK(cudaStreamWaitEvent(b, e, 0));
            add_small<<<4, 256, 0, b>>>(y, x, n);
            CHECK(cudaEventRecord(f, b));
            CHECK(cudaStreamWaitEvent(a, f, 0));
        }), "us");
    CHECK(cublasDestroy(blas));
}

/* The rows about kernels that a program compiles while it runs, by the driver's own calls. */
static void kernels() {
    int n = 1024;
    float *x = random_floats(n), *y = random_floats(n), a = 0.5f;
    cudaStream_t s;
    CUmodule module;
    CUfunction function;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cuModuleLoadData(&module, scaled_ptx));
    CHECK(cuModuleGetFunction(&function, module, "add_scaled"));
    CHECK(cudaDeviceSynchronize());
    auto launch = [&] {
        void *args[] = {&y, &x, &a, &n};
        CHECK(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, s, args, nullptr));
    };
    say("kernel of the script, 4 args", 1e6 * per_call(launch), "us");
    say("load of a cached kernel", 1e3 * per_call([&] { /* the driver has a cache, too */
            CUmodule again;
            CHECK(cuModuleLoadData(&again, scaled_ptx));
            CHECK(cuModuleGetFunction(&function, again, "add_scaled"));
            CHECK(cuModuleUnload(again));
        }, 2), "ms");
}

static void bandwidth() {
    float *x[SETS], *y[SETS], *z[SETS];
    for (int i = 0; i < SETS; i++) x[i] = random_floats(N), y[i] = random_floats(N), z[i] = random_floats(N);
    unsigned blocks = (unsigned)(N / 4 / 256);
    say("add 1 GiB", 3e-9 * GIB / on_device([&](int i) { add<<<blocks, 256>>>((float4 *)z[i % SETS], (float4 *)x[i % SETS], (float4 *)y[i % SETS]); }), "GB/s");
    say("mul 1 GiB", 3e-9 * GIB / on_device([&](int i) { mul<<<blocks, 256>>>((float4 *)z[i % SETS], (float4 *)x[i % SETS], (float4 *)y[i % SETS]); }), "GB/s");
    say("relu_ 1 GiB", 2e-9 * GIB / on_device([&](int i) { relu<<<blocks, 256>>>((float4 *)x[i % SETS]); }), "GB/s");
    say("copy 1 GiB", 2e-9 * GIB / on_device([&](int i) { CHECK(cudaMemcpyAsync(z[i % SETS], x[i % SETS], GIB, cudaMemcpyDeviceToDevice)); }), "GB/s");
    for (int i = 0; i < SETS; i++) {
        CHECK(cudaFree(x[i]));
        CHECK(cudaFree(y[i]));
        CHECK(cudaFree(z[i]));
    }
}

static void products() {
    const int n = 8192;
    float *a[SETS], *b[SETS], *c = random_floats((size_t)n * n), one = 1, zero = 0;
    for (int i = 0; i < SETS; i++) a[i] = random_floats((size_t)n * n), b[i] = random_floats((size_t)n * n);
    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    for (int tf32 = 0; tf32 < 2; tf32++) {
        CHECK(cublasSetMathMode(blas, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
        double seconds = on_device([&](int i) {
            CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a[i % SETS], n, b[i % SETS], n, &zero, c, n));
        }, 3);
        say(tf32 ? "matmul 8192 tf32" : "matmul 8192 fp32", 2e-12 * n * n * (double)n / seconds, "TFLOP/s");
    }
}

static void pinned() {
    const size_t bytes = (size_t)256 << 20;
    float *device = random_floats(bytes / 4);
    void *host;
    CHECK(cudaMallocHost(&host, bytes));
    say("H2D pinned 256 MiB", 1e-9 * bytes / on_device([&](int) { CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice)); }, 3), "GB/s");
    say("D2H pinned 256 MiB", 1e-9 * bytes / on_device([&](int) { CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost)); }, 3), "GB/s");
}

static void peer() {
    int count;
    void *here, *there;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) return;
    CHECK(cudaMalloc(&here, GIB));
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaSetDevice(1));
    CHECK(cudaDeviceEnablePeerAccess(0, 0));
    CHECK(cudaMalloc(&there, GIB));
    CHECK(cudaSetDevice(0));
    say("peer copy 1 GiB", 1e-9 * GIB / on_device([&](int) { CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, GIB, 0)); }, 3), "GB/s");
}

/* `small`: only the rows that are about the cost of a call; `large`: the others. */
static void graphs() {
    cudaStream_t s;
    float *x, *y;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&x, 4096));
    CHECK(cudaMalloc(&y, 4096));
    auto capture = [&](cudaGraphExec_t *made, int kernels) {
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        for (int i = 0; i < kernels; i++) add_small<<<4, 256, 0, s>>>(y, x, 1024);
        CHECK(cudaStreamEndCapture(s, &graph));
        CHECK(cudaGraphInstantiate(made, graph, 0));
        CHECK(cudaGraphDestroy(graph));
    };
    cudaGraphExec_t one, kept, made;
    capture(&one, 1);
    capture(&kept, 100);
    auto launch = [&](cudaGraphExec_t graph) {
        CHECK(cudaGraphLaunch(graph, s));
        CHECK(cudaStreamSynchronize(s));
    };
    say("graph of 1 small kernel", 1e6 * per_call([&] { launch(one); }, 50), "us");
    say("graph of 100 small kernels", 1e6 * per_call([&] { launch(kept); }, 50), "us");
    say("capture of 100 small kernels", 1e6 * per_call([&] {
            capture(&made, 100);
            launch(made);
            CHECK(cudaGraphExecDestroy(made));
        }, 5), "us");
    CHECK(cudaGraphExecDestroy(one));
    CHECK(cudaGraphExecDestroy(kept));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaStreamDestroy(s));
}

int main(int argc, char **argv) {
    bool small = argc < 2 || argv[1][0] == 's', large = argc < 2 || argv[1][0] == 'l';
    double began = now();
    CHECK(cudaFree(nullptr));
    say("context", 1e3 * (now() - began), "ms");
    if (small) {
        small_work();
        kernels();
        graphs();
    }
    if (!large) return 0;
    bandwidth();
    products();
    pinned();
    peer();
    return 0;
}
