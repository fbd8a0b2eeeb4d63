/* PTX of compilers (tests/ptx) with tokens exchanged. It goes through all stages behind the reader: decoding, the
 * inference of accesses, the extents of a launch, and blocks that run with all checks. Each text is loaded or refused,
 * and each launch ends; the sanitizers and the fixture's memory find what goes wrong. Damage of single bytes:
 * test_ptx_samples.c.
 *
 * Bounded by time: MR_PTX_FUZZ says for how many seconds of the processor (default 3), MR_PTX_FUZZ_SEED where to begin.
 * The seed of a text that fails is printed. */
#include "ptx_fixture.h"

#include <time.h>

#include "ptx/watch/watch.h"

enum { MOST_TOKENS = 40000, MOST_TEXT = 1 << 17, CELLS = 4096 };

static uint64_t seed;
static uint32_t below(uint32_t limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % limit);
}

/* ---- texts */

static const char *const samples[] = {"tests/ptx/clang.ptx", "tests/ptx/nvcc.ptx",
                                      "tests/ptx/access_clang.ptx", "tests/ptx/access_nvcc.ptx",
                                      "tests/ptx/nvcc_debug.ptx"};
enum { SAMPLES = sizeof samples / sizeof *samples };

static char *sample_text[SAMPLES];

static int read_samples(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        FILE *file = fopen(samples[i], "rb");
        assert_non_null(file);
        sample_text[i] = calloc(MOST_TEXT, 1);
        size_t size = fread(sample_text[i], 1, MOST_TEXT - 1, file);
        assert_in_range(size, 1000, MOST_TEXT - 2);
        fclose(file);
    }
    return 0;
}

static int free_samples(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) free(sample_text[i]);
    return 0;
}

typedef struct {
    const char *at;
    uint32_t size;
} token;

static bool is_word(char c) {
    return c == '_' || c == '%' || c == '$' || c == '.' || (c >= '0' && c <= '9') ||
           (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Words with their modifiers, single other characters, and blanks. */
static uint32_t split(const char *text, token *out) {
    uint32_t count = 0;
    while (*text && count < MOST_TOKENS) {
        const char *end = text + 1;
        while (is_word(*text) && is_word(*end)) end++;
        out[count++] = (token){text, (uint32_t)(end - text)};
        text = end;
    }
    return count;
}

static const char *const words[] = {"0",
                                    "-1",
                                    "4294967295",
                                    "0x7fffffffffffffff",
                                    "0f7f800000",
                                    "%tid.x",
                                    "%laneid",
                                    "bar.sync",
                                    "ret",
                                    "exit",
                                    "ld.volatile.global.u32",
                                    "st.shared.v4.f32",
                                    "atom.add.u32",
                                    "shfl.sync.idx.b32",
                                    "@%p1",
                                    "@!%p1",
                                    "bra.uni",
                                    "call",
                                    "{",
                                    "}",
                                    ";",
                                    "cvta.to.global.u64",
                                    "mad.wide.s32",
                                    "set.eq.f16x2.f16x2",
                                    "brx.idx",
                                    "[%rd1]",
                                    "membar.gl",
                                    "trap"};

/* One token becomes another one: of the same text near it, of anywhere in it, or of the list; or it goes, or comes
 * twice. */
static void exchange(token *tokens, uint32_t count) {
    uint32_t at = below(count), near = at + below(61), other = below(count);
    near = near < 30 ? 0 : near - 30 >= count ? count - 1 : near - 30;
    const char *word = words[below(sizeof words / sizeof *words)];
    switch (below(6)) {
    case 0: tokens[at] = (token){word, (uint32_t)strlen(word)}; return;
    case 1: tokens[at] = (token){"", 0}; return;
    case 2: tokens[at] = tokens[other]; return;
    default: tokens[at] = tokens[near]; return;
    }
}

static void damaged(char *out) {
    static token tokens[MOST_TOKENS];
    uint32_t count = split(sample_text[below(SAMPLES)], tokens), used = 0;
    for (uint32_t n = 1 + below(3); n > 0; n--) exchange(tokens, count);
    for (uint32_t i = 0; i < count && used + tokens[i].size + 1 < MOST_TEXT; i++) {
        memcpy(out + used, tokens[i].at, tokens[i].size);
        used += tokens[i].size;
    }
    out[used] = '\0';
}

/* ---- launches */

/* Numbers that kernels take for sizes, and pointers: valid, NULL, and wild. */
static void fill_params(device *d, uint64_t memory) {
    const mr_ptx_kernel *kernel = d->launch.kernel;
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        const mr_ptx_param *p = &kernel->params[i];
        uint64_t value = below(8) ? below(70) : (uint64_t)below(UINT32_MAX) << below(33);
        if (p->may_be_pointer && below(16)) value = memory + 4 * below(CELLS / 2);
        memcpy(d->params + p->offset, &value, p->bytes < 8 ? p->bytes : 8);
    }
}

enum { MOST_BYTES = 1 << 20 };

/* What a caller of mr_ptx_run refuses: more than a device has. */
static bool is_small(const mr_ptx_kernel *kernel) {
    return kernel->param_bytes <= sizeof((device *)0)->params &&
           kernel->shared_bytes <= MOST_BYTES && kernel->local_bytes <= MOST_BYTES;
}

static bool has_small_variables(const mr_ptx_module *module) {
    const ptx_tree *tree = mr_ptx_module_tree(module);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tree->variable_count && bytes <= MOST_BYTES; i++)
        bytes += tree->variables[i].bytes < MOST_BYTES ? tree->variables[i].bytes : MOST_BYTES + 1;
    return bytes <= MOST_BYTES;
}

static void run_kernel(device *d, const mr_ptx_kernel *kernel) {
    char *host;
    uint64_t memory = give(d, "memory", (size_t)4 * CELLS, 0, &host);
    if (!is_small(kernel)) return;
    uint32_t blocks = 1 + below(3), threads = 1 + below(80);
    begin(d, kernel->name, blocks, threads);
    d->launch.device.instruction_limit = 20000;
    d->launch.device.stack_bytes = 1 << 14;
    d->launch.device.resident_blocks = 2;
    fill_params(d, memory);
    mr_ptx_extent extents[8];
    uint32_t pointers[] = {8 * below(4), 4 * below(8)};
    mr_ptx_plan plan = {.params = d->params, .pointers = pointers, .pointer_count = below(3)};
    memcpy(plan.grid, d->launch.grid, sizeof plan.grid);
    memcpy(plan.block, d->launch.block, sizeof plan.block);
    mr_ptx_launch_extents(kernel, &plan, extents, 8);
    mr_ptx_watch *watch = below(2) ? mr_ptx_watch_create(d->module, 3, threads) : NULL;
    d->launch.watch = watch;
    mr_status status = mr_ptx_run(&d->launch, 0, blocks);
    if (kernel->problem) assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
    else if (status) assert_non_null(strstr(status->message, "ernel"));
    mr_error_destroy(status);
    d->launch.watch = NULL;
    mr_ptx_watch_destroy(watch);
}

static void load_and_run(const char *text, int *io_loaded) {
    mr_ptx_module *module;
    mr_status status = mr_ptx_module_load(text, strlen(text), "fuzz.ptx", &module);
    if (status) {
        assert_true(status->code == MR_CODE_INVALID_ARGUMENT ||
                    status->code == MR_CODE_NOT_SUPPORTED);
        mr_error_destroy(status);
        return;
    }
    bool is_usable = has_small_variables(module);
    mr_ptx_module_release(module);
    if (!is_usable) return;
    ++*io_loaded;
    device d;
    load_ptx(&d, text);
    for (uint32_t i = 0; i < mr_ptx_kernel_count(d.module); i++)
        run_kernel(&d, mr_ptx_kernel_at(d.module, i));
    unload(&d);
}

static void exchanged_tokens_are_refused_or_run(void **state) {
    (void)state;
    const char *seconds = getenv("MR_PTX_FUZZ"), *first = getenv("MR_PTX_FUZZ_SEED");
    double limit = seconds ? atof(seconds) : 3;
    uint64_t next = first ? strtoull(first, NULL, 10) : 1;
    char *text = malloc(MOST_TEXT);
    int loaded = 0, rounds = 0;
    for (clock_t begun = clock(); (double)(clock() - begun) < limit * CLOCKS_PER_SEC; rounds++) {
        seed = next++;
        if (seconds && rounds % 100 == 0)
            fprintf(stderr, "from seed %llu on\n", (unsigned long long)next - 1);
        below(2);
        damaged(text);
        load_and_run(text, &loaded);
    }
    print_message("%d texts, %d of them loaded and run\n", rounds, loaded);
    assert_true(rounds < 20 || loaded > 0);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exchanged_tokens_are_refused_or_run)};
    return cmocka_run_group_tests(tests, read_samples, free_samples);
}
