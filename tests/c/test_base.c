/* The ground floor: errors, strings that grow, interned strings, texts of scripts, slabs, Philox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/name.h"
#include "base/philox.h"
#include "base/slab.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vec.h"

static void codes_have_texts_and_numbers(void **state) {
    (void)state;
    mr_code code;
    for (int i = 0; i < MR_CODE_COUNT; i++) {
        assert_true(mr_code_find(mr_code_text((mr_code)i), &code));
        mr_code first_of_the_text = i == MR_CODE_STOPPED   ? MR_CODE_INTERRUPTED
                                    : i == MR_CODE_NO_PEER ? MR_CODE_DEADLOCK
                                                           : (mr_code)i;
        assert_int_equal(code, first_of_the_text);
    }
    assert_false(mr_code_find("no-such-code", &code));
    assert_int_equal(mr_code_number(MR_CODE_ILLEGAL_ADDRESS), 700);
    assert_true(mr_code_sticky(MR_CODE_ILLEGAL_ADDRESS));
    assert_false(mr_code_sticky(MR_CODE_OUT_OF_MEMORY));
}

static void errors_are_copied_whole(void **state) {
    (void)state;
    mr_status error = mr_fail(MR_CODE_ASSERT, "%d of %s", 3, "four");
    assert_string_equal(error->message, "3 of four");
    strcpy(error->op, "gather");
    strcpy(error->stream, "stream #2");
    error->where = (mr_site){"a.lua", 7};
    mr_status copy = mr_error_copy(error);
    mr_error_destroy(error);
    assert_int_equal(copy->code, MR_CODE_ASSERT);
    assert_string_equal(copy->message, "3 of four");
    assert_string_equal(copy->op, "gather");
    assert_string_equal(copy->stream, "stream #2");
    assert_int_equal(copy->where.line, 7);
    mr_error_destroy(copy);
}

static void the_first_error_wins(void **state) {
    (void)state;
    mr_status first = mr_fail(MR_CODE_UNKNOWN, "first");
    mr_status kept = mr_error_first(first, mr_fail(MR_CODE_UNKNOWN, "second"));
    assert_ptr_equal(kept, first);
    assert_ptr_equal(mr_error_first(kept, MR_OK), first);
    assert_ptr_equal(mr_error_first(MR_OK, first), first);
    mr_error_destroy(first);
    mr_error_destroy(MR_OK);
}

static void buffers_grow(void **state) {
    (void)state;
    mr_buffer buffer = {0};
    for (int i = 0; i < 1000; i++) mr_buffer_printf(&buffer, "%d,", i);
    mr_buffer_puts(&buffer, "end");
    mr_buffer_add(&buffer, "", 0);
    assert_int_equal(buffer.size, strlen(buffer.data));
    assert_memory_equal(buffer.data, "0,1,2,", 6);
    assert_string_equal(buffer.data + buffer.size - 7, "999,end");
    mr_buffer_free(&buffer);
    assert_null(buffer.data);
}

static void equal_strings_are_one(void **state) {
    (void)state;
    mr_interned table = {0}, other = {0};
    const char *known[500];
    char text[32];
    for (int i = 0; i < 500; i++) {
        int size = snprintf(text, sizeof text, "name%d", i);
        known[i] = mr_intern(&table, text, (size_t)size, "?");
        assert_string_equal(known[i], text);
    }
    for (int i = 0; i < 500; i++) {
        int size = snprintf(text, sizeof text, "name%d", i);
        assert_ptr_equal(mr_intern(&table, text, (size_t)size, "?"), known[i]);
    }
    const char *whole = mr_intern(&table, "name1", 5, "?");
    assert_ptr_not_equal(whole, mr_intern(&table, "name1", 4, "?")); /* a prefix is another */
    assert_ptr_not_equal(whole, mr_intern(&other, "name1", 5, "?")); /* tables share nothing */
    assert_string_equal(mr_intern(&table, "", 0, "?"), "");
    mr_interned_free(&table);
    mr_interned_free(&other);
}

static void interned_strings_are_bounded(void **state) {
    (void)state;
    mr_interned table = {0};
    char text[32];
    for (int i = 0; i < MR_MOST_INTERNED + 1000; i++) {
        int size = snprintf(text, sizeof text, "name%d", i);
        const char *kept = mr_intern(&table, text, (size_t)size, "?");
        assert_string_equal(kept, i < MR_MOST_INTERNED ? text : "?");
    }
    assert_string_equal(mr_intern(&table, "name7", 5, "?"), "name7");
    assert_int_equal(table.texts.count, MR_MOST_INTERNED);
    mr_interned_free(&table);
}

static void names_are_counted(void **state) {
    (void)state;
    mr_name *a = mr_name_new("alpha beta", 5), *kept = NULL;
    assert_string_equal(mr_name_text(a), "alpha");
    assert_null(mr_name_text(NULL));
    mr_name_keep(&kept, a);
    mr_name_keep(&kept, a);
    assert_int_equal(a->refs, 2);
    mr_name_release(a);
    assert_string_equal(kept->text, "alpha"); /* the other reference keeps it */
    mr_name_keep(&kept, NULL);
    assert_null(kept);
    assert_null(mr_name_retain(NULL));
    mr_name_release(NULL);
}

static void assert_put(void (*put)(mr_buffer *, const char *), const char *text,
                       const char *expected) {
    mr_buffer out = {0};
    put(&out, text);
    assert_string_equal(out.data ? out.data : "", expected);
    mr_buffer_free(&out);
}

static void texts_are_escaped_for_their_reader(void **state) {
    (void)state;
    assert_put(mr_text_put, "plain \"\\\" \xe2\x82\xac", "plain \"\\\" \xe2\x82\xac");
    assert_put(mr_text_put, "a\nb\r\t\x1b[31m\x7f", "a\\nb\\r\\t\\x1b[31m\\x7f");
    assert_put(mr_text_put, "\xc2\x9b|\xe2\x80\xa8", "\\u{9b}|\\u{2028}");
    assert_put(mr_text_put, "\xff|\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82",
               "\\xff|\\xc0\\x80|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82");
    assert_int_equal(mr_text_width("\xe2\x82\xac\n"), 3);
    assert_put(mr_text_put_value, "race.lua:3", "race.lua:3");
    assert_put(mr_text_put_value, "", "\"\"");
    assert_put(mr_text_put_value, "a b", "\"a b\"");
    assert_put(mr_text_put_value, "a\"\\\n", "\"a\\\"\\\\\\n\"");
    assert_put(mr_text_put_json, "a\"\\\n\x01\x7f\xff",
               "\"a\\\"\\\\\\n\\u0001\\u007f\xef\xbf\xbd\"");
    assert_put(mr_text_put_json, "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
}

static void texts_are_cut_between_characters(void **state) {
    (void)state;
    char out[12];
    mr_text_copy(out, sizeof out, "elevenbytes");
    assert_string_equal(out, "elevenbytes");
    mr_text_copy(out, sizeof out, "twelve bytes");
    assert_string_equal(out, "twelve b...");
    mr_text_copy(out, sizeof out, "x\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    assert_string_equal(out, "x\xe2\x82\xac\xe2\x82\xac...");
    mr_text_copy_end(out, sizeof out, "elevenbytes");
    assert_string_equal(out, "elevenbytes");
    mr_text_copy_end(out, sizeof out, "/long/path/f.lua");
    assert_string_equal(out, "...th/f.lua");
    mr_text_copy_end(out, sizeof out, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac.lua");
    assert_string_equal(out, "...\xe2\x82\xac.lua");
    mr_text_format(out, sizeof out, "%s by %d", "ab", 12);
    assert_string_equal(out, "ab by 12");
    mr_text_format(out, sizeof out, "`%s`", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    assert_string_equal(out, "`\xe2\x82\xac\xe2\x82\xac...");
}

static void slabs_reuse_and_align(void **state) {
    (void)state;
    mr_slab slab;
    void *objects[100];
    mr_slab_init(&slab, 40, 16);
    for (int i = 0; i < 100; i++) {
        objects[i] = mr_slab_alloc(&slab);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], i, 40);
    }
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 40; j++) assert_int_equal(((unsigned char *)objects[i])[j], i);
    assert_int_equal(slab.live, 100);
    mr_slab_free(&slab, objects[7]);
    assert_ptr_equal(mr_slab_alloc(&slab), objects[7]);
    mr_slab_destroy(&slab);
}

static void vectors_grow(void **state) {
    (void)state;
    MR_VEC(int) numbers = {0};
    for (int i = 0; i < 1000; i++) assert_true(mr_vec_push(&numbers, i * i));
    assert_int_equal(numbers.count, 1000);
    for (int i = 999; i >= 0; i--) assert_int_equal(mr_vec_pop(&numbers), i * i);
    mr_vec_free(&numbers);
}

/* The known-answer vectors that the authors of Philox publish for philox4x32, 10 rounds. */
static void philox_gives_the_published_numbers(void **state) {
    (void)state;
    static const struct {
        uint64_t seed, offset, counter;
        uint32_t out[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        mr_philox_block block = mr_philox(known[i].seed, known[i].offset, known[i].counter);
        assert_memory_equal(block.v, known[i].out, sizeof block.v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_texts_and_numbers),
        cmocka_unit_test(errors_are_copied_whole),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(buffers_grow),
        cmocka_unit_test(equal_strings_are_one),
        cmocka_unit_test(interned_strings_are_bounded),
        cmocka_unit_test(names_are_counted),
        cmocka_unit_test(texts_are_escaped_for_their_reader),
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(slabs_reuse_and_align),
        cmocka_unit_test(vectors_grow),
        cmocka_unit_test(philox_gives_the_published_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
