/* Writes one of the traces of tests/c/trace_samples.h, for tests that look at files and pages, and for measuring.
 *
 *     sample pipeline|before|race|ranks|hostile|empty|dense:COUNT|random:SEED|both FILE...      by the endings of the files
 *     sample outcomes FILE.html
 *     sample NAME --print WIDTH [ascii] [color]
 */
#include <time.h>

#include "tests/c/trace_samples.h"
#include "trace/writers.h"

static mr_trace *make(const char *name) {
    if (strcmp(name, "pipeline") == 0 || strcmp(name, "both") == 0)
        return sample_pipeline(false, 4);
    if (strcmp(name, "before") == 0) return sample_pipeline(true, 4);
    if (strcmp(name, "race") == 0) return sample_race();
    if (strcmp(name, "hostile") == 0) return sample_hostile();
    if (strcmp(name, "ranks") == 0) return sample_ranks();
    if (strcmp(name, "empty") == 0) return sample_empty();
    if (strncmp(name, "dense:", 6) == 0) return sample_dense(strtoul(name + 6, NULL, 10));
    if (strncmp(name, "random:", 7) == 0) {
        unsigned seed = (unsigned)strtoul(name + 7, NULL, 10);
        return sample_random(seed, 1 + (int)seed * 20, 100 + 1000 * (uint64_t)seed);
    }
    fprintf(stderr, "sample: there is no sample `%s`\n", name);
    exit(2);
}

/* A script in which each line says which it is. */
static const char *source(void *context, const char *file, size_t *out_size) {
    static char text[4096];
    (void)context;
    int used = snprintf(text, sizeof text, "-- %.60s\n", file);
    for (int line = 2; line <= 40; line++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         line % 3 ? "local x%d = x:add(%d) -- </script> & <b>\n"
                                  : "for i = %d, %d do step(i) end\n",
                         line, line);
    *out_size = (size_t)used;
    return text;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int save_outcomes(const char *path) {
    mr_trace *traces[] = {sample_race(), sample_pipeline(false, 4)};
    const mr_trace_outcome outcomes[] = {{traces[0], "outcome 1: 1.0"},
                                         {traces[1], "outcome 2: </script>"}};
    must(mr_trace_save_outcomes(outcomes, 2, path, source, NULL));
    for (int i = 0; i < 2; i++) mr_trace_release(traces[i]);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: sample NAME FILE... | sample NAME --print WIDTH [ascii] [color]\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "outcomes") == 0) return save_outcomes(argv[2]);
    bool both = strcmp(argv[1], "both") == 0;
    mr_trace *trace = make(argv[1]), *before = both ? make("before") : NULL;
    if (strcmp(argv[2], "--print") == 0) {
        mr_trace_terminal options = {.width = argc > 3 ? atoi(argv[3]) : 0};
        for (int i = 4; i < argc; i++) {
            options.ascii |= strcmp(argv[i], "ascii") == 0;
            options.color |= strcmp(argv[i], "color") == 0;
        }
        must(both ? mr_trace_print_both(before, trace, &options, stdout)
                  : mr_trace_print(trace, &options, stdout));
    } else {
        for (int i = 2; i < argc; i++) {
            double began = seconds();
            must(mr_trace_save(trace, before, argv[i], source, NULL));
            printf("%s: %.3f s\n", argv[i], seconds() - began);
        }
    }
    mr_trace_release(trace);
    mr_trace_release(before);
    return 0;
}
