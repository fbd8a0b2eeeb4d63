/* The kernels of tests/kernels in the PTX interpreter, as each compiler of this machine makes them, against plain
 * loops. */
#include "ptx_fixture.h"

#include "../kernels/kernel_file.h"
#include "compile/compile.h"

static const char *compiler; /* of the group of tests that runs */

typedef struct {
    device d;
    mr_compiled compiled;
    kernel_file file;
    char *ptx;
} program;

/* Loads tests/kernels/NAME.cu; false: this machine does not have the compiler. */
static bool open_program(program *p, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tests/kernels/%s.cu", name);
    assert_true(kernel_file_read(path, &p->file));
    mr_compile_source source = {.text = p->file.text,
                                .size = p->file.size,
                                .file = path,
                                .compute_major = 9,
                                .names = p->file.names,
                                .name_count = p->file.name_count};
    setenv("MILLRACE_COMPILER", compiler, 1);
    setenv("MILLRACE_CACHE", "off", 1);
    mr_status status = mr_compile(&source, &p->compiled);
    if (status && status->code == MR_CODE_NOT_SUPPORTED) {
        mr_error_destroy(status);
        kernel_file_free(&p->file);
        return false;
    }
    expect_none(status);
    load_ptx(&p->d, p->compiled.ptx);
    return true;
}
static void close_program(program *p) {
    unload(&p->d);
    mr_compiled_free(&p->compiled);
    kernel_file_free(&p->file);
}
#define OPEN(p, name)                                                                              \
    program p;                                                                                     \
    if (!open_program(&p, name)) skip();                                                           \
    device *d = &p.d;

/* `name` as the source has it. */
static void prepare(program *p, const char *name, uint32_t grid, uint32_t block) {
    for (int i = 0; i < p->file.name_count; i++) {
        if (strcmp(p->file.names[i], name) != 0) continue;
        begin(&p->d, p->compiled.entries[i], grid, block);
        return;
    }
    printf("no kernel %s\n", name);
    fail();
}

static uint64_t seed = 0x123456789abcdef;
static uint32_t random_below(uint32_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % limit);
}

static float *floats(device *d, const char *name, size_t count, uint64_t *out_address) {
    char *host;
    *out_address = give(d, name, 4 * count, 0, &host);
    for (size_t i = 0; i < count; i++) ((float *)(void *)host)[i] = (float)random_below(64) - 20.0f;
    return (float *)(void *)host;
}
static int *ints(device *d, const char *name, size_t count, uint64_t *out_address) {
    char *host;
    *out_address = give(d, name, 4 * count, 0, &host);
    for (size_t i = 0; i < count; i++) ((int *)(void *)host)[i] = (int)random_below(200) - 100;
    return (int *)(void *)host;
}

static void vectors_are_added(void **state) {
    (void)state;
    OPEN(p, "vector_add")
    uint64_t out, a, b;
    float *sum = floats(d, "sum", 1000, &out), *x = floats(d, "a", 1000, &a),
          *y = floats(d, "b", 1000, &b);
    static const char *const names[] = {"vector_add", "vector_add_stride"};
    for (int k = 0; k < 2; k++) {
        prepare(&p, names[k], k ? 2 : 8, 128);
        PASS(d, uint64_t, out);
        PASS(d, uint64_t, a);
        PASS(d, uint64_t, b);
        PASS(d, int, 1000);
        memset(sum, 0, 4000);
        run(d);
        for (int i = 0; i < 1000; i++) assert_true(sum[i] == x[i] + y[i]);
    }
    close_program(&p);
}

static void every_reduction_adds_up(void **state) {
    (void)state;
    OPEN(p, "reduce")
    enum { COUNT = 4096 };
    uint64_t to, from;
    float *partial = floats(d, "partial", 64, &to), *in = floats(d, "in", COUNT, &from), want = 0,
          got;
    for (int i = 0; i < COUNT; i++) want += in[i];
    for (int k = 0; k < p.file.name_count; k++) {
        const char *name = p.file.names[k];
        bool halves =
            strstr(name, "first_add") || strstr(name, "last_warp") || strstr(name, "unrolled");
        uint32_t block = strstr(name, "128") ? 128 : 256, grid = COUNT / block / (halves ? 2 : 1);
        prepare(&p, name, grid, block);
        d->launch.dynamic_shared = 4 * block;
        PASS(d, uint64_t, to);
        PASS(d, uint64_t, from);
        PASS(d, int, COUNT);
        memset(partial, 0, 256);
        run(d);
        got = 0;
        for (uint32_t i = 0; i < grid; i++) got += partial[i];
        if (got != want) printf("%s: %g, not %g\n", name, (double)got, (double)want);
        assert_true(got == want);
    }
    close_program(&p);
}

static void scans_are_prefix_sums(void **state) {
    (void)state;
    OPEN(p, "scan")
    enum { COUNT = 500, BLOCK = 128 };
    uint64_t to, from, totals;
    int *out = ints(d, "out", COUNT, &to), *in = ints(d, "in", COUNT, &from),
        *total = ints(d, "totals", 4, &totals);
    for (int k = 0; k < 3; k++) {
        static const char *const names[] = {"scan_inclusive", "scan_exclusive", "scan_warps"};
        int n = k == 1 ? 2 * BLOCK : BLOCK;
        prepare(&p, names[k], (COUNT + (uint32_t)n - 1) / (uint32_t)n, BLOCK);
        d->launch.dynamic_shared = 8 * BLOCK;
        PASS(d, uint64_t, to);
        PASS(d, uint64_t, from);
        if (k == 1) PASS(d, uint64_t, totals);
        PASS(d, int, COUNT);
        run(d);
        int sum = 0;
        for (int i = 0; i < COUNT; i++) {
            if (i % n == 0) sum = 0;
            assert_int_equal(out[i], k == 1 ? sum : sum + in[i]);
            sum += in[i];
            if (k == 1 && (i % n == n - 1 || i == COUNT - 1)) assert_int_equal(total[i / n], sum);
        }
    }
    close_program(&p);
}

static void matrices_are_transposed_and_multiplied(void **state) {
    (void)state;
    {
        OPEN(p, "transpose")
        enum { WIDTH = 70, HEIGHT = 45 };
        uint64_t to, from;
        float *out = floats(d, "out", WIDTH * HEIGHT, &to),
              *in = floats(d, "in", WIDTH * HEIGHT, &from);
        for (int k = 0; k < p.file.name_count; k++) {
            prepare(&p, p.file.names[k], 3, 32);
            d->launch.grid[1] = 2, d->launch.block[1] = 8;
            PASS(d, uint64_t, to);
            PASS(d, uint64_t, from);
            PASS(d, int, WIDTH);
            PASS(d, int, HEIGHT);
            memset(out, 0, 4 * WIDTH * HEIGHT);
            run(d);
            for (int i = 0; i < WIDTH * HEIGHT; i++)
                assert_true(out[i % WIDTH * HEIGHT + i / WIDTH] == in[i]);
        }
        close_program(&p);
    }
    OPEN(p, "matmul")
    enum { ROWS = 40, INNER = 50, COLUMNS = 70 };
    uint64_t c, a, b;
    float *product = floats(d, "c", ROWS * COLUMNS, &c), *x = floats(d, "a", ROWS * INNER, &a),
          *y = floats(d, "b", INNER * COLUMNS, &b);
    for (int k = 0; k < 3; k++) {
        static const char *const names[] = {"matmul_direct", "matmul_tiled<16>",
                                            "matmul_tiled<32>"};
        uint32_t size = k == 2 ? 32 : 16;
        prepare(&p, names[k], (COLUMNS + size - 1) / size, size);
        d->launch.grid[1] = (ROWS + size - 1) / size, d->launch.block[1] = size;
        PASS(d, uint64_t, c);
        PASS(d, uint64_t, a);
        PASS(d, uint64_t, b);
        PASS(d, int, ROWS);
        PASS(d, int, INNER);
        PASS(d, int, COLUMNS);
        memset(product, 0, 4 * ROWS * COLUMNS);
        run(d);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            float sum = 0; /* whole numbers: exact in any order */
            for (int n = 0; n < INNER; n++)
                sum += x[i / COLUMNS * INNER + n] * y[n * COLUMNS + i % COLUMNS];
            assert_true(product[i] == sum);
        }
    }
    close_program(&p);
}

static void bytes_are_counted(void **state) {
    (void)state;
    OPEN(p, "histogram")
    enum { COUNT = 5000 };
    uint64_t counts, data;
    char *bytes;
    int *found = ints(d, "counts", 256, &counts), want[256] = {0};
    data = give(d, "data", COUNT, 0, &bytes);
    for (int i = 0; i < COUNT; i++) {
        bytes[i] = (char)(random_below(16) * random_below(16));
        want[(unsigned char)bytes[i]]++;
    }
    for (int k = 0; k < p.file.name_count; k++) {
        prepare(&p, p.file.names[k], 5, 100);
        PASS(d, uint64_t, counts);
        PASS(d, uint64_t, data);
        PASS(d, int, COUNT);
        memset(found, 0, 1024);
        run(d);
        assert_memory_equal(found, want, 1024);
    }
    close_program(&p);
}

static int by_float(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}
static int by_unsigned(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}
static void sorts_sort(void **state) {
    (void)state;
    {
        OPEN(p, "bitonic_sort")
        uint64_t at;
        float *values = floats(d, "values", 512, &at), want[512];
        memcpy(want, values, sizeof want);
        for (int b = 0; b < 2; b++) qsort(want + 256 * b, 256, 4, by_float);
        prepare(&p, "bitonic_block", 2, 256);
        d->launch.dynamic_shared = 1024;
        PASS(d, uint64_t, at);
        run(d);
        assert_memory_equal(values, want, sizeof want);
        close_program(&p);
    }
    OPEN(p, "radix_sort")
    uint64_t at;
    unsigned *keys = (unsigned *)ints(d, "values", 256, &at), want[256];
    memcpy(want, keys, sizeof want);
    for (int b = 0; b < 2; b++) qsort(want + 128 * b, 128, 4, by_unsigned);
    prepare(&p, "radix_sort_block", 2, 128);
    d->launch.dynamic_shared = 1024;
    PASS(d, uint64_t, at);
    run(d);
    assert_memory_equal(keys, want, sizeof want);
    close_program(&p);
}

static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static void functions_call_themselves_and_others(void **state) {
    (void)state;
    OPEN(p, "recursion")
    uint64_t to, a, b, which;
    int *out = ints(d, "out", 200, &to), *x = ints(d, "a", 200, &a), *y = ints(d, "b", 200, &b),
        *w = ints(d, "which", 200, &which);
    prepare(&p, "fibonacci", 2, 96);
    PASS(d, uint64_t, to);
    PASS(d, int, 180);
    run(d);
    for (int i = 0; i < 180; i++) assert_int_equal(out[i], fibonacci(i % 16));
    prepare(&p, "ackermann", 2, 96);
    PASS(d, uint64_t, to);
    PASS(d, int, 180);
    run(d);
    for (int i = 0; i < 180; i++) assert_int_equal(out[i], ackermann(i % 3, i % 4));
    for (int i = 0; i < 200; i++) w[i] = (int)random_below(3);
    prepare(&p, "apply", 2, 100);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, a);
    PASS(d, uint64_t, b);
    PASS(d, uint64_t, which);
    PASS(d, int, 200);
    run(d);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(out[i], w[i] == 0 ? x[i] + y[i] : w[i] == 1 ? x[i] - y[i] : x[i] * y[i]);
    }
    close_program(&p);
}

static void variables_of_the_module_last(void **state) {
    (void)state;
    OPEN(p, "globals")
    uint64_t to, from, calls, total;
    float *out = floats(d, "out", 256, &to), *in = floats(d, "in", 256, &from);
    int *found = ints(d, "calls", 1, &calls);
    char *sum;
    total = give(d, "total", 8, 0, &sum);
    prepare(&p, "polynomial", 2, 128);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    PASS(d, int, 256);
    run(d);
    for (int i = 0; i < 256; i++) {
        double x = (double)in[i], want = ((-0.125 * x + 0.25) * x - 0.5) * x + 1.0;
        assert_true((double)out[i] == want);
    }
    prepare(&p, "count_calls", 2, 40);
    PASS(d, int, 3);
    run(d);
    prepare(&p, "read_calls", 1, 1);
    PASS(d, uint64_t, calls);
    PASS(d, uint64_t, total);
    run(d);
    assert_int_equal(*found, 100 + 80 * 3);
    assert_int_equal(*(uint64_t *)(void *)sum, 2 * 5 * (1 + 4 + 9 + 16 + 25 + 36 + 49));
    prepare(&p, "remember", 1, 256);
    PASS(d, uint64_t, from);
    run(d);
    prepare(&p, "recall", 1, 256);
    PASS(d, uint64_t, to);
    run(d);
    for (int i = 0; i < 256; i++) assert_true(out[i] == in[255 - i]);
    close_program(&p);
}

static void the_last_block_adds_what_the_others_left(void **state) {
    (void)state;
    OPEN(p, "last_block")
    uint64_t to, partial, from;
    float *out = floats(d, "out", 1, &to);
    floats(d, "partial", 6, &partial);
    float *in = floats(d, "in", 3000, &from), want = 0;
    for (int i = 0; i < 3000; i++) want += in[i];
    for (int round = 0; round < 2; round++) { /* the counter is 0 again */
        prepare(&p, "sum_all<128>", 6, 128);
        PASS(d, uint64_t, to);
        PASS(d, uint64_t, partial);
        PASS(d, uint64_t, from);
        PASS(d, int, 3000);
        *out = 0;
        run(d);
        assert_true(*out == want);
    }
    close_program(&p);
}

static void groups_cooperate(void **state) {
    (void)state;
    OPEN(p, "tiles")
    uint64_t to, from, used;
    int *out = ints(d, "out", 256, &to), *in = ints(d, "in", 256, &from),
        *count = ints(d, "used", 1, &used);
    static const int sizes[] = {4, 16, 32};
    for (int k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "tile_sums<%d>", sizes[k]);
        prepare(&p, name, 2, 128);
        PASS(d, uint64_t, to);
        PASS(d, uint64_t, from);
        PASS(d, int, 250);
        run(d);
        for (int t = 0; t < 256 / sizes[k]; t++) {
            int sum = 0;
            for (int i = t * sizes[k]; i < (t + 1) * sizes[k] && i < 250; i++) sum += in[i];
            assert_int_equal(out[t], sum);
        }
    }
    prepare(&p, "filter", 2, 128);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, used);
    PASS(d, uint64_t, from);
    PASS(d, int, 256);
    *count = 0;
    run(d);
    int positive = 0, sum = 0, kept = 0, most = 0;
    for (int i = 0; i < 256; i++) {
        if (in[i] > 0) positive++, sum += in[i];
        if (in[i] > most) most = in[i];
    }
    assert_int_equal(*count, positive);
    for (int i = 0; i < positive; i++) kept += out[i];
    assert_int_equal(kept, sum);
    prepare(&p, "block_reduce", 1, 128);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    PASS(d, int, 256);
    run(d);
    assert_int_equal(out[0], most);
    close_program(&p);
}

static void lanes_of_a_warp_work_together(void **state) {
    (void)state;
    OPEN(p, "warps")
    uint64_t to, from, kept_at;
    int *out = ints(d, "out", 512, &to), *in = ints(d, "in", 64, &from),
        *kept = ints(d, "kept", 1, &kept_at);
    prepare(&p, "shuffles", 1, 64);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    run(d);
    for (int t = 0; t < 64; t++) {
        int lane = t % 32, base = t - lane;
        int want[8] = {base + 5,
                       base + lane / 8 * 8 + (t + 3) % 8,
                       lane >= 3 ? t - 3 : t,
                       lane % 16 >= 2 ? t - 2 : t,
                       lane + 7 < 32 ? t + 7 : t,
                       lane % 4 < 3 ? t + 1 : t,
                       base + (lane ^ 9),
                       base + (lane ^ 1)};
        for (int k = 0; k < 8; k++) assert_int_equal(out[8 * t + k], in[want[k]]);
    }
    for (int i = 0; i < 32; i++) in[i] = (int)random_below(8) - 2;
    prepare(&p, "votes", 1, 32);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    run(d);
    uint32_t positive = 0, odd_above = 0;
    for (int i = 0; i < 32; i++) {
        positive |= (uint32_t)(in[i] > 0) << i;
        odd_above |= (uint32_t)((in[i] & 1) && in[i] > 3) << i;
    }
    for (int i = 0; i < 32; i++) {
        assert_int_equal((uint32_t)out[4 * i], positive);
        assert_int_equal(out[4 * i + 1], 0);
        assert_int_equal(out[4 * i + 2], 1);
        assert_int_equal((uint32_t)out[4 * i + 3], in[i] & 1 ? odd_above : 0);
    }
    prepare(&p, "matches", 1, 32);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    run(d);
    for (int i = 0; i < 32; i++) {
        uint32_t same = 0;
        for (int k = 0; k < 32; k++) same |= (uint32_t)(in[k] == in[i]) << k;
        assert_int_equal((uint32_t)out[3 * i], same);
        assert_int_equal(out[3 * i + 1], 0);
        assert_int_equal(out[3 * i + 2], 0);
    }
    prepare(&p, "compact", 1, 32);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, kept_at);
    PASS(d, uint64_t, from);
    run(d);
    int n = 0;
    for (int i = 0; i < 32; i++) {
        if (in[i]) assert_int_equal(out[n++], in[i]);
    }
    assert_int_equal(*kept, n);
    close_program(&p);
}

static void threads_run_programs_of_their_own(void **state) {
    (void)state;
    enum {
        PUSH,
        ADD,
        SUBTRACT,
        MULTIPLY,
        NEGATE,
        DUPLICATE,
        SWAP,
        JUMP_IF_ZERO,
        JUMP,
        LOAD_THREAD,
        HALT
    };
    OPEN(p, "switch_table")
    uint64_t results, code, starts;
    int *result = ints(d, "results", 100, &results), *codes = ints(d, "code", 40, &code),
        *start = ints(d, "starts", 100, &starts);
    /* At 0: (thread * 3 - 7) squared; at 20: counts thread down to 0, which is the result; at 35 an endless loop. */
    static const int text[40] = {LOAD_THREAD,
                                 PUSH,
                                 3,
                                 MULTIPLY,
                                 PUSH,
                                 7,
                                 SUBTRACT,
                                 DUPLICATE,
                                 MULTIPLY,
                                 NEGATE,
                                 HALT,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 0,
                                 LOAD_THREAD,
                                 DUPLICATE,
                                 JUMP_IF_ZERO,
                                 29,
                                 PUSH,
                                 -1,
                                 ADD,
                                 JUMP,
                                 21,
                                 PUSH,
                                 5,
                                 ADD,
                                 HALT,
                                 0,
                                 0,
                                 JUMP,
                                 35};
    memcpy(codes, text, sizeof text);
    for (int i = 0; i < 100; i++) start[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 20 : 35;
    prepare(&p, "run_programs", 2, 64);
    PASS(d, uint64_t, results);
    PASS(d, uint64_t, code);
    PASS(d, uint64_t, starts);
    PASS(d, int, 100);
    PASS(d, int, 1000);
    run(d);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(result[i], i % 3 == 0 ? -(i * 3 - 7) * (i * 3 - 7) : i % 3 == 1 ? 5 : -1);
    }
    close_program(&p);
}

static void kernels_print(void **state) {
    (void)state;
    OPEN(p, "print")
    uint64_t at;
    float *values = floats(d, "values", 4, &at);
    values[0] = 3.14159f, values[3] = -2.5f;
    prepare(&p, "print_threads", 2, 2);
    run(d);
    assert_string_equal(d->printed.data, "block 0, thread 0 of 2\nblock 0, thread 1 of 2\n"
                                         "block 1, thread 0 of 2\nblock 1, thread 1 of 2\n");
    mr_buffer_free(&d->printed);
    prepare(&p, "print_values", 1, 32);
    PASS(d, uint64_t, at);
    PASS(d, int, 4);
    run(d);
    assert_string_equal(d->printed.data,
                        "no arguments\n-3 4 4000000000 ff A %\n"
                        "-1234567890123 12345678901234567890 abcdefabcdef\n"
                        "1.500000 1.000000e+10 0.0001    3.142|-2.50   |\n"
                        "text and    ab, at an address\n65 -2    42|42   |00042|+42\n");
    close_program(&p);
}

static void assertions_fail_with_their_line(void **state) {
    (void)state;
    OPEN(p, "assertion")
    uint64_t to, from;
    ints(d, "checked", 64, &to);
    int *in = ints(d, "values", 64, &from);
    for (int i = 0; i < 64; i++) in[i] = i + 1;
    prepare(&p, "check_positive", 1, 64);
    PASS(d, uint64_t, to);
    PASS(d, uint64_t, from);
    PASS(d, int, 64);
    run(d);
    in[37] = -1;
    run_fails(d, MR_CODE_ASSERT, "thread: [37,0,0] Assertion `");
    close_program(&p);
}

#define TESTS(X)                                                                                   \
    X(vectors_are_added)                                                                           \
    X(every_reduction_adds_up)                                                                     \
    X(scans_are_prefix_sums)                                                                       \
    X(matrices_are_transposed_and_multiplied)                                                      \
    X(bytes_are_counted)                                                                           \
    X(sorts_sort)                                                                                  \
    X(functions_call_themselves_and_others)                                                        \
    X(variables_of_the_module_last)                                                                \
    X(the_last_block_adds_what_the_others_left)                                                    \
    X(groups_cooperate)                                                                            \
    X(lanes_of_a_warp_work_together)                                                               \
    X(threads_run_programs_of_their_own)                                                           \
    X(kernels_print)                                                                               \
    X(assertions_fail_with_their_line)

static int with_nvrtc(void **state) {
    (void)state;
    compiler = "nvrtc";
    return 0;
}
static int with_clang(void **state) {
    (void)state;
    compiler = "clang";
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define X(name) cmocka_unit_test(name),
        TESTS(X)
#undef X
    };
    int failures = cmocka_run_group_tests_name("NVRTC", tests, with_nvrtc, NULL);
    return failures + cmocka_run_group_tests_name("clang", tests, with_clang, NULL);
}
