/* Advice where a compiler rejects a text for a reason that every beginner meets. It goes below the compiler's own
 * message, and never replaces that. Easiest to break: words of messages change with each release of a compiler, so a
 * text without advice must still read well. */
#include "compile/call/advice.h"

#include <stdbool.h>

#include "compile/internal.h"

/* Headers of the host's C++ library, for which there is nothing on the device. */
static const char *const of_host[] = {
    "algorithm",    "any",           "array",         "atomic",
    "bitset",       "chrono",        "complex",       "condition_variable",
    "deque",        "exception",     "filesystem",    "forward_list",
    "fstream",      "functional",    "future",        "iomanip",
    "ios",          "iostream",      "istream",       "iterator",
    "list",         "map",           "memory",        "mutex",
    "numeric",      "optional",      "ostream",       "queue",
    "random",       "ranges",        "regex",         "set",
    "shared_mutex", "span",          "sstream",       "stack",
    "stdexcept",    "streambuf",     "string",        "string_view",
    "system_error", "thread",        "tuple",         "typeindex",
    "typeinfo",     "unordered_map", "unordered_set", "utility",
    "valarray",     "variant",       "vector",        "windows.h",
    "unistd.h",     "sys/time.h",    "pthread.h"};

static bool is_of_host(const char *name) {
    for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
        if (strcmp(name, of_host[i]) == 0) return true;
    return false;
}

#define MOST_NAME 200

/* The text between the first two `mark` after `at`. */
static bool quoted(const char *at, char mark, char out[MOST_NAME]) {
    const char *open = strchr(at, mark), *close = open ? strchr(open + 1, mark) : NULL;
    if (!close || close - open > MOST_NAME) return false;
    snprintf(out, MOST_NAME, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

/* The header that was not found: `cannot open source file "vector"`, `'vector' file not found`. */
static bool missing_header(const char *said, char out[MOST_NAME]) {
    static const char nvrtc[] = "cannot open source file ", clang[] = " file not found";
    const char *at = strstr(said, nvrtc);
    if (at) return quoted(at, '"', out);
    at = strstr(said, clang);
    if (!at) return false;
    const char *open = at - 1;
    while (open > said && open[-1] != '\'' && open[-1] != '\n') open--;
    return open > said && quoted(open - 1, '\'', out);
}

static void advise_header(const char *name, bool is_confined, mr_buffer *out) {
    if (strstr(name, "stream") && is_of_host(name))
        mr_buffer_printf(out,
                         "<%s> belongs to the host's C++ library, which kernels cannot use: leave "
                         "it out; printf prints from a kernel and needs no #include",
                         name);
    else if (is_of_host(name) || strncmp(name, "thrust/", 7) == 0)
        mr_buffer_printf(out,
                         "<%s> belongs to the host's C++ library, which kernels cannot use: leave "
                         "it out, and use arrays and pointers; CUDA's own functions need no "
                         "#include",
                         name);
    else if (is_confined)
        mr_buffer_puts(out, "in the sandbox a kernel finds the headers of CUDA and C, such as "
                            "<cuda_fp16.h>, and no other file");
    else
        mr_buffer_printf(out,
                         "\"%s\" was not found: a file beside the source is found with {path=...}; "
                         "options = {\"-IFOLDER\"} names another folder",
                         name);
}

/* CUDA's functions for the host, and its <<<...>>>, which one of the compilers turns into such a call. */
static bool calls_host(const char *said) {
    static const char *const marks[] = {"identifier \"cuda",
                                        "undeclared identifier 'cuda",
                                        "undeclared identifier cudaConfigureCall",
                                        "identifier \"cu",
                                        "__global__ function call must be configured",
                                        "kernel launch from __device__ or __global__"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(said, marks[i])) return true;
    return false;
}

/* The line that the compiler shows defines main(). */
static bool shows_main(const char *said) {
    const char *at = strstr(said, "main(");
    return at && at > said && (at[-1] == ' ' || at[-1] == '\n');
}

void mr_compile_advise(const char *said, bool is_confined, mr_buffer *out) {
    char name[MOST_NAME];
    bool lacks_space = strstr(said, "without execution space annotations") != NULL;
    if (missing_header(said, name)) {
        advise_header(name, is_confined, out);
    } else if (calls_host(said) || (lacks_space && shows_main(said))) {
        mr_buffer_puts(out,
                       "only code for the device belongs in the source: leave main() and "
                       "the calls of the host out; the script makes tensors (mr.zeros), copies "
                       "(y:copy_) and launches (k[{grid, block}](...))");
    } else if (lacks_space || strstr(said, "call to __host__ function from __")) {
        mr_buffer_puts(out, "write __global__ in front of a kernel, which the script launches, and "
                            "__device__ in front of a function that kernels call");
    }
}
