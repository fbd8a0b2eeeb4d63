/* Traces of several processes as one: what becomes of stand-ins, collectives and clocks; and bytes that are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/meeting.h"
#include "trace/builder.h"
#include "trace/record/join.h"

enum { RANKS = 2 };

static mr_span span_of(const char *name, uint64_t seq, uint16_t host, uint32_t stream,
                       uint64_t at) {
    return (mr_span){.kind = MR_COMMAND_OP,
                     .engine = MR_ENGINE_SM,
                     .name = name,
                     .where = {.file = "train.lua", .line = (int)seq},
                     .seq = seq,
                     .stream = stream,
                     .device = host - 1,
                     .host = host,
                     .called = true,
                     .ran = true,
                     .call = at,
                     .returned = at + 1,
                     .ready = at + 2,
                     .begin = at + 2,
                     .end = at + 5,
                     .record = MR_TRACE_NONE,
                     .holder = MR_TRACE_NONE};
}

static void add(mr_trace_builder *builder, mr_span span) {
    const mr_trace_access access = {.memory = 3, .end = 8, .name = "x", .writes = true};
    assert_null(mr_trace_builder_span(builder, &span));
    assert_null(mr_trace_builder_access(builder, &access));
}

/* The trace of rank `own` of two: its operation, a collective in which it is late, and one behind it. */
static mr_trace *trace_of(uint32_t own, uint64_t began) {
    mr_trace_builder *builder;
    mr_trace *trace;
    uint32_t streams[RANKS];
    assert_null(mr_trace_builder_create(&builder));
    for (int k = 0; k < RANKS; k++) {
        const mr_trace_stream stream = {.name = k ? "one" : "zero", .device = k};
        assert_null(mr_trace_builder_stream(builder, &stream, &streams[k]));
    }
    add(builder, span_of("before", 10, (uint16_t)(own + 1), streams[own], 100 * (own + 1)));
    for (uint16_t k = 0; k < RANKS; k++) {
        mr_span member = span_of("all_reduce", 11u + k, (uint16_t)(k + 1), streams[k], 400);
        member.meeting = 11;
        member.holder = k == own ? 2u - own : 0; /* the other member; or nothing of interest */
        add(builder, member);
    }
    mr_span last = span_of("behind", 20, (uint16_t)(own + 1), streams[own], 500);
    last.holder = 1 + own;
    add(builder, last);
    const mr_trace_hazard hazard = {0, 3, "read-after-write", "text", "fix"};
    assert_null(mr_trace_builder_hazard(builder, &hazard));
    const mr_trace_facts facts = {.backend = "virtual", .script = "train.lua", .began = began};
    assert_null(mr_trace_builder_finish(builder, &facts, &trace));
    return trace;
}

static void make_bytes(mr_buffer *bytes) {
    for (uint32_t k = 0; k < RANKS; k++) {
        mr_trace *trace = trace_of(k, 1000 - 50 * k);
        assert_null(mr_trace_to_bytes(trace, k, &bytes[k]));
        mr_trace_release(trace);
    }
}

static void of_each_rank_its_own(void **state) {
    static const struct {
        const char *name;
        uint16_t host;
        uint64_t call, meeting;
        uint32_t holder;
    } expected[] = {{"before", 1, 150, 0, MR_TRACE_NONE},
                    {"before", 2, 200, 0, MR_TRACE_NONE},
                    {"all_reduce", 1, 450, 3, 3},
                    {"all_reduce", 2, 400, 3, 2},
                    {"behind", 2, 500, 0, 3},
                    {"behind", 1, 550, 0, 2}};
    mr_buffer bytes[RANKS] = {{0}};
    mr_trace *trace;
    (void)state;
    make_bytes(bytes);
    mr_trace_bytes parts[] = {{bytes[0].data, bytes[0].size}, {bytes[1].data, bytes[1].size}};
    assert_null(mr_trace_join(parts, RANKS, &trace));
    assert_int_equal(mr_trace_count(trace), 6);
    for (size_t i = 0; i < 6; i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        assert_string_equal(span->name, expected[i].name);
        assert_string_equal(span->where.file, "train.lua");
        assert_int_equal(span->host, expected[i].host);
        assert_int_equal(span->call, expected[i].call);
        assert_int_equal(span->end, expected[i].call + 5);
        assert_int_equal(span->meeting, expected[i].meeting);
        assert_int_equal(span->holder, expected[i].holder);
        assert_int_equal(span->seq, i + 1);
        assert_int_equal(span->access_count, 1);
        assert_int_equal(mr_trace_stream_at(trace, span->stream)->device, span->host - 1);
        assert_string_equal(mr_trace_accesses(trace, span)->name, "x");
        assert_true(mr_trace_accesses(trace, span)->memory % MR_MEETING_MOST + 1 == span->host);
    }
    assert_int_equal(mr_trace_hazard_count(trace), RANKS);
    assert_int_equal(mr_trace_hazard_at(trace, 1)->first, 1);
    assert_int_equal(mr_trace_hazard_at(trace, 1)->second, 4);
    assert_int_equal(mr_trace_facts_of(trace)->ranks, RANKS);
    assert_int_equal(mr_trace_facts_of(trace)->began, 950);
    mr_trace_release(trace);
    for (int k = 0; k < RANKS; k++) mr_buffer_free(&bytes[k]);
}

static void without_a_rank(void **state) {
    mr_buffer bytes[RANKS] = {{0}};
    mr_trace *trace;
    (void)state;
    make_bytes(bytes);
    mr_trace_bytes parts[] = {{NULL, 0}, {bytes[1].data, bytes[1].size}};
    assert_null(mr_trace_join(parts, RANKS, &trace));
    assert_int_equal(mr_trace_count(trace), 3);
    mr_trace_release(trace);
    parts[0] = parts[1];
    mr_status status = mr_trace_join(parts, RANKS, &trace);
    assert_non_null(status);
    assert_non_null(strstr(status->message, "two timelines are of rank 1"));
    mr_error_destroy(status);
    status = mr_trace_join(parts, 0, &trace);
    assert_non_null(status);
    mr_error_destroy(status);
    for (int k = 0; k < RANKS; k++) mr_buffer_free(&bytes[k]);
}

#define HEAD 56 /* bytes: the counts that all else is found by */

/* They are refused, or give some trace. */
static void damaged_bytes(void **state) {
    mr_buffer bytes[RANKS] = {{0}};
    (void)state;
    make_bytes(bytes);
    for (size_t i = 0; i < bytes[1].size; i++) {
        mr_trace *trace;
        char *copy = malloc(bytes[1].size);
        assert_non_null(copy);
        memcpy(copy, bytes[1].data, bytes[1].size);
        mr_trace_bytes parts[] = {{bytes[0].data, bytes[0].size}, {copy, i}};
        mr_error_destroy(mr_trace_join(parts, RANKS, &trace));
        mr_trace_release(trace);
        parts[1].size = bytes[1].size;
        for (int bit = 0; bit < 8 && i < HEAD; bit++) {
            copy[i] ^= (char)(1 << bit);
            mr_error_destroy(mr_trace_join(parts, RANKS, &trace));
            mr_trace_release(trace);
            copy[i] ^= (char)(1 << bit);
        }
        free(copy);
    }
    for (int k = 0; k < RANKS; k++) mr_buffer_free(&bytes[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_each_rank_its_own),
                                       cmocka_unit_test(without_a_rank),
                                       cmocka_unit_test(damaged_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
