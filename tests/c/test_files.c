/* Files of tensors that are damaged in every way. Nothing crashes or leaks (this runs under the sanitizers). No more
 * memory is wanted than the file has bytes for, and accepted tensors lie inside the file. */
#include "fake_backend.h"

#include <stdio.h>
#include <unistd.h>

#include "files/files.h"
#include "files/json.h"

static char path[2][64];
static const char *const endings[] = {".npy", ".safetensors"};

static int make_paths(void **state) {
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "/tmp/millrace-files-%d%s", (int)getpid(), endings[i]);
    return open_machine(state);
}

static int remove_paths(void **state) {
    for (int i = 0; i < 2; i++) unlink(path[i]);
    return close_machine(state);
}

static void write_file(const char *at, const char *bytes, size_t size) {
    FILE *file = fopen(at, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static size_t read_file(const char *at, char *bytes, size_t size) {
    FILE *file = fopen(at, "rb");
    assert_non_null(file);
    size_t got = fread(bytes, 1, size, file);
    fclose(file);
    assert_true(got < size);
    return got;
}

/* Opens and reads; true: it was accepted, and then everything in it is sound. */
static bool try_file(const char *at, size_t size) {
    mr_tensor_file file;
    mr_status status = mr_tensor_file_open(at, &file);
    if (status) {
        assert_int_equal(status->code, MR_CODE_INVALID_ARGUMENT);
        assert_null(strchr(status->message, '\n'));
        assert_int_equal(file.tensors.count, 0);
        mr_error_destroy(status);
        return false;
    }
    for (size_t i = 0; i < file.tensors.count; i++) {
        const mr_file_tensor *t = &file.tensors.items[i];
        int64_t numel;
        assert_true(t->ndim <= MR_MAX_DIMS);
        expect_ok(mr_shape_numel(t->ndim, t->shape, &numel));
        assert_int_equal((uint64_t)numel * mr_dtype_size(t->dtype), t->bytes);
        assert_true(t->offset <= size && t->bytes <= size - t->offset);
        char *memory = malloc(t->bytes + 1);
        expect_ok(mr_tensor_file_read(&file, t, memory));
        free(memory);
    }
    mr_tensor_file_close(&file);
    mr_tensor_file_close(&file);
    return true;
}

/* Good files, one of each format, in `bytes`. */
static size_t good_file(int which, char *bytes, size_t size) {
    mr_tensor *a = make(MR_F32, SHAPE(2, 3)), *b = make(MR_BOOL, SHAPE(4)),
              *c = make(MR_I64, SHAPE(0));
    for (int64_t i = 0; i < 6; i++) set(a, i, real((double)i));
    for (int64_t i = 0; i < 4; i++) set(b, i, whole(i % 2));
    mr_named_tensor tensors[] = {{"weight", a}, {"caf\xc3\xa9 \"x\"", b}, {"none", c}};
    mr_file_note note = {(char *)"format", (char *)"pt"};
    expect_ok(mr_tensor_file_save(path[which], tensors, which ? 3 : 1, &note, which ? 1 : 0));
    drop(a), drop(b), drop(c);
    return read_file(path[which], bytes, size);
}

static void every_prefix_is_refused(void **state) {
    (void)state;
    char good[4096];
    for (int which = 0; which < 2; which++) {
        size_t size = good_file(which, good, sizeof good);
        assert_true(try_file(path[which], size));
        for (size_t cut = 0; cut < size; cut++) {
            write_file(path[which], good, cut);
            assert_false(try_file(path[which], cut));
        }
    }
}

static uint32_t draw(size_t below) {
    return (uint32_t)random_below((int64_t)below);
}

/* Pieces of a header, put where they do not belong. */
static const char *const scraps[] = {"{",     "}",
                                     "[",     "]",
                                     "\"",    "'",
                                     ",",     ":",
                                     "(",     ")",
                                     "-1",    "0",
                                     "1e9",   "True",
                                     "false", "\\u0000",
                                     "\\u",   "\\ud800",
                                     "<f8",   "|O",
                                     "F64",   "BF16",
                                     "\xff",  "9223372036854775807",
                                     "L",     "null",
                                     "shape", "dtype",
                                     "4096",  "__metadata__",
                                     "\\",    "2305843009213693952"};

/* Changes a few bytes: bits, bytes, scraps of headers over them, and pieces moved, doubled or left out. */
static size_t damage(char *bytes, size_t size, size_t room) {
    for (uint32_t times = 1 + draw(4); times > 0 && size > 16; times--) {
        size_t at = draw(size);
        const char *scrap = scraps[draw(sizeof scraps / sizeof *scraps)];
        size_t length = strlen(scrap), piece = 1 + draw(8);
        switch (draw(6)) {
        case 0: bytes[at] ^= (char)(1 << draw(8)); break;
        case 1: bytes[at] = (char)draw(256); break;
        case 2: memcpy(bytes + at, scrap, at + length <= size ? length : size - at); break;
        case 3: /* inserted */
            if (size + length > room) break;
            memmove(bytes + at + length, bytes + at, size - at);
            memcpy(bytes + at, scrap, length);
            size += length;
            break;
        case 4: /* left out */
            if (at + piece > size) break;
            memmove(bytes + at, bytes + at + piece, size - at - piece);
            size -= piece;
            break;
        default: /* doubled */
            if (at + piece > size || size + piece > room) break;
            memmove(bytes + at + piece, bytes + at, size - at);
            size += piece;
        }
    }
    return size;
}

/* So that damage behind the length is seen by the parser of the header, and not by the check of the length only. */
static void mend_length(int which, char *bytes, size_t size) {
    size_t start = which ? 8 : 10, tail = which ? 28 : 24;
    if (size < start + tail) return;
    uint64_t header = size - start - tail;
    for (size_t i = 0; i < (which ? 8 : 2); i++)
        bytes[(which ? 0 : 8) + i] = (char)(header >> (8 * i));
}

static void damaged_files(void **state) {
    (void)state;
    static char good[4096], bytes[8192];
    for (int which = 0; which < 2; which++) {
        size_t size = good_file(which, good, sizeof good);
        int accepted = 0;
        for (int round = 0; round < 1500; round++) {
            memcpy(bytes, good, size);
            size_t damaged = damage(bytes, size, sizeof bytes);
            if (round % 4) mend_length(which, bytes, damaged);
            write_file(path[which], bytes, damaged);
            accepted += try_file(path[which], damaged);
        }
        assert_in_range(accepted, 1, 1450); /* neither everything nor nothing */
    }
}

/* ------------------------------------------------------------------------- JSON */

static bool is_value(const char *text) {
    mr_json j = {text, text, text + strlen(text), false};
    return mr_json_skip(&j) && j.at == j.end;
}

static void values_of_json(void **state) {
    (void)state;
    static const char *const good[] = {"0",
                                       "-0",
                                       "10.5e-3",
                                       "1E+2",
                                       "true",
                                       "null",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       " [ 1 , \"a\" ]",
                                       "{\"a\" : {\"b\":[[]]}}",
                                       "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\""};
    static const char *const bad[] = {"",
                                      "-",
                                      "01",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "tru",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\udc00\"",
                                      "\"\n\"",
                                      "\"\\u0000\"",
                                      "[",
                                      "[1,]",
                                      "[1 2]",
                                      "{1:2}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe9\"",
                                      "NaN",
                                      "'a'"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!is_value(good[i])) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_value(bad[i])) fail_msg("accepted: %s", bad[i]);
}

static void strings_of_json(void **state) {
    (void)state;
    const char *text = "\"\\u00e9\\ud83d\\ude00\\n\xc3\xbc\"";
    mr_json j = {text, text, text + strlen(text), false};
    char *out;
    assert_true(mr_json_string(&j, &out));
    assert_string_equal(out, "\xc3\xa9\xf0\x9f\x98\x80\n\xc3\xbc");
    free(out);
}

static void sizes_of_json(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"9223372036854775807", true, INT64_MAX},
                 {"9223372036854775808", false, 0},
                 {"-1", false, 0},
                 {"1.0", false, 0},
                 {"1e3", false, 0},
                 {"007", false, 0},
                 {" 42,", true, 42}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_json j = {cases[i].text, cases[i].text, cases[i].text + strlen(cases[i].text), false};
        int64_t value;
        assert_int_equal(mr_json_size(&j, &value), cases[i].good);
        if (cases[i].good) assert_int_equal(value, cases[i].value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_is_refused), cmocka_unit_test(damaged_files),
        cmocka_unit_test(values_of_json),          cmocka_unit_test(strings_of_json),
        cmocka_unit_test(sizes_of_json),
    };
    return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
