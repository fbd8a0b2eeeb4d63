/* CUDA C++ to PTX: both compilers where they are, their messages, the cache, and compilers that hang, crash or are
 * none.
 *
 * Everything happens in a folder of its own; it is TMPDIR, too, so what a compilation leaves there is seen. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../kernels/kernel_file.h"
#include "base/buffer.h"
#include "compile/cache/cache.h"
#include "compile/cache/hash.h"
#include "compile/compile.h"
#include "compile/compiler/toolkit.h"
#include "compile/text/include.h"
#include "compile/text/scan.h"

static char folder[64]; /* of the test */

static char *in_folder(const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *walk) {
    (void)facts;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void set_cache(const char *name) {
    setenv("MILLRACE_CACHE", name, 1);
}

/* `*state` is the name of the compiler, for tests that run once for each. */
static int begin(void **state) {
    snprintf(folder, sizeof folder, "/tmp/test-compile-XXXXXX");
    assert_non_null(mkdtemp(folder));
    mkdir(in_folder("tmp"), 0700);
    setenv("TMPDIR", in_folder("tmp"), 1);
    set_cache(in_folder("cache"));
    if (*state) setenv("MILLRACE_COMPILER", *state, 1);
    else unsetenv("MILLRACE_COMPILER");
    return 0;
}

static int count_files(const char *path) {
    int count = 0;
    DIR *files = opendir(path);
    for (struct dirent *entry; files && (entry = readdir(files));) count += entry->d_name[0] != '.';
    if (files) closedir(files);
    return count;
}

static int end(void **state) {
    (void)state;
    int left = count_files(in_folder("tmp"));
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    unsetenv("MILLRACE_CACHE_SIZE");
    assert_int_equal(left, 0);
    return 0;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* ---------------------------------------------------------------- compiling */

static const char saxpy[] =
    "extern \"C\" __global__ void saxpy(float *y, const float *x, float a, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

static mr_compile_source source_of(const char *text) {
    return (mr_compile_source){
        .text = text, .size = strlen(text), .file = "dir/a.lua", .line = 14, .compute_major = 9};
}

/* For up to four names, the last NULL. */
static mr_compile_source source_named(const char *text, const char *const *names) {
    mr_compile_source source = source_of(text);
    source.names = names;
    while (names[source.name_count]) source.name_count++;
    return source;
}

/* Skips the test where the compiler is not on this machine; says so. Each is asked once. */
static void need(void **state) {
    static const char *found[2];
    mr_compiled compiled;
    for (int i = 0; i < 2; i++)
        if (found[i] == *state) return;
    mr_compile_source source = source_of(saxpy);
    set_cache("off");
    mr_status status = mr_compile(&source, &compiled);
    set_cache(in_folder("cache"));
    if (status && status->code == MR_CODE_NOT_SUPPORTED) {
        printf("without %s: %s\n", (const char *)*state, status->message);
        mr_error_destroy(status);
        skip();
    }
    if (status) fail_msg("%s", status->message);
    mr_compiled_free(&compiled);
    found[found[0] != NULL] = *state;
}

static mr_compiled compile(const mr_compile_source *source) {
    mr_compiled compiled;
    mr_status status = mr_compile(source, &compiled);
    if (status) fail_msg("%s", status->message);
    assert_int_equal(strlen(compiled.ptx), compiled.size);
    return compiled;
}

/* The message; stays until the next call. */
static const char *error_of(const mr_compile_source *source, mr_code code) {
    static char message[40000];
    mr_compiled compiled;
    mr_status status = mr_compile(source, &compiled);
    if (!status) fail_msg("expected an error, got %zu bytes of PTX", compiled.size);
    snprintf(message, sizeof message, "%s", status->message);
    if (status->code != code)
        fail_msg("%s instead of %s: %s", mr_code_text(status->code), mr_code_text(code), message);
    assert_null(compiled.ptx);
    mr_error_destroy(status);
    return message;
}

static const char *error_in(const char *text) {
    mr_compile_source source = source_of(text);
    return error_of(&source, MR_CODE_INVALID_ARGUMENT);
}

static const char *error_of_name(const char *text, const char *name) {
    const char *const names[] = {name, NULL};
    mr_compile_source source = source_named(text, names);
    return error_of(&source, MR_CODE_INVALID_ARGUMENT);
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("expected '%s' in: %s", part, text);
}
static void assert_lacks(const char *text, const char *part) {
    if (strstr(text, part)) fail_msg("expected no '%s' in: %s", part, text);
}

static void gives_ptx_with_the_users_lines(void **state) {
    need(state);
    mr_compile_source source = source_of(saxpy);
    mr_compiled compiled = compile(&source);
    assert_has(compiled.ptx, ".entry saxpy(");
    assert_has(compiled.ptx, ".loc\t1 16 ");
    assert_has(compiled.ptx, "\"dir/a.lua\"");
    assert_lacks(compiled.ptx, folder);
    assert_lacks(compiled.ptx, "millrace-device");
    assert_null(compiled.log);
    assert_true(strncmp(compiled.compiler, "NVRTC ", 6) == 0 ||
                strncmp(compiled.compiler, "clang ", 6) == 0);
    mr_compiled_free(&compiled);
}

static void takes_the_newest_architecture_that_the_device_runs(void **state) {
    need(state);
    mr_compile_source source = source_of(saxpy);
    source.compute_major = 8;
    mr_compiled compiled = compile(&source);
    assert_has(compiled.ptx, ".target sm_80");
    mr_compiled_free(&compiled);
    source.compute_minor = 5; /* there is no such device */
    compiled = compile(&source);
    assert_has(compiled.ptx, ".target sm_80");
    mr_compiled_free(&compiled);
    source.compute_major = 99;
    compiled = compile(&source);
    assert_has(compiled.ptx, ".target sm_");
    mr_compiled_free(&compiled);
    source.compute_major = 5;
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "5.5");
}

/* ---------------------------------------------------------------- messages */

static void errors_have_the_users_lines(void **state) {
    need(state);
    const char *message =
        error_in("__global__ void f(float *y) {\n    y[0] = bar(3);\n    float *z = 3;\n}\n");
    assert_int_equal(strncmp(message, "dir/a.lua:15:12: error: ", 24), 0);
    assert_has(message, "bar");
    assert_has(message, "\ndir/a.lua:16:");
    assert_lacks(message, folder);
    assert_lacks(message, "detected in the compilation");
    assert_lacks(message, "generated");
    assert_has(error_in("\n#error hello world\n"), "dir/a.lua:15:2: ");
    assert_has(error_in("\n#error hello world\n"), "hello world");
    assert_has(error_in("#include \"nothere.h\"\n"), "dir/a.lua:14:");
    assert_has(error_in("#include \"nothere.h\"\n"), "nothere.h");
    assert_has(error_in("__global__ void f() { int a;"), "dir/a.lua:14:21: note");
    assert_has(error_in("/* no end"), "error");
    assert_has(error_in("__global__ void f(float4 v) { v.q = 1; }"), "dir/a.lua:14:");
    assert_lacks(error_in("__global__ void f(float4 v) { v.q = 1; }"), "prelude");
    assert_has(error_in("__global__ void f() { __shfl_sync(1, \"text\", 2); }"), "dir/a.lua:14:");
}

static void an_unnamed_text_has_a_name_in_messages(void **state) {
    need(state);
    mr_compile_source source = {.text = "\nint x", .size = 6, .compute_major = 9};
    const char *message = error_of(&source, MR_CODE_INVALID_ARGUMENT);
    assert_has(message, "error");
    source.file = "we \"quote\" \\ and\nbreak.lua";
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT), "error");
}

static void an_error_of_the_text_is_shown_without_those_of_names(void **state) {
    need(state);
    const char *message = error_of_name("__global__ void f(int *x) { *x = nothing; }", "g");
    assert_has(message, "nothing");
    assert_lacks(message, "'g'");
    assert_lacks(message, "names");
}

static void warnings_are_in_the_log(void **state) {
    need(state);
    mr_compile_source source =
        source_of("__global__ void f(int *x) {\n#warning look here\n    *x = 1;\n}");
    mr_compiled compiled = compile(&source);
    assert_non_null(compiled.log);
    assert_has(compiled.log, "dir/a.lua:15:2: warning");
    assert_has(compiled.log, "look here");
    mr_compiled_free(&compiled);
}

/* ---------------------------------------------------------------- names */

static const char several[] =
    "namespace ns { template <typename T> __global__ void f(T *x) { *x += 1; } }\n"
    "template <int N> __global__ void block_sum(float *x) { x[N] = N; }\n"
    "__global__ void plain(int *x) { *x = 2; }\n"
    "__global__ void twice(int *x) { *x = 2; }\n"
    "__global__ void twice(float *x) { *x = 2; }\n"
    "__device__ int helper(int x) { return x + 1; }\n";

static void templates_are_found_by_name(void **state) {
    need(state);
    const char *const names[] = {"ns::f<float>",          "block_sum<256>", "plain",
                                 "ns::f< unsigned int >", "block_sum<7+1>", NULL};
    mr_compile_source source = source_named(several, names);
    mr_compiled compiled = compile(&source);
    assert_int_equal(compiled.entry_count, 5);
    assert_string_equal(compiled.entries[0], "_ZN2ns1fIfEEvPT_");
    assert_string_equal(compiled.entries[1], "_Z9block_sumILi256EEvPf");
    assert_string_equal(compiled.entries[2], "_Z5plainPi");
    assert_string_equal(compiled.entries[3], "_ZN2ns1fIjEEvPT_");
    assert_string_equal(compiled.entries[4], "_Z9block_sumILi8EEvPf");
    for (int i = 0; i < 5; i++) {
        char entry[100];
        snprintf(entry, sizeof entry, ".entry %s(", compiled.entries[i]);
        assert_has(compiled.ptx, entry);
    }
    assert_lacks(compiled.ptx, "mr_entry_");
    mr_compiled_free(&compiled);
}

static void a_name_that_is_missing_is_told_with_those_there_are(void **state) {
    need(state);
    const char *message = error_of_name(several, "saxpy");
    assert_has(message, "there is no kernel 'saxpy' in the text at dir/a.lua:14");
    assert_has(message, "f<...>, block_sum<...>, plain, twice");
    assert_has(error_of_name(several, "helper"), "there is no kernel 'helper'");
    assert_has(error_of_name(several, "block_sum"), "block_sum<...>");
    assert_has(error_of_name(several, "block_sum<float>"), "block_sum<...>");
    assert_has(error_of_name(several, "ns::g<int>"), "there is no kernel 'ns::g<int>'");
    assert_has(error_of_name("// nothing", "f"), "no function of it is __global__");
    assert_has(error_of_name("", "f"), "no function of it is __global__");
}

static void names_are_checked_before_they_are_compiled(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "f;",
                                      "f) ; int x = (0",
                                      "f\n",
                                      "#include",
                                      "\"f\"",
                                      "f{}",
                                      "f // what",
                                      "f /* a */",
                                      "a\\\nb",
                                      "f);__global__ void g(){}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (i != 2) error_of_name(several, bad[i]);
}

/* ---------------------------------------------------------------- options */

static mr_compile_source with_options(const char *text, const char *const *options) {
    mr_compile_source source = source_of(text);
    source.options = options;
    while (options[source.option_count]) source.option_count++;
    return source;
}

static void options_reach_the_compiler(void **state) {
    need(state);
    static const char text[] = "#if N != 4\n#error N\n#endif\n__global__ void f(float *x) { x[0] = "
                               "x[1] * x[2] + sinf(x[3]) / x[4]; }";
    mr_compile_source source =
        with_options(text, (const char *const[]){"-DN=4", "-std=c++17", NULL});
    mr_compiled compiled = compile(&source);
    assert_has(compiled.ptx, "div.rn.f32");
    mr_compiled_free(&compiled);
    source =
        with_options(text, (const char *const[]){"--define-macro=N=4", "--use_fast_math", NULL});
    compiled = compile(&source);
    assert_has(compiled.ptx, "sin.approx.ftz.f32");
    assert_has(compiled.ptx, "div.approx.ftz.f32");
    mr_compiled_free(&compiled);
    source = with_options(saxpy, (const char *const[]){"--fmad=false", NULL});
    compiled = compile(&source);
    assert_lacks(compiled.ptx, "fma.rn");
    mr_compiled_free(&compiled);
    source = source_of(saxpy);
    compiled = compile(&source);
    assert_has(compiled.ptx, "fma.rn");
    mr_compiled_free(&compiled);
}

static void bad_options_are_told(void **state) {
    need(state);
    mr_compile_source source = with_options(saxpy, (const char *const[]){"--no-such-option", NULL});
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT), "no-such-option");
    source = with_options(saxpy, (const char *const[]){"-arch=sm_70", NULL});
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT),
               "the architecture is that of the device");
}

static void headers_of_c_and_cuda_are_there(void **state) {
    need(state);
    mr_compile_source source = source_of(
        "#include <assert.h>\n#include <cstdint>\n#include <stdio.h>\n#include "
        "<stdlib.h>\n#include <string.h>\n"
        "#include <float.h>\n#include <climits>\n#include <cmath>\n#include <stddef.h>\n#include "
        "<math_constants.h>\n"
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cooperative_groups.h>\n"
        "__global__ void f(uint64_t *p, std::uint8_t b) { p[0] = b + (uint64_t)INT_MAX + (p[1] > "
        "FLT_MAX); p[3] = std::sqrt(2.0f) + CUDART_PI_F; }");
    mr_compiled compiled = compile(&source);
    mr_compiled_free(&compiled);
}

/* ---------------------------------------------------------------- the user's headers */

static void files_beside_the_users_file_are_included(void **state) {
    need(state);
    char file[256];
    const char *const options[] = {"-I", in_folder("more"), NULL};
    mkdir(in_folder("more"), 0700);
    snprintf(file, sizeof file, "%s", in_folder("script.lua"));
    write_text(in_folder("near.h"), "#include \"far.h\"\n#define NEAR 3\n");
    write_text(in_folder("more/far.h"), "#define FAR 1000\n");
    mr_compile_source source = with_options(
        "#include \"near.h\"\n__global__ void f(int *x) { *x = NEAR + FAR; }", options);
    source.file = file;
    mr_compiled compiled = compile(&source);
    assert_has(compiled.ptx, "1003");
    mr_compiled_free(&compiled);
    compiled = compile(&source);
    assert_true(compiled.from_cache);
    mr_compiled_free(&compiled);
    write_text(in_folder("more/far.h"), "#define FAR 2000\n");
    compiled = compile(&source);
    assert_false(compiled.from_cache);
    assert_has(compiled.ptx, "2003");
    mr_compiled_free(&compiled);
    write_text(in_folder("more/far.h"), "#error far\n");
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT), "more/far.h:1:");
}

static void what_the_cache_cannot_see_is_not_cached(void **state) {
    need(state);
    write_text(in_folder("x.h"), "#define X 5\n");
    char define[300];
    snprintf(define, sizeof define, "-DFILE_NAME=\"%s\"", in_folder("x.h"));
    const char *const options[] = {define, NULL};
    mr_compile_source source =
        with_options("#include FILE_NAME\n__global__ void f(int *x) { *x = X; }", options);
    for (int i = 0; i < 2; i++) {
        mr_compiled compiled = compile(&source);
        assert_false(compiled.from_cache);
        mr_compiled_free(&compiled);
    }
}

/* ---------------------------------------------------------------- the cache */

static void a_second_compilation_is_from_the_cache(void **state) {
    need(state);
    const char *const names[] = {"block_sum<256>", NULL};
    mr_compile_source source = source_named(several, names);
    mr_compiled first = compile(&source), second = compile(&source);
    assert_false(first.from_cache);
    assert_true(second.from_cache);
    assert_string_equal(first.ptx, second.ptx);
    assert_string_equal(first.entries[0], second.entries[0]);
    assert_string_equal(first.compiler, second.compiler);
    mr_compiled_free(&first);
    mr_compiled_free(&second);
    /* Each of these is another compilation. */
    source.names = (const char *const[]){"block_sum<128>", NULL};
    first = compile(&source);
    assert_false(first.from_cache);
    mr_compiled_free(&first);
    source.compute_major = 8;
    first = compile(&source);
    assert_false(first.from_cache);
    mr_compiled_free(&first);
    source.options = (const char *const[]){"-DX=1"};
    source.option_count = 1;
    first = compile(&source);
    assert_false(first.from_cache);
    mr_compiled_free(&first);
    source.size--;
    first = compile(&source);
    assert_false(first.from_cache);
    mr_compiled_free(&first);
    assert_int_equal(count_files(in_folder("cache")), 5);
}

static void a_text_that_moved_is_not_compiled_again(void **state) {
    need(state);
    mr_compile_source source =
        source_of("__device__ float twice(float x) {\n    return 2 * x;\n}\n__global__ void "
                  "f(float *x) {\n#warning w\n    x[0] = twice(x[1]);\n}\n");
    mr_compiled first = compile(&source), moved, fresh;
    source.line = 1040;
    source.file = "other.lua";
    moved = compile(&source);
    assert_true(moved.from_cache);
    set_cache("off");
    fresh = compile(&source);
    assert_false(fresh.from_cache);
    assert_string_equal(moved.ptx, fresh.ptx);
    assert_string_equal(moved.log, fresh.log);
    assert_has(moved.ptx, ".loc\t1 1045 ");
    mr_compiled_free(&first);
    mr_compiled_free(&moved);
    mr_compiled_free(&fresh);
}

static void a_text_that_names_its_line_is_compiled_again_where_it_moved(void **state) {
    need(state);
    static const char *const texts[] = {
        "__global__ void f(int *x) { *x = __LINE__ * 1000; }",
        "#include <assert.h>\n__global__ void f(int *x) { assert(*x); }"};
    for (int i = 0; i < 2; i++) {
        mr_compile_source source = source_of(texts[i]);
        mr_compiled first = compile(&source), again = compile(&source);
        assert_true(again.from_cache);
        source.line = 77;
        mr_compiled moved = compile(&source);
        assert_false(moved.from_cache);
        if (i == 0) assert_has(moved.ptx, "77000");
        mr_compiled_free(&first);
        mr_compiled_free(&again);
        mr_compiled_free(&moved);
    }
}

/* The only file of the cache. */
static const char *only_entry(void) {
    static char path[600];
    DIR *files = opendir(in_folder("cache"));
    assert_non_null(files);
    path[0] = '\0';
    for (struct dirent *entry; (entry = readdir(files));)
        if (entry->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", in_folder("cache"), entry->d_name);
    closedir(files);
    return path;
}

static void an_entry_that_is_damaged_is_replaced(void **state) {
    need(state);
    mr_compile_source source = source_of(saxpy);
    mr_compiled right = compile(&source);
    struct stat facts;
    assert_int_equal(stat(only_entry(), &facts), 0);
    for (int round = 0; round < 12; round++) {
        int file = open(only_entry(), O_RDWR);
        assert_true(file >= 0);
        off_t at = facts.st_size * round / 12;
        char byte;
        if (round % 2) assert_int_equal(ftruncate(file, at), 0);
        else {
            assert_int_equal(pread(file, &byte, 1, at), 1);
            byte ^= 1 << round % 8;
            assert_int_equal(pwrite(file, &byte, 1, at), 1);
        }
        close(file);
        mr_compiled again = compile(&source);
        assert_false(again.from_cache);
        assert_string_equal(again.ptx, right.ptx);
        mr_compiled_free(&again);
        again = compile(&source);
        assert_true(again.from_cache);
        assert_string_equal(again.ptx, right.ptx);
        mr_compiled_free(&again);
    }
    mr_compiled_free(&right);
}

static void a_folder_that_cannot_be_used_is_no_error(void **state) {
    need(state);
    write_text(in_folder("file"), "");
    mkdir(in_folder("loop"), 0700);
    assert_int_equal(symlink("loop2", in_folder("loop2")), 0);
    const char *const places[] = {in_folder("file/below"), in_folder("file"), "/proc/nowhere",
                                  in_folder("loop2/x"), "off"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        set_cache(places[i]);
        mr_compile_source source = source_of(saxpy);
        mr_compiled compiled = compile(&source);
        assert_false(compiled.from_cache);
        mr_compiled_free(&compiled);
    }
    set_cache(in_folder("a/b//c"));
    for (int i = 0; i < 2; i++) {
        mr_compile_source source = source_of(saxpy);
        mr_compiled compiled = compile(&source);
        assert_int_equal(compiled.from_cache, i);
        mr_compiled_free(&compiled);
    }
}

static void the_cache_is_where_the_environment_says(void **state) {
    (void)state;
    mr_cache cache;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL, *shared = getenv("XDG_CACHE_HOME");
    unsetenv("MILLRACE_CACHE");
    setenv("XDG_CACHE_HOME", "/x/y", 1);
    setenv("HOME", "/home/me", 1);
    mr_cache_open(&cache);
    assert_string_equal(cache.folder, "/x/y/millrace");
    mr_cache_close(&cache);
    unsetenv("XDG_CACHE_HOME");
    mr_cache_open(&cache);
    assert_string_equal(cache.folder, "/home/me/.cache/millrace");
    mr_cache_close(&cache);
    unsetenv("HOME");
    mr_cache_open(&cache);
    assert_null(cache.folder);
    mr_cache_close(&cache);
    if (home) setenv("HOME", home, 1);
    if (shared) setenv("XDG_CACHE_HOME", shared, 1);
    free(home);
}

static mr_cache_key key_of(int number) {
    mr_cache_key key = {{0}};
    mr_hash hash;
    mr_hash_begin(&hash);
    mr_hash_add(&hash, &number, sizeof number);
    mr_hash_end(&hash, key.bytes);
    return key;
}

static bool has_key(const mr_cache *cache, int number) {
    mr_cache_key key = key_of(number);
    mr_buffer value = {0};
    bool is_there = mr_cache_get(cache, &key, &value);
    mr_buffer_free(&value);
    return is_there;
}

static void the_cache_is_bounded_and_keeps_what_is_used(void **state) {
    (void)state;
    static char value[8000];
    mr_cache cache;
    size_t count, size;
    setenv("MILLRACE_CACHE_SIZE", "1", 1);
    mr_cache_open(&cache);
    for (int i = 0; i < 500; i++) {
        mr_cache_key key = key_of(i);
        memset(value, i, sizeof value);
        mr_cache_put(&cache, &key, value, sizeof value);
        if (i > 10) assert_true(has_key(&cache, 3)); /* is used all the time */
        assert_true(has_key(&cache, i));
        assert_true(mr_cache_measure(&cache, &count, &size));
        assert_true(size <= 1 << 20);
    }
    assert_true(count > 50);
    assert_false(has_key(&cache, 4));
    assert_true(has_key(&cache, 499));
    assert_true(has_key(&cache, 495));
    mr_cache_close(&cache);
}

static void a_value_of_another_users_is_ignored(void **state) {
    (void)state;
    mr_cache cache;
    mr_cache_key key = key_of(1);
    mr_cache_open(&cache);
    mr_cache_put(&cache, &key, "value", 5);
    assert_true(has_key(&cache, 1));
    if (geteuid() == 0) {
        assert_int_equal(seteuid(12345), 0);
        bool is_taken = has_key(&cache, 1); /* of root: yes, if the folder can be read */
        assert_int_equal(seteuid(0), 0);
        (void)is_taken;
        assert_int_equal(chown(only_entry(), 12345, 12345), 0);
        assert_false(has_key(&cache, 1));
    }
    mr_cache_close(&cache);
}

/* In a process of its own: compiles the same texts as all others. */
static void compile_many(int which) {
    for (int i = 0; i < 6; i++) {
        char text[200], number[20];
        snprintf(text, sizeof text, "__global__ void f(int *x) { *x = %d; }",
                 1000 + (i + which) % 6);
        snprintf(number, sizeof number, "%d;", 1000 + (i + which) % 6);
        mr_compile_source source = source_of(text);
        mr_compiled compiled;
        mr_status status = mr_compile(&source, &compiled);
        if (status || !strstr(compiled.ptx, number)) _exit(1);
        mr_compiled_free(&compiled);
    }
    _exit(0);
}

static void several_processes_use_one_cache(void **state) {
    need(state);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) compile_many(i);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(in_folder("cache")), 6);
}

static int compilations; /* of each thread */

static void *compile_in_thread(void *argument) {
    static const char *const texts[] = {saxpy, several};
    for (int i = 0; i < compilations; i++) {
        mr_compile_source source = source_of(texts[i % 2]);
        mr_compiled compiled;
        mr_status status = mr_compile(&source, &compiled);
        if (status) {
            mr_error_destroy(status);
            return argument;
        }
        mr_compiled_free(&compiled);
    }
    return NULL;
}

static void several_threads_compile(void **state) {
    need(state);
    pthread_t threads[3];
    for (int round = 0; round < 2; round++) {
        set_cache(round ? "off" : in_folder("cache"));
        compilations = round && !getenv("MILLRACE_LONG") ? 2 : 4;
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, compile_in_thread, folder), 0);
        for (int i = 0; i < 3; i++) {
            void *failed;
            pthread_join(threads[i], &failed);
            assert_null(failed);
        }
    }
}

/* ---------------------------------------------------------------- hostile texts */

static void any_text_gives_ptx_or_an_error(void **state) {
    need(state);
    static const char *const texts[] = {
        "",
        "\n",
        "\\",
        "\\\n",
        "/",
        "//",
        "/*",
        "\"",
        "'",
        "#",
        "#line 0 \"x\"",
        "#line 2147483647 \"x\"\nint",
        "R\"(",
        "R\"abcdefghijklmnopqrs(x)\"",
        "#include",
        "#include <",
        "#include \"",
        "#include_next <x>",
        "#pragma once",
        "\xff\xfe",
        "\xef\xbb\xbfint x;",
        "int a\r\n;\r\n",
        "__global__",
        "__global__ void",
        "__global__ void f(",
        "template <",
        "template <int N> struct s { static const int v = s<N + 1>::v; }; int x = s<0>::v;",
        "#define A B\n#define B A\nA",
        "asm(\".include \\\"/etc/passwd\\\"\");",
        "}}}}",
        "((((",
        "%:include <x>",
        "#if 1",
        "#error \"\\x1b[31m\"",
        "static_assert(false, \"no\");"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const names[] = {"f", NULL};
        if (!getenv("MILLRACE_LONG") && i % 3 != 0)
            continue; /* each takes clang a tenth of a second */
        for (int has_name = i % 4 != 0; has_name < 2; has_name++) {
            mr_compile_source source = source_named(texts[i], names);
            mr_compiled compiled;
            source.name_count = has_name;
            mr_status status = mr_compile(&source, &compiled);
            if (status) {
                assert_int_equal(status->code, MR_CODE_INVALID_ARGUMENT);
                assert_lacks(status->message, folder);
                assert_true(strlen(status->message) > 0 && strlen(status->message) < 20000);
            } else mr_compiled_free(&compiled);
            mr_error_destroy(status);
        }
    }
}

static void a_text_may_be_long_but_not_endless(void **state) {
    need(state);
    size_t size = (size_t)17 << 20;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, ' ', size);
    text[size] = '\0';
    memcpy(text, saxpy, sizeof saxpy - 1);
    mr_compile_source source = source_of(text);
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT), "16 MiB");
    source.size = 1 << 20;
    mr_compiled compiled = compile(&source);
    mr_compiled_free(&compiled);
    text[100] = '\0';
    assert_has(error_of(&source, MR_CODE_INVALID_ARGUMENT), "zero byte");
    free(text);
}

/* ---------------------------------------------------------------- the sandbox */

static void in_the_sandbox_only_nvrtc_compiles(void **state) {
    (void)state;
    mr_compile_source source = source_of(saxpy);
    source.is_confined = true;
    setenv("MILLRACE_COMPILER", "clang", 1);
    const char *message = error_of(&source, MR_CODE_NOT_SUPPORTED);
    assert_has(message, "sandbox");
    assert_has(message, "NVRTC");
    setenv("MILLRACE_COMPILER", "nvrtc", 1);
    mr_compiled compiled;
    mr_status status = mr_compile(&source, &compiled);
    if (status) assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
    else mr_compiled_free(&compiled);
    mr_error_destroy(status);
    assert_int_equal(count_files(in_folder("cache")), 0);
}

/* What mr_compile says of a text with a path in it: the code and the message, with the path as "PATH". */
static char *told_of(const char *text, const char *option, const char *path) {
    mr_buffer whole = {0}, told = {0}, flag = {0};
    mr_compiled compiled = {.ptx = NULL};
    mr_buffer *parts[] = {&whole, &flag};
    const char *formats[] = {text, option};
    for (int i = 0; i < 2; i++)
        for (const char *c = formats[i]; *c; c++)
            mr_buffer_printf(parts[i], *c == '@' ? "%s" : "%.1s", *c == '@' ? path : c);
    mr_compile_source source = source_of(whole.data);
    const char *const options[] = {flag.data};
    source.options = options;
    source.option_count = flag.size > 0;
    source.is_confined = true;
    source.time_limit_ms = 60000;
    mr_status status = mr_compile(&source, &compiled);
    mr_buffer_printf(&told, "%d ", status ? (int)status->code : -1);
    const char *from = status ? status->message : compiled.ptx;
    for (const char *at; (at = strstr(from, path)) != NULL; from = at + strlen(path))
        mr_buffer_printf(&told, "%.*sPATH", (int)(at - from), from);
    mr_buffer_puts(&told, from);
    mr_error_destroy(status);
    mr_compiled_free(&compiled);
    mr_buffer_free(&whole);
    mr_buffer_free(&flag);
    return told.data;
}

/* A file, a FIFO, a folder, and what is not there: a text cannot tell them apart, and opens none. */
static void the_sandbox_has_no_files(void **state) {
    need(state);
    static const char kernel[] = "\n__global__ void f() {}\n";
    static const struct {
        const char *text, *option;
    } tries[] = {
        {"#include <@>", ""},
        {"#include \"@\"", ""},
        {"#inc\\\nlude <@>", ""},
        {"%:include <@>", ""},
        {"#define F <@>\n#include F", ""},
        {"#define S(x) #x\n#define T(x) S(x)\n#include T(@)", ""},
        {"#include_next <@>", ""},
        {"#import <@>", ""},
        {"#include <stdint.h/../../../../../../../../../@>", ""},
        {"#if __has_include(<@>)\n#error there\n#endif", ""},
        {"#if __has_include(\"@\")\n#error there\n#endif", ""},
        {"#if HI(\"@\")\n#error there\n#endif", "-DHI=__has_include"},
        {"#define HI __has_include\n#if HI(\"@\")\n#error there\n#endif", ""},
        {"#define P(a, b) a##b\n#if P(__has_, include)(\"@\")\n#error there\n#endif", ""},
        {"#include <cuda_runtime.h>\n#if _CCCL_HAS_INCLUDE(\"@\")\n#error there\n#endif", ""},
        {"#if __has_embed(\"@\")\n#error there\n#endif", ""},
        {"const char c[] = {\n#embed \"@\"\n};", ""},
        {"# 1 \"@\"\nint x = y;", ""},
        {"#line 1 \"@\"\nint x = y;", ""},
        {"__device__ void g() { asm(\".incbin \\\"@\\\";\"); }", ""},
        {"", "-include=@"},
        {"", "-include@"},
        {"", "--pre-include=@"},
        {"", "--options-file=@"},
        {"", "--use-pch=@"},
        {"", "-I@"},
        {"#include \"x\"", "--include-path=@/.."},
        {"", "-isystem@"},
    };
    const char *paths[] = {in_folder("secret"), in_folder("abcdef"), in_folder("afifo_"),
                           in_folder("folder")};
    write_text(paths[0], "#error hidden\n");
    assert_int_equal(mkfifo(paths[2], 0600), 0);
    assert_int_equal(mkdir(paths[3], 0700), 0);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s%s", tries[i].text, kernel);
        char *without = told_of(text, tries[i].option, paths[1]);
        for (int j = 0; j < 4; j++) {
            char *told = told_of(text, tries[i].option, paths[j]);
            if (strcmp(told, without) != 0)
                fail_msg("%s %s: %s gives\n%s\nand %s\n%s", tries[i].text, tries[i].option,
                         paths[j], told, paths[1], without);
            assert_lacks(told, "hidden");
            assert_lacks(told, "there\n");
            free(told);
        }
        free(without);
    }
}

static void assert_toolkit_opens(const char *root, const char *below, bool is_there) {
    char path[600];
    snprintf(path, sizeof path, "%s%s", root, below);
    int file = mr_toolkit_open(root, path);
    if ((file >= 0) != is_there) fail_msg("%s: %d", path, file);
    if (file >= 0) close(file);
}

static void a_header_of_the_toolkit_is_found_by_its_own_path(void **state) {
    (void)state;
    const char *root = in_folder("include");
    mkdir(root, 0700);
    mkdir(in_folder("include/crt"), 0700);
    write_text(in_folder("include/cuda_fp16.h"), "1");
    write_text(in_folder("include/crt/mma.h"), "1");
    write_text(in_folder("include/openssl.h"), "1");
    assert_int_equal(mkfifo(in_folder("include/cuda_fifo.h"), 0600), 0);
    static const char *const there[] = {"/cuda_fp16.h",        "/crt/mma.h",
                                        "//crt/./mma.h",       "/crt",
                                        "/crt/../cuda_fp16.h", "/nothing/../cuda_fp16.h"};
    /* A folder outside decides nothing, whether it exists or not. */
    static const char *const not [] = {"/cuda_nothing.h",
                                       "/openssl.h",
                                       "",
                                       "/",
                                       "/..",
                                       "/cuda_fifo.h",
                                       "x/crt/mma.h",
                                       "/crt/../..",
                                       "/../cuda_fp16.h",
                                       "/crt/../../include/crt/mma.h",
                                       "/../include/cuda_fp16.h"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_toolkit_opens(root, there[i], true);
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        assert_toolkit_opens(root, not [i], false);
    assert_int_equal(mr_toolkit_open(NULL, "/etc/passwd"), -1);
    assert_int_equal(mr_toolkit_open(root, "/etc/passwd"), -1);
    assert_int_equal(mr_toolkit_open(root, "cuda_fp16.h"), -1);
}

static void the_sandbox_allows_headers_of_cuda(void **state) {
    need(state);
    static const char *const headers[] = {
        "cuda_fp16.h", "cuda_bf16.h",      "cooperative_groups.h",
        "mma.h",       "cuda_runtime.h",   "cooperative_groups/reduce.h",
        "stdint.h",    "cuda/std/cstdint", "cuda/atomic"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[200];
        snprintf(text, sizeof text, "#include <%s>\n__global__ void f(float *x) { *x = 1; }",
                 headers[i]);
        mr_compile_source source = source_of(text);
        source.is_confined = true;
        mr_compiled compiled = compile(&source);
        mr_compiled_free(&compiled);
    }
    assert_int_equal(count_files(in_folder("cache")), 0);
}

/* `make check` as a whole has fewer kernels and texts. */
static bool is_short(void) {
    const char *what = getenv("MILLRACE_SHORT");
    return what && strcmp(what, "all") == 0;
}

/* A text that nests so deeply that the compiler's stack ends. */
static void a_text_that_crashes_the_compiler_is_an_error(void **state) {
    need(state);
    mr_buffer text = {0};
    mr_buffer_puts(&text, "__global__ void f(int *x) { *x = ");
    for (int i = 0; i < 150000; i++) mr_buffer_puts(&text, "-~");
    mr_buffer_puts(&text, "1; }");
    for (int is_confined = is_short() ? 1 : 0; is_confined < 2; is_confined++) {
        mr_compile_source source = source_of(text.data);
        source.is_confined = is_confined;
        const char *message = error_of(&source, MR_CODE_UNKNOWN);
        assert_has(message, "crashed on dir/a.lua:14 (signal 11");
        source = source_of(saxpy);
        source.is_confined = is_confined;
        mr_compiled compiled = compile(&source);
        mr_compiled_free(&compiled);
    }
    mr_buffer_free(&text);
}

/* Whatever ends it, the next compilation has another one. */
static void a_worker_that_is_killed_is_replaced(void **state) {
    need(state);
    char command[400];
    set_cache("off");
    snprintf(command, sizeof command,
             "found=1; for f in /proc/[0-9]*/stat; do read -r line < $f || continue; case $line in "
             "*'(millrace-compil) '?' %d '*) kill -KILL ${line%%%% *} && found=0;; esac; done "
             "2>/dev/null; exit $found",
             (int)getpid());
    for (int i = 0; i < 3; i++) {
        mr_compile_source source = source_of(saxpy);
        mr_compiled compiled = compile(&source);
        mr_compiled_free(&compiled);
        assert_int_equal(system(command), 0);
    }
}

/* ---------------------------------------------------------------- programs that are no clang, or a bad one */

/* A script that answers as clang when asked for its version, and counts its compilations in the file "runs", the
 * questions in the file "questions". */
static void use_program(const char *compiling) {
    char text[2000];
    snprintf(
        text, sizeof text,
        "#!/bin/sh\nif [ \"$1\" = -v ]; then echo x >> %s; echo 'clang version 14.0.6'; echo '  "
        "nvptx64 - x'; exit 0; fi\n"
        "echo x >> %s\nfor a; do [ \"$last\" = -o ] && out=$a; last=$a; done\n%s\n",
        in_folder("questions"), in_folder("runs"), compiling);
    write_text(in_folder("program"), text);
    chmod(in_folder("program"), 0700);
    setenv("MILLRACE_COMPILER", in_folder("program"), 1);
}

static void a_compiler_that_hangs_is_ended_with_its_children(void **state) {
    (void)state;
    char script[300];
    snprintf(script, sizeof script, "sleep 100 & echo $! > %s; sleep 100", in_folder("child"));
    use_program(script);
    mr_compile_source source = source_of(saxpy);
    source.time_limit_ms = 500;
    const char *message = error_of(&source, MR_CODE_UNKNOWN);
    assert_has(message, "did not finish dir/a.lua:14 within 0.5 s");
    FILE *file = fopen(in_folder("child"), "r");
    int child = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &child), 1);
    fclose(file);
    /* Until init has collected it, it may be a zombie. */
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", child);
    for (int i = 0; i < 200 && kill(child, 0) == 0; i++) {
        FILE *stat_file = fopen(path, "r");
        if (stat_file && fgets(line, sizeof line, stat_file) && strstr(line, ") Z")) i = 200;
        if (stat_file) fclose(stat_file);
        usleep(10000);
    }
    assert_true(kill(child, 0) != 0 || strstr(line, ") Z"));
}

static bool after_a_moment(void *context) {
    return ++*(int *)context > 5;
}

static void a_compilation_can_be_interrupted(void **state) {
    (void)state;
    int calls = 0;
    use_program("sleep 100");
    mr_compile_source source = source_of(saxpy);
    source.interrupted = after_a_moment;
    source.context = &calls;
    assert_has(error_of(&source, MR_CODE_INTERRUPTED), "interrupted");
}

static bool at_once(void *context) {
    (void)context;
    return true;
}

static void each_compiler_can_be_interrupted(void **state) {
    need(state);
    mr_compile_source source = source_of(saxpy);
    source.interrupted = at_once;
    mr_compiled compiled;
    mr_status status = mr_compile(&source, &compiled);
    /* A library without the function for it finishes instead. */
    if (status) assert_int_equal(status->code, MR_CODE_INTERRUPTED);
    else mr_compiled_free(&compiled);
    mr_error_destroy(status);
}

static void a_compiler_that_crashes_is_told(void **state) {
    (void)state;
    use_program("kill -SEGV $$");
    mr_compile_source source = source_of(saxpy);
    const char *message = error_of(&source, MR_CODE_UNKNOWN);
    assert_has(message, "clang 14.0.6 crashed on dir/a.lua:14");
    assert_has(message, "Segmentation fault");
    use_program("exit 1");
    assert_has(error_of(&source, MR_CODE_UNKNOWN), "gave no reason");
    use_program("echo 'fatal error: error in backend: what'; echo 'Stack dump:'; exit 70");
    assert_has(error_of(&source, MR_CODE_UNKNOWN), "error in backend: what");
    use_program("true");
    assert_has(error_of(&source, MR_CODE_UNKNOWN), "cannot be read");
    use_program(": > \"$out\"");
    assert_has(error_of(&source, MR_CODE_UNKNOWN), "made no PTX");
    use_program("yes 'kernel.cu:1:1: error: again and again' | head -c 20000000; exit 1");
    assert_true(strlen(error_of(&source, MR_CODE_INVALID_ARGUMENT)) < 20000);
    use_program("echo '// nothing' > \"$out\"");
    error_of_name(saxpy, "saxpy");
    use_program("printf '\\0\\0\\0.entry saxpy( mr_entry_0 = ' > \"$out\"");
    error_of_name(saxpy, "saxpy");
    use_program("printf '.const .u64 mr_entry_99999999999 = x;\\n.file\\n.file 1\\n.file 1 "
                "\"\\n.loc\\n.loc 1' > \"$out\"");
    error_of_name(saxpy, "saxpy");
}

static void a_program_that_is_no_clang_is_told(void **state) {
    (void)state;
    mr_compile_source source = source_of(saxpy);
    setenv("MILLRACE_COMPILER", "/bin/true", 1);
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "/bin/true is not a working clang");
    setenv("MILLRACE_COMPILER", in_folder("nothing"), 1);
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "no compiler for kernels");
    setenv("MILLRACE_COMPILER", "no-such-program", 1);
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "apt-get install clang");
    write_text(in_folder("text"), "this is no program\n");
    chmod(in_folder("text"), 0700);
    setenv("MILLRACE_COMPILER", in_folder("text"), 1);
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "no compiler for kernels");
    write_text(in_folder("old"), "#!/bin/sh\necho clang version 14.0.6\necho x86\n");
    chmod(in_folder("old"), 0700);
    setenv("MILLRACE_COMPILER", in_folder("old"), 1);
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "has no NVPTX back end");
    write_text(in_folder("old"), "#!/bin/sh\necho clang version 9.0.0\necho nvptx64\n");
    assert_has(error_of(&source, MR_CODE_NOT_SUPPORTED), "clang 14 or newer");
}

static int count_lines(const char *path) {
    int lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = getc(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return lines;
}

static void a_clang_is_asked_once_for_its_version(void **state) {
    (void)state;
    static const char answer[] = "printf '.visible .entry saxpy(\n)\n' > \"$out\"";
    mr_compile_source source = source_of(saxpy);
    set_cache("off");
    for (int program = 1; program < 3; program++) {
        use_program(program == 1 ? answer : "printf '.visible .entry saxpy(\n)\n' >\"$out\"");
        for (int i = 0; i < 3; i++) {
            mr_compiled compiled = compile(&source);
            assert_string_equal(compiled.compiler, "clang 14.0.6");
            mr_compiled_free(&compiled);
        }
        assert_int_equal(count_lines(in_folder("questions")), program); /* a changed one again */
        assert_int_equal(count_lines(in_folder("runs")), 3 * program);
    }
}

static void a_hit_starts_no_program(void **state) {
    (void)state;
    use_program("printf '.visible .entry saxpy(\\n)\\n' > \"$out\"");
    mr_compile_source source = source_of(saxpy);
    for (int i = 0; i < 3; i++) {
        mr_compiled compiled = compile(&source);
        assert_int_equal(compiled.from_cache, i > 0);
        mr_compiled_free(&compiled);
    }
    struct stat facts;
    assert_int_equal(stat(in_folder("runs"), &facts), 0);
    assert_int_equal(facts.st_size, 2);
    /* Another program under the same name is another compiler. */
    use_program("printf '.visible .entry other(\\n)\\n' > \"$out\"");
    mr_compiled compiled = compile(&source);
    assert_false(compiled.from_cache);
    assert_has(compiled.ptx, "other");
    mr_compiled_free(&compiled);
}

static void without_a_temporary_folder_there_is_an_error(void **state) {
    (void)state;
    use_program("true");
    setenv("TMPDIR", in_folder("none"), 1);
    mr_compile_source source = source_of(saxpy);
    assert_has(error_of(&source, MR_CODE_UNKNOWN), "TMPDIR");
}

/* ---------------------------------------------------------------- the corpus, the parts */

static void each_kernel_of_the_corpus_compiles(void **state) {
    need(state);
    int count = 0;
    DIR *files = opendir("tests/kernels");
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files));) {
        char path[300];
        kernel_file file;
        if (!strstr(entry->d_name, ".cu")) continue;
        /* `make check` has a quarter of them: some of the letters that they begin with. */
        if (is_short() && entry->d_name[0] % 3) continue;
        snprintf(path, sizeof path, "tests/kernels/%s", entry->d_name);
        assert_true(kernel_file_read(path, &file));
        assert_true(file.name_count > 0);
        mr_compile_source source = {.text = file.text,
                                    .size = file.size,
                                    .file = path,
                                    .compute_major = 9,
                                    .names = file.names,
                                    .name_count = file.name_count};
        mr_compiled compiled = compile(&source);
        assert_null(compiled.log);
        assert_has(compiled.ptx, ".loc\t");
        mr_compiled_free(&compiled);
        kernel_file_free(&file);
        count++;
    }
    closedir(files);
    assert_true(count >= (is_short() ? 7 : 25));
}

static void the_hash_is_blake2b(void **state) {
    (void)state;
    static const struct {
        const char *text, *hash;
    } known[] = {{"", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
                 {"abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"}};
    for (int i = 0; i < 2; i++) {
        mr_hash hash;
        unsigned char bytes[MR_HASH_SIZE];
        char text[2 * MR_HASH_SIZE + 1];
        mr_hash_begin(&hash);
        mr_hash_add(&hash, known[i].text, strlen(known[i].text));
        mr_hash_end(&hash, bytes);
        for (int j = 0; j < MR_HASH_SIZE; j++) snprintf(text + 2 * j, 3, "%02x", bytes[j]);
        assert_string_equal(text, known[i].hash);
    }
    /* In pieces of any size it is the same. */
    char data[1000];
    unsigned char whole[MR_HASH_SIZE], pieces[MR_HASH_SIZE];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    for (size_t size = 1; size <= sizeof data; size += 37) {
        mr_hash hash;
        mr_hash_begin(&hash);
        mr_hash_add(&hash, data, sizeof data);
        mr_hash_end(&hash, whole);
        mr_hash_begin(&hash);
        for (size_t at = 0; at < sizeof data; at += size)
            mr_hash_add(&hash, data + at, at + size < sizeof data ? size : sizeof data - at);
        mr_hash_end(&hash, pieces);
        assert_memory_equal(whole, pieces, MR_HASH_SIZE);
    }
}

static void code_is_read_without_comments_and_literals(void **state) {
    (void)state;
    static const struct {
        const char *text, *code;
    } known[] = {{"a // b\nc", "a  \nc"},
                 {"a /* b\n*/ c", "a \n  c"},
                 {"\"a // \\\" b\" c", "\"\" c"},
                 {"'\"' x", "'' x"},
                 {"1'000 + 2", "1'000 + 2"},
                 {"R\"(a \" // )\" x", "R\"\" x"},
                 {"R\"q()\")q\" x", "R\"\" x"},
                 {"#include \"a\\b.h\"\n\"c\"", "#include \"a\\b.h\"\n\"\""},
                 {"a\\\nb", "ab"},
                 {"\"", "\""},
                 {"/*", " "},
                 {"", ""}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        mr_buffer code = {0};
        mr_scan_code(known[i].text, strlen(known[i].text), &code);
        if (strcmp(known[i].code, "\"") == 0) assert_has(code.data, "\"");
        else assert_string_equal(code.data, known[i].code);
        mr_buffer_free(&code);
    }
    assert_true(mr_scan_uses_place("x = __LINE__;"));
    assert_true(mr_scan_uses_place("\n # line 3"));
    assert_true(mr_scan_uses_place("# 3 \"x\""));
    assert_false(mr_scan_uses_place(
        "int line = 3, my__LINE__; a ? line : 3"[0] ? "int line = 3, my__LINE__;" : ""));
}

static int said;
static void count_line(const char *what, const char *text) {
    assert_true(strlen(what) > 0 && strlen(text) > 0);
    said++;
}

static void the_compilers_and_the_cache_are_described(void **state) {
    (void)state;
    said = 0;
    mr_compile_describe(count_line);
    assert_true(said >= 3);
    set_cache("off");
    mr_compile_describe(count_line);
}

static void nvrtc_comes_first(void **state) {
    (void)state;
    mr_compile_source source = source_of(saxpy);
    mr_compiled compiled;
    unsetenv("MILLRACE_COMPILER");
    mr_status status = mr_compile(&source, &compiled);
    if (status) {
        assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
        assert_has(status->message, "Install");
        mr_error_destroy(status);
        return;
    }
    char *first = strdup(compiled.compiler);
    mr_compiled_free(&compiled);
    setenv("MILLRACE_COMPILER", "nvrtc", 1);
    status = mr_compile(&source, &compiled);
    if (status) assert_int_equal(strncmp(first, "clang", 5), 0);
    else {
        assert_string_equal(first, compiled.compiler);
        mr_compiled_free(&compiled);
    }
    mr_error_destroy(status);
    free(first);
}

#define PLAIN(f) cmocka_unit_test_setup_teardown(f, begin, end)
#define NVRTC(f)                                                                                   \
    { #f " (NVRTC)", f, begin, end, (void *)"nvrtc" }
#define CLANG(f)                                                                                   \
    { #f " (clang)", f, begin, end, (void *)"clang" }
#define BOTH(f) NVRTC(f), CLANG(f)

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        BOTH(gives_ptx_with_the_users_lines),
        BOTH(takes_the_newest_architecture_that_the_device_runs),
        BOTH(errors_have_the_users_lines),
        BOTH(an_unnamed_text_has_a_name_in_messages),
        BOTH(an_error_of_the_text_is_shown_without_those_of_names),
        BOTH(warnings_are_in_the_log),
        BOTH(templates_are_found_by_name),
        BOTH(a_name_that_is_missing_is_told_with_those_there_are),
        PLAIN(names_are_checked_before_they_are_compiled),
        BOTH(options_reach_the_compiler),
        BOTH(bad_options_are_told),
        BOTH(headers_of_c_and_cuda_are_there),
        BOTH(files_beside_the_users_file_are_included),
        BOTH(what_the_cache_cannot_see_is_not_cached),
        BOTH(a_second_compilation_is_from_the_cache),
        BOTH(a_text_that_moved_is_not_compiled_again),
        BOTH(a_text_that_names_its_line_is_compiled_again_where_it_moved),
        BOTH(an_entry_that_is_damaged_is_replaced),
        BOTH(a_folder_that_cannot_be_used_is_no_error),
        PLAIN(the_cache_is_where_the_environment_says),
        PLAIN(the_cache_is_bounded_and_keeps_what_is_used),
        PLAIN(a_value_of_another_users_is_ignored),
        BOTH(several_processes_use_one_cache),
        BOTH(several_threads_compile),
        BOTH(any_text_gives_ptx_or_an_error),
        BOTH(a_text_may_be_long_but_not_endless),
        PLAIN(in_the_sandbox_only_nvrtc_compiles),
        NVRTC(the_sandbox_has_no_files),
        PLAIN(a_header_of_the_toolkit_is_found_by_its_own_path),
        NVRTC(the_sandbox_allows_headers_of_cuda),
        NVRTC(a_text_that_crashes_the_compiler_is_an_error),
        NVRTC(a_worker_that_is_killed_is_replaced),
        PLAIN(a_compiler_that_hangs_is_ended_with_its_children),
        PLAIN(a_compilation_can_be_interrupted),
        BOTH(each_compiler_can_be_interrupted),
        PLAIN(a_compiler_that_crashes_is_told),
        PLAIN(a_program_that_is_no_clang_is_told),
        PLAIN(a_clang_is_asked_once_for_its_version),
        PLAIN(a_hit_starts_no_program),
        PLAIN(without_a_temporary_folder_there_is_an_error),
        BOTH(each_kernel_of_the_corpus_compiles),
        PLAIN(the_hash_is_blake2b),
        PLAIN(code_is_read_without_comments_and_literals),
        PLAIN(the_compilers_and_the_cache_are_described),
        PLAIN(nvrtc_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
