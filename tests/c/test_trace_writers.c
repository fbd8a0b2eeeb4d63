/* What draws and writes traces: bars, the terminal, files. Bars and pages are compared with the spans that they were
 * made from; the formats that other programs read are checked in tests/timelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "trace/draw/bars.h"
#include "trace/draw/lanes.h"
#include "trace/write/pack.h"
#include "trace/writers.h"

#include "trace_samples.h"

/* ---- samples */

static mr_trace *sample_by_number(int i) {
    switch (i) {
    case 0: return sample_pipeline(false, 4);
    case 1: return sample_race();
    case 2: return sample_hostile();
    case 3: return sample_empty();
    case 4: return sample_dense(3000);
    case 12: return sample_ranks();
    default:
        return i < 12 ? sample_random((unsigned)i, 1 + i * i * 10, 10 + 300u * (unsigned)i) : NULL;
    }
}

/* ---- bars */

static void check_bars(const mr_trace *trace, const mr_lane *lane, int row, const mr_axis *axis) {
    const mr_span *spans = mr_trace_spans(trace);
    mr_bars bars = {0};
    size_t expected = 0, drawn = 0, next = 0;
    must(mr_lane_bars(trace, lane, row, axis, &bars));
    for (size_t i = 0; i < lane->count; i++)
        expected += lane->stream == MR_TRACE_NONE ? spans[lane->spans[i]].host_waited
                                                  : lane->rows[i] == row;
    int place = axis->first;
    for (size_t i = 0; i < bars.count; i++) {
        const mr_bar *bar = &bars.items[i];
        assert_true(bar->first >= place && bar->end > bar->first);
        assert_true(bar->end <= axis->first + axis->width);
        assert_true(bar->index >= next || i == 0);
        assert_true(bar->look < MR_LOOK_NONE);
        place = bar->end;
        next = bar->index + 1;
        drawn += bar->count;
    }
    assert_int_equal(drawn, expected);
    mr_vec_free(&bars);
}

static void each_span_is_in_one_bar_and_no_bars_overlap(void **state) {
    (void)state;
    mr_trace *trace;
    for (int n = 0; (trace = sample_by_number(n)) != NULL; n++) {
        mr_lanes lanes;
        must(mr_lanes_create(trace, &lanes));
        for (int width = 1; width < 400; width = width * 3 + 1) {
            mr_axis axis = {7, width, mr_trace_facts_of(trace)->duration + 1};
            for (size_t i = 0; i < lanes.count; i++)
                for (int row = 0; row < lanes.items[i].row_count; row++)
                    check_bars(trace, &lanes.items[i], row, &axis);
        }
        mr_lanes_destroy(&lanes);
        mr_trace_release(trace);
    }
}

/* Against a bit a nanosecond. */
static void lanes_know_how_long_they_were_busy(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 20; seed++) {
        mr_trace *trace = sample_random(seed, 60, 2000);
        const mr_span *spans = mr_trace_spans(trace);
        mr_lanes lanes;
        must(mr_lanes_create(trace, &lanes));
        for (size_t i = 1; i < lanes.count; i++) {
            static char is_busy[8000];
            uint64_t busy = 0, bars = 0;
            memset(is_busy, 0, sizeof is_busy);
            for (size_t k = 0; k < mr_trace_count(trace); k++) {
                if (!spans[k].ran || spans[k].engine == MR_ENGINE_NONE ||
                    spans[k].stream != lanes.items[i].stream)
                    continue;
                bars++;
                for (uint64_t t = spans[k].begin; t < spans[k].end; t++) is_busy[t] = 1;
            }
            for (size_t t = 0; t < sizeof is_busy; t++) busy += (uint64_t)is_busy[t];
            assert_int_equal(lanes.items[i].busy, busy);
            assert_int_equal(lanes.items[i].count, bars);
        }
        mr_lanes_destroy(&lanes);
        mr_trace_release(trace);
    }
}

/* ---- the terminal */

static char *printed(const mr_trace *trace, const mr_trace *before, mr_trace_terminal options) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    must(before ? mr_trace_print_both(before, trace, &options, out)
                : mr_trace_print(trace, &options, out));
    fclose(out);
    return text;
}

static void lines_are_no_wider_than_the_terminal(void **state) {
    (void)state;
    mr_trace *trace;
    for (int n = 0; (trace = sample_by_number(n)) != NULL; n++) {
        for (int width = 60; width < 260; width += 37) {
            char *text = printed(trace, NULL, (mr_trace_terminal){.width = width, .ascii = true});
            for (char *line = text; *line; line += strcspn(line, "\n") + 1)
                assert_true(strcspn(line, "\n") <= (size_t)width);
            free(text);
        }
        mr_trace_release(trace);
    }
}

static void ascii_is_ascii_and_only_colour_escapes(void **state) {
    (void)state;
    mr_trace *trace = sample_hostile(), *before = sample_dense(100);
    for (int kind = 0; kind < 8; kind++) {
        mr_trace_terminal options = {.width = 100, .ascii = kind & 1, .color = (kind & 2) != 0};
        char *text = printed(trace, kind & 4 ? before : NULL, options);
        assert_non_null(strstr(text, "]]>"));
        for (const char *c = text; *c; c++) {
            assert_true((unsigned char)*c >= ' ' || *c == '\n' || (options.color && *c == '\033'));
            if (*c == '\033') assert_int_equal(c[1], '[');
            if (options.ascii) assert_true((unsigned char)*c < 0x7f);
        }
        if (options.color) assert_non_null(strstr(text, "\033[0;38;5;16;48;5;75m"));
        free(text);
    }
    mr_trace_release(trace);
    mr_trace_release(before);
}

static void a_gap_is_named_by_its_cause(void **state) {
    (void)state;
    mr_trace *trace = sample_pipeline(false, 4);
    char *text = printed(trace, NULL, (mr_trace_terminal){.width = 200});
    assert_non_null(strstr(text, "waits for stream `compute` (line 16)")); /* in its lane */
    assert_non_null(strstr(text, "waits for event `free` (line 8)"));
    assert_non_null(strstr(text, "│"));
    assert_non_null(strstr(text, "▼"));
    free(text);
    mr_trace_release(trace);
}

static void each_rank_has_a_host_and_streams_of_its_own(void **state) {
    (void)state;
    static const char *const expected[] = {"host", "host of rank 0", "host of rank 1", "copy",
                                           "rank 1 copy"};
    mr_trace *trace = sample_ranks();
    mr_lanes lanes;
    must(mr_lanes_create(trace, &lanes));
    assert_int_equal(lanes.host_count, 3);
    assert_int_equal(lanes.count, 5);
    for (size_t i = 0; i < lanes.count; i++) {
        assert_string_equal(lanes.items[i].label, expected[i]);
        if (lanes.items[i].stream == MR_TRACE_NONE) assert_int_equal(lanes.items[i].row_count, 1);
    }
    mr_lanes_destroy(&lanes);
    char *text = printed(trace, NULL, (mr_trace_terminal){.width = 100, .ascii = true});
    assert_non_null(strstr(text, "\nhost of rank 0 "));
    assert_non_null(strstr(text, "\nhost of rank 1 "));
    assert_non_null(strstr(text, "\nrank 1 copy "));
    free(text);
    mr_trace_release(trace);
}

static void two_traces_share_an_axis(void **state) {
    (void)state;
    mr_trace *before = sample_pipeline(true, 4), *after = sample_pipeline(false, 4);
    char *text = printed(after, before, (mr_trace_terminal){.width = 90, .ascii = true});
    assert_non_null(strstr(text, "before: pipeline.lua"));
    assert_non_null(strstr(text, "after: pipeline.lua"));
    const char *first = strstr(text, "+----"), *second = strstr(strchr(first, '\n'), "+----");
    assert_memory_equal(first, second, strcspn(first, "\n") + 1);
    assert_non_null(strstr(text, "The second takes 1.35 ms less: 0.637 times the first."));
    free(text);
    mr_trace_release(before);
    mr_trace_release(after);
}

/* ---- numbers and texts of files */

static char *sunk(void (*put)(mr_sink *sink, const void *what), const void *what) {
    char *text = NULL;
    size_t size = 0;
    mr_sink *sink = calloc(1, sizeof *sink);
    sink->file = open_memstream(&text, &size);
    put(sink, what);
    assert_true(mr_sink_flush(sink));
    fclose(sink->file);
    free(sink);
    return text;
}

static void put_times(mr_sink *sink, const void *time) {
    const uint64_t *t = time;
    mr_sink_number(sink, *t);
    mr_sink_text(sink, " ");
    mr_sink_us(sink, *t);
    mr_sink_text(sink, " ");
    mr_sink_ms(sink, *t);
}

static void numbers_are_exact(void **state) {
    (void)state;
    uint64_t values[] = {0,    1,      9,       10,      999,         1000,      1001,
                         1100, 123456, 1000000, 1500000, 98765432109, 1ull << 52};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char *text = sunk(put_times, &values[i]), *rest;
        assert_int_equal(strtoull(text, &rest, 10), values[i]);
        assert_true((uint64_t)(strtold(rest, &rest) * 1000 + 0.5L) == values[i]);
        assert_true((uint64_t)(strtold(rest, &rest) * 1000000 + 0.5L) == values[i]);
        assert_int_equal(*rest, '\0');
        free(text);
    }
}

static void put_all_texts(mr_sink *sink, const void *text) {
    mr_sink_json(sink, text);
    mr_sink_text(sink, "\n");
    mr_sink_xml(sink, text);
    mr_sink_text(sink, "\n");
    mr_sink_csv(sink, text);
}

static void texts_cannot_end_what_they_are_in(void **state) {
    (void)state;
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        char *text = sunk(put_all_texts, hostile_texts[i]);
        char *json = strtok(text, "\n"), *xml = hostile_texts[i][0] ? strtok(NULL, "\n") : NULL;
        size_t length = strlen(json);
        assert_true(length >= 2 && json[0] == '"' && json[length - 1] == '"');
        for (size_t k = 1; k < length - 1; k++) {
            assert_true((unsigned char)json[k] >= ' ' && json[k] != '<' && json[k] != '"');
            k += json[k] == '\\';
        }
        if (xml) assert_null(strpbrk(xml, "<>\"'"));
        free(text);
    }
}

/* A buffer that is written in pieces of every size. */
static void put_pieces(mr_sink *sink, const void *bytes) {
    for (size_t at = 0, size = 1; at < 5 * MR_SINK_SIZE; at += size, size = size * 2 + 1) {
        if (size > 5 * MR_SINK_SIZE - at) size = 5 * MR_SINK_SIZE - at;
        mr_sink_bytes(sink, (const char *)bytes + at, size);
    }
}

static void nothing_is_lost_between_buffers(void **state) {
    (void)state;
    char *bytes = malloc(5 * MR_SINK_SIZE + 1);
    for (size_t i = 0; i < 5 * MR_SINK_SIZE; i++) bytes[i] = (char)('a' + i * i % 23);
    bytes[5 * MR_SINK_SIZE] = '\0';
    char *text = sunk(put_pieces, bytes);
    assert_string_equal(text, bytes);
    free(text);
    free(bytes);
}

/* ---- the page's data, read back as page/data.js does */

typedef struct {
    const char *text; /* base64 */
    uint32_t bits;
    int count;
} reader;

static int next_byte(reader *r) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while (r->count < 8) {
        const char *digit = strchr(digits, *r->text++);
        assert_non_null(digit);
        r->bits = r->bits << 6 | (uint32_t)(digit - digits);
        r->count += 6;
    }
    r->count -= 8;
    return r->bits >> r->count & 255;
}

static uint64_t next_number(reader *r) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        int byte = next_byte(r);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static int64_t next_signed(reader *r) {
    uint64_t value = next_number(r);
    return value % 2 ? -(int64_t)(value / 2) - 1 : (int64_t)(value / 2);
}

static uint32_t next_other(reader *r, size_t i) {
    uint64_t value = next_number(r);
    if (!value) return MR_TRACE_NONE;
    int64_t distance =
        (value - 1) % 2 ? -(int64_t)((value - 1) / 2) - 1 : (int64_t)((value - 1) / 2);
    return (uint32_t)((int64_t)i - distance);
}

static void check_page(const mr_trace *trace, const char *page) {
    reader r = {strstr(page, "id=\"spans-0\">") + strlen("id=\"spans-0\">"), 0, 0};
    uint64_t call = 0, seq = 0, ends[32] = {0};
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        uint64_t *end = &ends[span->stream == MR_TRACE_NONE ? 31 : span->stream];
        next_number(&r); /* the sort, which the browser's test looks at */
        uint64_t flags = next_number(&r);
        mr_look look = mr_look_on_host(span);
        assert_int_equal(flags & 15, span->called | span->ran << 1 |
                                         (look == MR_LOOK_HOST_WAIT) << 2 |
                                         (look == MR_LOOK_HOST_WORK) << 3);
        assert_int_equal(flags >> 4, span->held_by);
        assert_int_equal(seq += (uint64_t)next_signed(&r), span->seq);
        if (span->called) {
            assert_int_equal(call += (uint64_t)next_signed(&r), span->call);
            assert_int_equal(call + next_number(&r), span->returned);
            assert_int_equal(next_number(&r), span->waited);
        }
        if (span->ran) {
            uint64_t begin = *end + (uint64_t)next_signed(&r);
            assert_int_equal(begin, span->begin);
            assert_int_equal(*end = begin + next_number(&r), span->end);
            assert_int_equal(begin - (uint64_t)next_signed(&r), span->ready);
        }
        assert_int_equal(next_other(&r, i), span->record);
        assert_int_equal(next_other(&r, i), span->holder);
        assert_int_equal(next_number(&r), span->bytes);
        assert_int_equal(next_number(&r), span->blocks);
    }
}

/* ---- files */

static char folder[64];

static const char *path_of(const char *name) {
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    assert_non_null(file);
    FILE *out = open_memstream(&text, &size);
    for (int c; (c = getc(file)) != EOF;) putc(c, out);
    fclose(out);
    fclose(file);
    return text;
}

static int files_in_folder(void) {
    int count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void fails(const mr_trace *trace, const mr_trace *before, const char *path,
                  const char *part) {
    mr_status status = mr_trace_save(trace, before, path, NULL, NULL);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_INVALID_ARGUMENT);
    if (!strstr(status->message, part)) fail_msg("'%s' has no '%s'", status->message, part);
    mr_error_destroy(status);
}

static const char *const endings[] = {"html", "json", "svg", "dot", "csv", "spans.json"};
#define ENDING_COUNT (sizeof endings / sizeof *endings)

static void every_sample_is_written_in_every_format(void **state) {
    (void)state;
    mr_trace *trace;
    for (int n = 0; (trace = sample_by_number(n)) != NULL; n++) {
        for (size_t i = 0; i < ENDING_COUNT; i++) {
            char name[32];
            snprintf(name, sizeof name, "t.%s", endings[i]);
            must(mr_trace_save(trace, NULL, path_of(name), NULL, NULL));
            char *text = read_file(path_of(name));
            assert_true(strlen(text) > 60);
            if (i == 0) check_page(trace, text);
            free(text);
        }
        mr_trace_release(trace);
    }
    assert_int_equal(files_in_folder(), ENDING_COUNT);
}

static void other_endings_are_refused(void **state) {
    (void)state;
    mr_trace *trace = sample_race();
    int files = files_in_folder();
    const char *bad[] = {"trace", "trace.txt", ".html", "trace.jsonl", "html", "trace.html.gz"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(trace, NULL, bad[i], "one of .html, .spans.json, .json, .svg, .dot, .csv");
    fails(trace, trace, "two.json", "two traces cannot be saved as `two.json`");
    fails(trace, trace, "two.csv", "one of .html, .svg");
    assert_int_equal(files_in_folder(), files);
    must(mr_trace_save(trace, trace, path_of("UPPER.HTML"), NULL, NULL));
    unlink(path_of("UPPER.HTML"));
    mr_trace_release(trace);
}

static void a_place_that_cannot_be_written_is_named(void **state) {
    (void)state;
    mr_trace *trace = sample_race();
    fails(trace, NULL, path_of("no/such/folder.html"), "No such file or directory");
    fails(trace, NULL, path_of("t.svg/below.html"), "Not a directory");
    mkdir(path_of("is_a_folder.html"), 0700);
    fails(trace, NULL, path_of("is_a_folder.html"), "it is a folder");
    rmdir(path_of("is_a_folder.html"));
    mkdir(path_of("locked"), 0500);
    if (access(path_of("locked"), W_OK) != 0)
        fails(trace, NULL, path_of("locked/t.html"), "Permission denied");
    rmdir(path_of("locked"));
    mr_trace_release(trace);
}

/* A limit on the size of files stands for a disk that is full. */
static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    mr_trace *trace = sample_dense(20000);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    for (size_t i = 0; i < ENDING_COUNT; i++) {
        if (i == 2) continue; /* a picture is small, however many spans there are */
        char name[32];
        snprintf(name, sizeof name, "full.%s", endings[i]);
        FILE *file = fopen(path_of(name), "wb");
        fputs("old", file);
        fclose(file);
        int files = files_in_folder();

        small = old;
        small.rlim_cur = 50000;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        fails(trace, NULL, path_of(name), "File too large");
        setrlimit(RLIMIT_FSIZE, &old);

        char *text = read_file(path_of(name));
        assert_string_equal(text, "old");
        free(text);
        assert_int_equal(files_in_folder(), files);
        unlink(path_of(name));
    }
    if (symlink("/dev/full", path_of("device.json")) == 0)
        fails(trace, NULL, path_of("device.json"), "No space left on device");
    unlink(path_of("device.json"));
    mr_trace_release(trace);
}

static void links_and_permissions_stay(void **state) {
    (void)state;
    mr_trace *trace = sample_race();
    struct stat facts;
    mode_t mask = umask(022);
    must(mr_trace_save(trace, NULL, path_of("fresh.csv"), NULL, NULL));
    stat(path_of("fresh.csv"), &facts);
    assert_int_equal(facts.st_mode & 0777, 0644);
    chmod(path_of("fresh.csv"), 0600);
    assert_int_equal(symlink("fresh.csv", path_of("link.csv")), 0);
    must(mr_trace_save(trace, NULL, path_of("link.csv"), NULL, NULL));
    lstat(path_of("link.csv"), &facts);
    assert_true(S_ISLNK(facts.st_mode));
    stat(path_of("fresh.csv"), &facts);
    assert_int_equal(facts.st_mode & 0777, 0600);
    umask(mask);
    unlink(path_of("link.csv"));
    unlink(path_of("fresh.csv"));
    mr_trace_release(trace);
}

/* ---- sources */

static const char *source(void *context, const char *file, size_t *out_size) {
    (void)context;
    static const char text[] = "local a = 1 -- \0 </script>\n\xff\n";
    if (strcmp(file, "race.lua") != 0) return NULL;
    *out_size = sizeof text - 1;
    return text;
}

static void a_script_is_text_in_the_page(void **state) {
    (void)state;
    mr_trace *trace = sample_race();
    must(mr_trace_save(trace, NULL, path_of("t.html"), source, NULL));
    char *text = read_file(path_of("t.html"));
    assert_non_null(strstr(text, "local a = 1 --   \\u003c/script\\u003e\\n\xef\xbf\xbd\\n"));
    free(text);
    mr_trace_release(trace);
}

/* ---- */

static int open_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/millrace_writers_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int close_folder(void **state) {
    (void)state;
    DIR *list = opendir(folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (entry->d_name[0] != '.') unlink(path_of(entry->d_name));
    closedir(list);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_span_is_in_one_bar_and_no_bars_overlap),
        cmocka_unit_test(lanes_know_how_long_they_were_busy),
        cmocka_unit_test(lines_are_no_wider_than_the_terminal),
        cmocka_unit_test(ascii_is_ascii_and_only_colour_escapes),
        cmocka_unit_test(a_gap_is_named_by_its_cause),
        cmocka_unit_test(each_rank_has_a_host_and_streams_of_its_own),
        cmocka_unit_test(two_traces_share_an_axis),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(texts_cannot_end_what_they_are_in),
        cmocka_unit_test(nothing_is_lost_between_buffers),
        cmocka_unit_test(every_sample_is_written_in_every_format),
        cmocka_unit_test(other_endings_are_refused),
        cmocka_unit_test(a_place_that_cannot_be_written_is_named),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(links_and_permissions_stay),
        cmocka_unit_test(a_script_is_text_in_the_page),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
