/* clang as a child process: see clang.h.
 *
 * The text and the headers are in a temporary folder. clang sees them under fixed names (an overlay file says which is
 * which), so no message and no line of the PTX holds the name of a temporary file. Easiest to break: a temporary folder
 * must be removed on each way out. */
#include "compile/compiler/clang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/vec.h"
#include "compile/child.h"
#include "compile/folder.h"
#include "compile/text/ptx.h"

#define PROBE_LIMIT  10000 /* ms */
#define LONGEST_LOG  ((size_t)256 << 10)
#define TITLE        "clang version "
#define ENTRY_PREFIX "mr_entry_"

/* ---------------------------------------------------------------- which one */

static const char *const usual_names[] = {"clang",    "clang-21", "clang-20",
                                          "clang-19", "clang-18", "clang-17",
                                          "clang-16", "clang-15", "clang-14"};

static mr_status interrupted(const mr_compile_job *job) {
    return mr_fail(MR_CODE_INTERRUPTED, "compiling %s was interrupted", job->file);
}

/* Appends the program of this name, looked for in PATH unless the name has a slash. False: no memory. */
static bool add_program(mr_clang_list *list, const char *name) {
    const char *folders = strchr(name, '/') ? "" : getenv("PATH");
    if (!folders) folders = "/usr/bin:/bin";
    do {
        const char *end = strchrnul(folders, ':');
        char *path = NULL;
        int length = end > folders ? asprintf(&path, "%.*s/%s", (int)(end - folders), folders, name)
                                   : asprintf(&path, "%s", name);
        if (length < 0) return false;
        if (access(path, X_OK) == 0) {
            list->paths[list->count++] = path;
            return true;
        }
        free(path);
        folders = *end ? end + 1 : NULL;
    } while (folders);
    return true;
}

mr_status mr_clang_find(const char *only, mr_clang_list *out) {
    *out = (mr_clang_list){0};
    bool is_whole = true;
    if (only) is_whole = add_program(out, only);
    for (size_t i = 0; !only && i < sizeof usual_names / sizeof *usual_names; i++)
        is_whole = is_whole && add_program(out, usual_names[i]);
    return is_whole ? MR_OK : mr_no_memory("to compile a kernel");
}

void mr_clang_free(mr_clang_list *list) {
    for (int i = 0; i < list->count; i++) free(list->paths[i]);
    *list = (mr_clang_list){0};
}

static mr_status run(const mr_compile_source *source, const char *const *arguments, int limit_ms,
                     mr_child_end *end) {
    const mr_child child = {.arguments = arguments,
                            .time_limit_ms = limit_ms,
                            .most_output = LONGEST_LOG,
                            .interrupted = source->interrupted,
                            .context = source->context};
    return mr_child_run(&child, end);
}

/* Appends why the answer of a program to -v is not that of a usable clang; false if it is one. */
static bool has_problem(const char *path, const mr_child_end *end, mr_buffer *out_problem) {
    const char *text = end->output.data ? end->output.data : "";
    const char *gap = out_problem->size ? "; " : "";
    if (end->is_late)
        mr_buffer_printf(out_problem, "%s%s did not tell its version within %d s", gap, path,
                         PROBE_LIMIT / 1000);
    else if (end->exit_status != 0 || !strstr(text, TITLE))
        mr_buffer_printf(out_problem, "%s%s is not a working clang", gap, path);
    else if (!strstr(text, "nvptx64"))
        mr_buffer_printf(out_problem, "%s%s has no NVPTX back end", gap, path);
    else return false;
    return true;
}

/* The program of this thread's last good answer: asking clang takes as long as compiling a small kernel. */
static _Thread_local struct {
    struct stat facts;
    char name[sizeof((mr_compile_result *)NULL)->compiler];
} answered;

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* -v writes the version. */
static mr_status probe(const char *path, const mr_compile_job *job, mr_compile_result *out,
                       bool *out_is_usable, mr_buffer *out_problem) {
    const char *const arguments[] = {path, "-v", "-print-targets", NULL};
    struct stat facts = {0};
    mr_child_end end;
    bool is_there = stat(path, &facts) == 0;
    *out_is_usable = is_there && answered.name[0] && is_same_file(&facts, &answered.facts);
    if (*out_is_usable) {
        mr_compile_set_name(out->compiler, sizeof out->compiler, answered.name);
        return MR_OK;
    }
    mr_status status = run(job->source, arguments, PROBE_LIMIT, &end);
    if (status) {
        mr_buffer_printf(out_problem, "%s%s", out_problem->size ? "; " : "", status->message);
        mr_error_destroy(status);
        status = MR_OK;
    } else if (end.is_interrupted) status = interrupted(job);
    else if (!has_problem(path, &end, out_problem)) {
        const char *version = strstr(end.output.data, TITLE) + strlen(TITLE);
        snprintf(out->compiler, sizeof out->compiler, "clang %.*s",
                 (int)strspn(version, "0123456789."), version);
        *out_is_usable = true;
        answered.facts = facts;
        mr_compile_set_name(answered.name, sizeof answered.name, is_there ? out->compiler : "");
    }
    mr_buffer_free(&end.output);
    return status;
}

mr_status mr_clang_probe(const mr_compile_job *job, const mr_clang_list *list,
                         mr_compile_result *out, const char **out_path, mr_buffer *out_problem) {
    *out_path = NULL;
    for (int i = 0; i < list->count && !*out_path; i++) {
        bool is_usable;
        MR_TRY(probe(list->paths[i], job, out, &is_usable, out_problem));
        if (is_usable) *out_path = list->paths[i];
    }
    if (!list->count) mr_buffer_puts(out_problem, "no clang was found in PATH");
    return MR_OK;
}

/* The newest architecture up to `wanted` that this version of clang knows. */
static int choose_architecture(int wanted, int version, const char **out_ptx) {
    static const struct {
        int version, architecture;
    } known[] = {{14, 75}, {14, 80}, {14, 86}, {16, 89}, {16, 90}, {20, 100}, {20, 120}};
    int best = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].version <= version && known[i].architecture <= wanted)
            best = known[i].architecture;
    /* The version of PTX; without an option clang takes one that is too old for these architectures. */
    *out_ptx = best >= 100 ? "+ptx87" : best >= 89 ? "+ptx78" : "+ptx75";
    return best;
}

/* ---------------------------------------------------------------- the command line */

typedef struct {
    MR_VEC(char *) items;
    bool failed;
} command_line;

static void put(command_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(command_line *line, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    if (text && mr_vec_push(&line->items, text)) return;
    free(text);
    line->failed = true;
}

static void free_line(command_line *line) {
    for (size_t i = 0; i < line->items.count; i++) free(line->items.items[i]);
    mr_vec_free(&line->items);
}

/* clang's name for an option of NVRTC. `name` has neither dashes nor "=value". */
typedef struct {
    const char *name, *value; /* value NULL: any */
    const char *as[6];        /* none: clang needs nothing for it */
} translation;

#define FLUSH         "-fcuda-flush-denormals-to-zero"
#define DIVIDE_APPROX "-mllvm", "-nvptx-prec-divf32=0"
#define ROOT_APPROX   "-mllvm", "-nvptx-prec-sqrtf32=0"

static const translation translations[] = {
    {"lineinfo", NULL, {0}},
    {"generate-line-info", NULL, {0}},
    {"device-debug", NULL, {0}},
    {"maxrregcount", NULL, {0}},
    {"extra-device-vectorization", NULL, {0}},
    {"device-int128", NULL, {0}},
    {"restrict", NULL, {0}},
    {"use_fast_math", NULL, {"-D__MR_FAST_MATH__", FLUSH, DIVIDE_APPROX}},
    {"ftz", "true", {FLUSH}},
    {"ftz", "false", {0}},
    {"prec-div", "true", {0}},
    {"prec-div", "false", {DIVIDE_APPROX}},
    {"prec-sqrt", "true", {0}},
    {"prec-sqrt", "false", {ROOT_APPROX}},
    {"fmad", "true", {0}},
    {"fmad", "false", {"-Xclang", "-ffp-contract=off"}},
    {"disable-warnings", NULL, {"-w"}},
};

static const struct {
    const char *theirs, *clangs;
} prefixes[] = {
    {"--define-macro=", "-D"}, {"--undefine-macro=", "-U"},    {"--include-path=", "-I"},
    {"--std=", "-std="},       {"--pre-include=", "-include"},
};

static bool is_name(const char *option, const char *name, const char **out_value) {
    size_t length = strlen(name);
    option += strspn(option, "-");
    if (strncmp(option, name, length) != 0 || (option[length] && option[length] != '='))
        return false;
    *out_value = option[length] ? option + length + 1 : "";
    return true;
}

static bool put_translated(command_line *line, const char *option) {
    const char *value;
    for (size_t i = 0; i < sizeof translations / sizeof *translations; i++) {
        const translation *t = &translations[i];
        if (!is_name(option, t->name, &value) || (t->value && strcmp(value, t->value) != 0))
            continue;
        for (int j = 0; t->as[j]; j++) put(line, "%s", t->as[j]);
        if (strcmp(t->name, "use_fast_math") == 0) {
            put(line, "-mllvm");
            put(line, "-nvptx-prec-sqrtf32=0");
        }
        return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i].theirs);
        if (strncmp(option, prefixes[i].theirs, length) != 0) continue;
        put(line, "%s", prefixes[i].clangs);
        put(line, "%s", option + length);
        return true;
    }
    return strcmp(option, "-G") == 0;
}

static void put_options(command_line *line, const mr_compile_source *source) {
    for (int i = 0; i < source->option_count; i++)
        if (!put_translated(line, source->options[i])) put(line, "%s", source->options[i]);
}

static void put_arguments(command_line *line, const char *path, const mr_compile_job *job,
                          const mr_folder *folder, int architecture, const char *ptx, int version) {
    char folder_option[4200];
    put(line, "%s", path);
    put(line, "--cuda-gpu-arch=sm_%d", architecture);
    static const char *const fixed[] = {
        "--cuda-device-only",
        "--cuda-path=" MR_COMPILE_ROOT,
        "-nocudainc",
        "-nocudalib",
        "-nostdinc",
        "-nostdinc++",
        "-I" MR_COMPILE_ROOT,
        "-std=c++17",
        "-O3",
        "-Xclang", /* the driver does not know this value */
        "-ffp-contract=fast-honor-pragmas",
        "-fno-exceptions",
        "-gline-directives-only",
        "-fdebug-compilation-dir=" MR_COMPILE_ROOT,
        "-fno-color-diagnostics",
        "-fno-verbose-asm", /* no comments: they would tell places, too */
        "-fmessage-length=0",
        "-Wno-unknown-cuda-version",
        "-S",
        "-x",
        "cuda"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) put(line, "%s", fixed[i]);
    if (version >= 16) put(line, "--no-default-config");
    if (version >= 17)
        put(line, "-fno-diagnostics-show-line-numbers"); /* beside the lines: they would not move */
    put(line, "-ivfsoverlay");
    put(line, "%s/overlay", folder->path);
    put(line, "-include");
    put(line, "%s", MR_COMPILE_ROOT "/millrace/prelude.h");
    put(line, "-Xclang");
    put(line, "-target-feature");
    put(line, "-Xclang");
    put(line, "%s", ptx);
    put_options(line, job->source);
    if (mr_compile_put_folder(job, folder_option, sizeof folder_option))
        put(line, "%s", folder_option);
    put(line, "-o");
    put(line, "%s/ptx", folder->path);
    put(line, "%s/kernel.cu", folder->path);
}

/* ---------------------------------------------------------------- the files */

/* The names as JSON strings: a name of ours needs no escapes, the folder's may. */
static void put_overlay_file(mr_buffer *out, const char *name, const mr_folder *folder,
                             const char *file) {
    mr_buffer_printf(
        out, "{\"type\":\"file\",\"name\":\"" MR_COMPILE_ROOT "/%s\",\"external-contents\":\"",
        name);
    for (const char *c = folder->path; *c; c++)
        mr_buffer_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    mr_buffer_printf(out, "/%s\"},\n", file);
}

/* The name under which an embedded file is included; NULL: it is not a header. */
static const char *header_name(const mr_embedded *file) {
    static const char *const folders[] = {MR_COMPILE_HEADERS_CLANG, MR_COMPILE_HEADERS_STD};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(file->name, folders[i], strlen(folders[i])) == 0)
            return file->name + strlen(folders[i]);
    return NULL;
}

static mr_status write_headers(const mr_folder *folder, mr_buffer *overlay) {
    int number = 0;
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        char name[24];
        const char *included = header_name(file);
        if (!included) continue;
        snprintf(name, sizeof name, "header-%d", number++);
        MR_TRY(mr_folder_write(folder, name, file->data, file->size));
        put_overlay_file(overlay, included, folder, name);
    }
    return MR_OK;
}

/* A pointer to each kernel makes clang instantiate a template, and gives its symbol in the PTX. */
static void put_text(mr_buffer *out, const mr_compile_job *job, bool has_names) {
    const mr_compile_source *source = job->source;
    mr_compile_put_line(out, job->line, job->file);
    mr_buffer_add(out, source->text, source->size);
    if (!has_names) return;
    mr_buffer_puts(out, "\n");
    for (int i = 0; i < source->name_count; i++) {
        mr_compile_put_line(out, i + 1, MR_COMPILE_NAMES);
        mr_buffer_printf(
            out,
            "extern \"C\" __device__ __attribute__((used)) const void *const " ENTRY_PREFIX
            "%d = (const void *)(%s);\n",
            i, source->names[i]);
    }
}

static mr_status write_files(const mr_folder *folder, const mr_compile_job *job, bool has_names) {
    mr_buffer text = {0}, overlay = {0};
    mr_buffer_puts(&overlay, "{\"version\":0,\"case-sensitive\":\"true\",\"use-external-names\":"
                             "\"false\",\"roots\":[\n");
    mr_status status = write_headers(folder, &overlay);
    if (overlay.size) overlay.data[overlay.size - 2] = ' '; /* the last comma */
    mr_buffer_puts(&overlay, "]}\n");
    put_text(&text, job, has_names);
    if (!status && (text.failed || overlay.failed)) status = mr_no_memory("to compile a kernel");
    if (!status) status = mr_folder_write(folder, "kernel.cu", text.data, text.size);
    if (!status) status = mr_folder_write(folder, "overlay", overlay.data, overlay.size);
    mr_buffer_free(&text);
    mr_buffer_free(&overlay);
    return status;
}

/* ---------------------------------------------------------------- compiling */

/* Judges the end of the child; MR_OK: it made PTX, or rejected the text. */
static mr_status judge(const mr_compile_job *job, const mr_child_end *end, mr_compile_result *out) {
    if (end->is_interrupted) return interrupted(job);
    if (end->is_late)
        return mr_fail(MR_CODE_UNKNOWN, "%s did not finish %s:%d within %g s and was ended",
                       out->compiler, job->file, job->line, mr_compile_limit(job->source) / 1000.0);
    if (end->exit_status < 0)
        return mr_fail(MR_CODE_UNKNOWN, "%s crashed on %s:%d (signal %d, %s)", out->compiler,
                       job->file, job->line, end->signal, strsignal(end->signal));
    out->is_rejected = end->exit_status != 0;
    return MR_OK;
}

static mr_status run_compiler(const char *path, const mr_compile_job *job, const mr_folder *folder,
                              mr_compile_result *out) {
    const char *ptx;
    command_line line = {0};
    mr_child_end end = {0};
    int version = atoi(out->compiler + strlen("clang "));
    int architecture = choose_architecture(job->architecture, version, &ptx);
    if (!architecture)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s cannot compile kernels for compute capability %d.%d: millrace needs "
                       "clang 14 or newer",
                       out->compiler, job->architecture / 10, job->architecture % 10);
    put_arguments(&line, path, job, folder, architecture, ptx, version);
    if (!mr_vec_push(&line.items, NULL)) line.failed = true;
    mr_status status = line.failed ? mr_no_memory("to compile a kernel")
                                   : run(job->source, (const char *const *)line.items.items,
                                         mr_compile_limit(job->source), &end);
    if (!status) status = judge(job, &end, out);
    if (end.output.size) mr_buffer_add(&out->log, end.output.data, end.output.size);
    mr_buffer_free(&end.output);
    free_line(&line);
    if (!status && !out->is_rejected) {
        status = mr_folder_read(folder, "ptx", &out->ptx);
        if (!status && !out->ptx.size)
            status = mr_fail(MR_CODE_UNKNOWN, "%s made no PTX of %s:%d", out->compiler, job->file,
                             job->line);
    }
    return status;
}

static mr_status compile_in(const char *path, const mr_compile_job *job, const mr_folder *folder,
                            mr_compile_result *out) {
    bool has_names = job->source->name_count > 0;
    MR_TRY(write_files(folder, job, has_names));
    MR_TRY(run_compiler(path, job, folder, out));
    if (!out->is_rejected || !has_names) return MR_OK;
    /* Was it the text or a name? An error of the text can make the names wrong, too, and must be shown alone. */
    mr_buffer log_with_names = out->log;
    out->log = (mr_buffer){0};
    mr_status status = write_files(folder, job, false);
    if (!status) status = run_compiler(path, job, folder, out);
    if (!status && !out->is_rejected) {
        mr_buffer_free(&out->log);
        mr_buffer_free(&out->ptx);
        out->log = log_with_names;
        out->is_rejected = true;
        return MR_OK;
    }
    mr_buffer_free(&log_with_names);
    return status;
}

mr_status mr_clang_compile(const mr_compile_job *job, const char *path, mr_compile_result *out) {
    mr_folder folder = {{0}};
    mr_status status = mr_folder_make(&folder);
    if (!status) status = compile_in(path, job, &folder, out);
    mr_folder_remove(&folder);
    if (!status && !out->is_rejected)
        mr_ptx_take_entries(&out->ptx, ENTRY_PREFIX, out->entries, job->source->name_count);
    return status;
}
