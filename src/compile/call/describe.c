/* What this machine has to compile kernels, for `millrace doctor`. */
#include "compile/cache/cache.h"
#include "compile/compiler/clang.h"
#include "compile/compiler/nvrtc.h"

static void say_clang(void (*say)(const char *what, const char *text), bool is_second) {
    mr_compile_source source = {.text = ""};
    const mr_compile_job job = {.source = &source, .file = "", .beside = ""};
    mr_compile_result found = {.is_rejected = false};
    mr_clang_list list = {.count = 0};
    mr_buffer text = {0};
    mr_status status = mr_clang_find(NULL, &list);
    const char *path = NULL;
    if (!status) status = mr_clang_probe(&job, &list, &found, &path, &text);
    const char *role = is_second ? "; used with MILLRACE_COMPILER=clang" : "";
    if (path) {
        mr_buffer_free(&text);
        mr_buffer_printf(&text, "%s (%s)%s", found.compiler, path, role);
    } else mr_buffer_printf(&text, " (install clang 14 or newer)");
    say("kernel compiler", text.data ? text.data : "clang");
    mr_error_destroy(status);
    mr_clang_free(&list);
    mr_buffer_free(&text);
}

static void say_cache(void (*say)(const char *what, const char *text)) {
    mr_cache cache;
    mr_buffer text = {0};
    size_t count, size;
    mr_cache_open(&cache);
    if (!cache.folder)
        mr_buffer_puts(&text, "none (MILLRACE_CACHE=off, or there is no home folder)");
    else if (!mr_cache_measure(&cache, &count, &size))
        mr_buffer_printf(&text, "%s (does not exist yet)", cache.folder);
    else
        mr_buffer_printf(&text, "%s: %zu kernels, %.1f MiB", cache.folder, count,
                         (double)size / (1 << 20));
    say("kernel cache", text.data ? text.data : "");
    mr_buffer_free(&text);
    mr_cache_close(&cache);
}

void mr_compile_describe(void (*say)(const char *what, const char *text)) {
    const mr_compile_source source = {.text = ""};
    char name[48], problem[256];
    bool is_there = mr_nvrtc_probe(&source, name, sizeof name, problem, sizeof problem);
    mr_buffer text = {0};
    if (is_there) mr_buffer_printf(&text, "%s (%s)", name, mr_nvrtc_path());
    else mr_buffer_printf(&text, "NVRTC: %s", problem);
    say("kernel compiler", text.data ? text.data : "NVRTC");
    mr_buffer_free(&text);
    say_clang(say, is_there);
    say_cache(say);
}
