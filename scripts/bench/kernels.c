/* The cost of the virtual GPU's interpreter beside a plain C loop over the same threads, on one core. Three kernels run
 * with checks off and on, while the hazard checker looks for races, and while they are counted for k:profile().
 *
 *     make CUDA=0 build/libmillrace.a && cc -O0 -D_GNU_SOURCE -Isrc scripts/bench/kernels.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/kernels && /tmp/kernels
 *
 * The loops are compiled here, without optimisation: so this file is, and what it measures of the library is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile.h"
#include "ptx/run/profile.h"
#include "ptx/watch/watch.h"
#include "support.h"

enum { N = 1 << 20, SIDE = 256, TILE = 16, BLOCK = 256, ROUNDS = 7 };

static const char source[] =
    "extern \"C\" __global__ void saxpy(float *y, const float *x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "extern \"C\" __global__ void matmul(float *c, const float *a, const float *b, int n) {\n"
    "  __shared__ float as[16][16], bs[16][16];\n"
    "  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + "
    "x;\n"
    "  float sum = 0;\n"
    "  for (int k = 0; k < n; k += 16) {\n"
    "    as[y][x] = a[row * n + k + x]; bs[y][x] = b[(k + y) * n + column];\n"
    "    __syncthreads();\n"
    "    for (int i = 0; i < 16; i++) sum += as[y][i] * bs[i][x];\n"
    "    __syncthreads();\n"
    "  }\n"
    "  c[row * n + column] = sum;\n"
    "}\n"
    "extern \"C\" __global__ void reduce(float *out, const float *x, int n) {\n"
    "  __shared__ float s[256];\n"
    "  int t = threadIdx.x, i = blockIdx.x * 256 + t;\n"
    "  s[t] = i < n ? x[i] : 0;\n"
    "  __syncthreads();\n"
    "  for (int k = 128; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }\n"
    "  if (t == 0) out[blockIdx.x] = s[0];\n"
    "}\n";

static float x[N], y[N], out[N];

/* ---- the plain loops: thread by thread, barrier by barrier */

static void saxpy(void) {
    for (int i = 0; i < N; i++)
        if (i < N) y[i] = 2.0f * x[i] + y[i];
}

static void matmul(void) {
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            float sum = 0;
            for (int k = 0; k < SIDE; k++) sum += x[row * SIDE + k] * y[k * SIDE + column];
            out[row * SIDE + column] = sum;
        }
}

static void reduce(void) {
    for (int b = 0; b < N / BLOCK; b++) {
        float s[BLOCK];
        for (int t = 0; t < BLOCK; t++) s[t] = x[b * BLOCK + t];
        for (int k = BLOCK / 2; k > 0; k >>= 1)
            for (int t = 0; t < BLOCK; t++)
                if (t < k) s[t] += s[t + k];
        out[b] = s[0];
    }
}

/* ---- the kernels */

static bool find(void *context, uint64_t address, mr_ptx_range *range) {
    char *const arrays[] = {(char *)x, (char *)y, (char *)out};
    (void)context;
    for (int i = 0; i < 3; i++) {
        uint64_t first = (uint64_t)(uintptr_t)arrays[i];
        if (address - first >= sizeof x) continue;
        *range = (mr_ptx_range){.first = first, .end = first + sizeof x, .host = arrays[i]};
        return true;
    }
    return false;
}

typedef struct {
    const char *name;
    void (*loop)(void);
    uint32_t grid[3], block[3];
    char params[32];
} subject;

typedef enum { UNCHECKED, CHECKED, WATCHED, COUNTED, WAYS } way;

static double run_ms(const mr_ptx_module *module, const subject *s, way how) {
    uint64_t blocks = (uint64_t)s->grid[0] * s->grid[1];
    mr_ptx_launch launch = {.kernel = mr_ptx_kernel_find(module, s->name),
                            .grid = {s->grid[0], s->grid[1], 1},
                            .block = {s->block[0], s->block[1], 1},
                            .params = s->params,
                            .memory = {.find = find},
                            .device = {.sm_count = 132, .max_shared = 232448},
                            .check = how != UNCHECKED};
    double begin = now_ns();
    if (how == WATCHED)
        launch.watch = mr_ptx_watch_create(module, blocks, s->block[0] * s->block[1]);
    if (how == COUNTED) launch.profile = mr_ptx_profile_create(module);
    check(mr_ptx_run(&launch, 0, blocks));
    if (launch.watch) mr_ptx_watch_destroy(launch.watch);
    if (launch.profile) mr_ptx_profile_destroy(launch.profile);
    return (now_ns() - begin) * 1e-6;
}

static double loop_ms(const subject *s) {
    double begin = now_ns();
    s->loop();
    return (now_ns() - begin) * 1e-6;
}

static int by_value(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return first < second ? -1 : first > second;
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void compare(const mr_ptx_module *module, const subject *s) {
    double loop[ROUNDS], ran[WAYS][ROUNDS], middle[WAYS];
    for (int r = 0; r < ROUNDS; r++) { /* in turn: a disturbance meets all of them */
        loop[r] = loop_ms(s);
        for (int w = 0; w < WAYS; w++) ran[w][r] = run_ms(module, s, (way)w);
    }
    double plain = median(loop);
    for (int w = 0; w < WAYS; w++) middle[w] = median(ran[w]);
    printf("| %-8s | %7.2f |", s->name, plain);
    for (int w = 0; w < WAYS; w++) printf(" %7.2f (%.1f) |", middle[w], middle[w] / plain);
    printf("\n");
}

static void put_pointer(subject *s, int at, const void *pointer) {
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    memcpy(s->params + at, &address, sizeof address);
}

int main(void) {
    mr_compile_source what = {
        .text = source, .size = sizeof source - 1, .file = "kernels.c", .compute_major = 9};
    mr_compiled compiled;
    mr_ptx_module *module;
    const float a = 2;
    const int n = N, side = SIDE;
    subject subjects[] = {
        {"saxpy", saxpy, {N / BLOCK, 1, 1}, {BLOCK, 1, 1}, {0}},
        {"matmul", matmul, {SIDE / TILE, SIDE / TILE, 1}, {TILE, TILE, 1}, {0}},
        {"reduce", reduce, {N / BLOCK, 1, 1}, {BLOCK, 1, 1}, {0}},
    };
    put_pointer(&subjects[0], 0, y);
    put_pointer(&subjects[0], 8, x);
    memcpy(subjects[0].params + 16, &a, sizeof a);
    memcpy(subjects[0].params + 20, &n, sizeof n);
    put_pointer(&subjects[1], 0, out);
    put_pointer(&subjects[1], 8, x);
    put_pointer(&subjects[1], 16, y);
    memcpy(subjects[1].params + 24, &side, sizeof side);
    put_pointer(&subjects[2], 0, out);
    put_pointer(&subjects[2], 8, x);
    memcpy(subjects[2].params + 16, &n, sizeof n);
    for (int i = 0; i < N; i++) x[i] = (float)(i % 97) * 0.01f, y[i] = 1;
    check(mr_compile(&what, &compiled));
    check(mr_ptx_module_load(compiled.ptx, compiled.size, "kernels.c", &module));
    printf("%s, milliseconds on one core, median of %d (times the loop's)\n\n", compiled.compiler,
           ROUNDS);
    printf("| kernel   | C, -O0 | checks off | checks on | races looked for | counted |\n");
    printf("|----------|--------|------------|-----------|------------------|---------|\n");
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) compare(module, &subjects[i]);
    mr_compiled_free(&compiled);
    mr_ptx_module_release(module);
    return 0;
}
