/* Plain loops beside the CPU bodies: bodies NAME N SECONDS prints the seconds of one call. As in bodies.lua: with one
 * thread the best call in processor time, else the mean of the time that passes. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long n;
static float *x, *y, *z;
static volatile float sink;

static void run_add(void) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) z[i] = x[i] + y[i];
}

static void run_relu(void) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) x[i] = x[i] < 0 ? 0 : x[i];
}

static void run_exp(void) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) z[i] = expf(x[i]);
}

static void run_copy(void) {
#pragma omp parallel for
    for (long i = 0; i < n; i++) z[i] = x[i];
}

static void run_sum(void) {
    double sum = 0; /* in double precision, as millrace does it */
#pragma omp parallel for reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += x[i];
    sink = (float)sum;
}

static void run_softmax(void) { /* of rows of 1000 */
#pragma omp parallel for
    for (long first = 0; first < n; first += 1000) {
        const float *a = x + first;
        float *b = z + first, max = a[0], sum = 0;
        for (int i = 0; i < 1000; i++) max = a[i] > max ? a[i] : max;
        for (int i = 0; i < 1000; i++) sum += b[i] = expf(a[i] - max);
        for (int i = 0; i < 1000; i++) b[i] /= sum;
    }
}

static void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                     float, float *, int);

static void run_matmul(void) {
    int m = (int)n;
    sgemm(101, 111, 111, m, m, m, 1, x, m, y, m, 0, z, m);
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } works[] = {{"add", run_add},      {"relu_", run_relu}, {"exp", run_exp},
                 {"copy_", run_copy},   {"sum", run_sum},    {"softmax", run_softmax},
                 {"matmul", run_matmul}};
    if (argc != 4) return 2;
    n = atol(argv[2]);
    double seconds = atof(argv[3]);
    void (*run)(void) = NULL;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (!strcmp(works[i].name, argv[1])) run = works[i].run;
    if (!run) return 2;
    long count = n;
    if (run == run_matmul) {
        void *library = dlopen("libopenblas.so.0", RTLD_NOW);
        void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
        if (!symbol) return 1;
        memcpy(&sgemm, &symbol, sizeof symbol);
        count = n * n;
    }
    x = malloc((size_t)count * sizeof *x);
    y = malloc((size_t)count * sizeof *y);
    z = malloc((size_t)count * sizeof *z);
    if (!x || !y || !z) return 1;
        /* First touched by the threads that use them. */
#pragma omp parallel for
    for (long i = 0; i < count; i++) {
        x[i] = (float)(i % 1009) / 1009 - 0.5f;
        y[i] = (float)(i % 997) / 997 - 0.5f;
        z[i] = 0;
    }
    run();
    const char *threads = getenv("OMP_NUM_THREADS");
    bool alone = threads && !strcmp(threads, "1");
    clockid_t clock = alone ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    long calls = 0;
    double began = now(clock), before = began, best = 1e9, last;
    do {
        run();
        calls++;
        last = now(clock);
        if (last - before < best) best = last - before;
        before = last;
    } while (last - began < seconds);
    printf("%.9g\n", alone ? best : (last - began) / (double)calls);
    return 0;
}
