/* Traces made by hand, for tests of readers and writers of traces. They come from a small machine whose times follow
 * from its rules, without a script, a stream of the model or a backend. */
#ifndef TRACE_SAMPLES_H
#define TRACE_SAMPLES_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/builder.h"

#define SAMPLE_STREAMS 16
#define CALL_TIME      3000 /* nanoseconds that the host takes for a call */
#define SCRIPT         "pipeline.lua"

typedef struct {
    mr_trace_builder *builder;
    const char *file;
    uint64_t host; /* its clock */
    uint16_t rank; /* whose host it is, from 1 */
    uint32_t count, stream_count;
    uint64_t engine_end[8]; /* by mr_engine: copy engines do one copy at a time */
    uint32_t engine_last[8];
    struct {
        uint64_t end; /* of its last work, or the wait behind it */
        uint32_t holder;
        uint32_t wait; /* the span that made `end` what it is, if that was a wait */
        bool by_event;
    } streams[SAMPLE_STREAMS];
    uint64_t record_at[1 << 12]; /* by span, of the first ones */
} sample;

static inline void must(mr_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", status->message);
    abort();
}

static inline sample *sample_begin(const char *file) {
    sample *s = calloc(1, sizeof *s);
    must(mr_trace_builder_create(&s->builder));
    s->file = mr_trace_builder_text(s->builder, file);
    return s;
}

static inline uint32_t sample_stream(sample *s, const char *name) {
    uint32_t index;
    must(mr_trace_builder_stream(s->builder,
                                 &(mr_trace_stream){
                                     .name = mr_trace_builder_text(s->builder, name),
                                     .id = ++s->stream_count,
                                 },
                                 &index));
    return index;
}

static inline mr_span sample_call(sample *s, mr_command_id kind, uint32_t stream, const char *name,
                                  int line) {
    mr_span span = {
        .kind = kind,
        .name = mr_trace_builder_text(s->builder, name),
        .where = {s->file, line},
        .seq = s->count + 1,
        .stream = stream,
        .called = true,
        .host = s->rank,
        .call = s->host,
        .returned = s->host + CALL_TIME,
        .record = MR_TRACE_NONE,
        .holder = MR_TRACE_NONE,
    };
    s->host += CALL_TIME;
    return span;
}

static inline uint32_t sample_push(sample *s, const mr_span *span) {
    must(mr_trace_builder_span(s->builder, span));
    return s->count++;
}

/* Work of `duration` on an engine; a copy waits for its engine, too. */
static inline uint32_t sample_work(sample *s, uint32_t stream, const char *name, mr_engine engine,
                                   uint64_t duration, int line) {
    bool is_copy = engine != MR_ENGINE_SM;
    mr_span span = sample_call(s, is_copy ? MR_COMMAND_COPY : MR_COMMAND_OP, stream, name, line);
    span.engine = engine;
    span.ran = true;
    span.bytes = duration * 50;
    span.blocks = is_copy ? 0 : 132;
    span.ready = span.call;
    if (s->streams[stream].end > span.ready) {
        span.ready = s->streams[stream].end;
        span.held_by = s->streams[stream].by_event ? MR_CAUSE_EVENT : MR_CAUSE_STREAM;
        span.holder =
            s->streams[stream].by_event ? s->streams[stream].wait : s->streams[stream].holder;
    } else span.held_by = MR_CAUSE_HOST;
    span.begin = span.ready;
    if (is_copy && s->engine_end[engine] > span.begin) {
        span.begin = s->engine_end[engine];
        span.held_by = MR_CAUSE_COPY_ENGINE;
        span.holder = s->engine_last[engine];
    }
    span.end = span.begin + duration;
    uint32_t index = sample_push(s, &span);
    s->streams[stream].end = s->engine_end[engine] = span.end;
    s->streams[stream].holder = s->engine_last[engine] = index;
    s->streams[stream].by_event = false;
    return index;
}

static inline uint32_t sample_op(sample *s, uint32_t stream, const char *name, uint64_t duration,
                                 int line) {
    return sample_work(s, stream, name, MR_ENGINE_SM, duration, line);
}

static inline uint32_t sample_record(sample *s, uint32_t stream, const char *event, int line) {
    mr_span span = sample_call(s, MR_COMMAND_RECORD, stream, "record_event", line);
    span.object = mr_trace_builder_text(s->builder, event);
    span.ran = true;
    span.ready = span.begin = span.end =
        s->streams[stream].end > span.call ? s->streams[stream].end : span.call;
    if (s->count < sizeof s->record_at / sizeof *s->record_at) s->record_at[s->count] = span.end;
    return sample_push(s, &span);
}

static inline uint32_t sample_wait(sample *s, uint32_t stream, uint32_t record, const char *event,
                                   int line) {
    mr_span span = sample_call(s, MR_COMMAND_WAIT, stream, "wait_event", line);
    span.object = mr_trace_builder_text(s->builder, event);
    span.record = record;
    span.ran = true;
    uint64_t end = s->streams[stream].end > span.call ? s->streams[stream].end : span.call;
    if (s->record_at[record] > end) {
        end = s->record_at[record];
        s->streams[stream].by_event = true;
        s->streams[stream].wait = s->count;
        span.held_by = MR_CAUSE_EVENT;
        span.holder = record;
    }
    span.ready = span.begin = span.end = s->streams[stream].end = end;
    return sample_push(s, &span);
}

/* The host waits for a stream, or (MR_TRACE_NONE) for all. */
static inline uint32_t sample_synchronize(sample *s, uint32_t stream, int line) {
    mr_span span =
        sample_call(s, stream == MR_TRACE_NONE ? MR_COMMAND_DEVICE_SYNC : MR_COMMAND_STREAM_SYNC,
                    stream, "synchronize", line);
    for (uint32_t i = 0; i < SAMPLE_STREAMS; i++)
        if ((i == stream || stream == MR_TRACE_NONE) && s->streams[i].end > span.returned)
            span.returned = s->streams[i].end;
    span.host_waited = true;
    s->host = span.returned;
    return sample_push(s, &span);
}

static inline mr_trace *sample_end(sample *s) {
    mr_trace *trace;
    must(mr_trace_builder_finish(s->builder,
                                 &(mr_trace_facts){
                                     .backend = "virtual",
                                     .device = "NVIDIA H200 (virtual)",
                                     .model = "h200",
                                     .chooser = "timed",
                                     .how = "the virtual GPU's clock: exact, the same in each run",
                                     .script = s->file,
                                     .device_count = 1,
                                 },
                                 &trace));
    free(s);
    return trace;
}

/* ---- the samples */

/* Batches go in, are computed and go out; with one stream, or with three. */
static inline mr_trace *sample_pipeline(bool one_stream, int batches) {
    sample *s = sample_begin(SCRIPT);
    uint32_t copy = sample_stream(s, "copy"), compute = copy, back = copy;
    if (!one_stream) {
        compute = sample_stream(s, "compute");
        back = sample_stream(s, "results");
    }
    uint32_t freed[2] = {MR_TRACE_NONE, MR_TRACE_NONE};
    for (int i = 0; i < batches; i++) {
        if (!one_stream && freed[i % 2] != MR_TRACE_NONE)
            sample_wait(s, copy, freed[i % 2], "free", 8);
        sample_work(s, copy, "copy_", MR_ENGINE_COPY_IN, 300000, 9);
        if (!one_stream) {
            uint32_t full = sample_record(s, copy, "full", 10);
            sample_wait(s, compute, full, "full", 12);
        }
        sample_op(s, compute, "matmul", 420000, 13);
        sample_op(s, compute, "relu_", 60000, 14);
        if (!one_stream) {
            freed[i % 2] = sample_record(s, compute, "free", 15);
            sample_wait(s, back, freed[i % 2], NULL, 16);
        }
        sample_work(s, back, "copy_", MR_ENGINE_COPY_OUT, 150000, 17);
    }
    sample_synchronize(s, MR_TRACE_NONE, 19);
    return sample_end(s);
}

/* A sum that does not wait for what it sums, and the hazard that was reported of it. */
static inline mr_trace *sample_race(void) {
    sample *s = sample_begin("race.lua");
    uint32_t producer = sample_stream(s, "producer"), consumer = sample_stream(s, "consumer");
    sample_op(s, producer, "spin", 1000000, 5);
    uint32_t fill = sample_op(s, producer, "fill_", 40000, 6);
    uint32_t sum = sample_op(s, consumer, "sum", 300000, 8);
    sample_synchronize(s, consumer, 9);
    must(mr_trace_builder_hazard(
        s->builder,
        &(mr_trace_hazard){fill, sum, "read-after-write",
                           "sum reads x on stream `consumer` and nothing orders it after fill_",
                           "consumer:wait_stream(producer)"}));
    return sample_end(s);
}

/* Names and files as nobody would write them, unless to break a page. */
static const char *const hostile_texts[] = {
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "<!--",
    "]]>",
    "\"quotes\" 'single' `back` \\backslash",
    "comma, semicolon; and\ttab",
    "two\nlines\r\nof it",
    "\x01\x02\x1b[31mred\x1b[0m\x7f",
    "not \xff\xfe UTF-8 \xc3",
    "\xe2\x80\xa8separators\xe2\x80\xa9 \xef\xbf\xbe \xf0\x9f\x8c\x8a",
    "",
    "=1+1",
    "&lt;already&gt; &amp; ${x} {{x}}",
    "a name that is much longer than any bar could ever be drawn, and then some more of it",
};
#define HOSTILE_COUNT (int)(sizeof hostile_texts / sizeof *hostile_texts)

static inline mr_trace *sample_hostile(void) {
    sample *s = sample_begin("</script><b>&\"'.lua");
    uint32_t streams[HOSTILE_COUNT], record = 0;
    for (int i = 0; i < HOSTILE_COUNT; i++) streams[i] = sample_stream(s, hostile_texts[i]);
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        if (i) sample_wait(s, streams[i], record, hostile_texts[i - 1], 1 + i);
        sample_op(s, streams[i], hostile_texts[i], 200000, 1 + i);
        record = sample_record(s, streams[i], hostile_texts[i], 1 + i);
    }
    must(mr_trace_builder_hazard(
        s->builder,
        &(mr_trace_hazard){1, 4, hostile_texts[0], hostile_texts[1], hostile_texts[6]}));
    sample_synchronize(s, MR_TRACE_NONE, 20);
    return sample_end(s);
}

static inline mr_trace *sample_empty(void) {
    return sample_end(sample_begin(SCRIPT));
}

/* Two ranks that call at the same times, each with a stream `copy` of one device. */
static inline mr_trace *sample_ranks(void) {
    sample *s = sample_begin("ranks.lua");
    uint32_t streams[] = {sample_stream(s, "copy"), sample_stream(s, "copy")};
    sample_work(s, streams[0], "begin", MR_ENGINE_COPY_IN, 20000, 2);
    uint64_t began = s->host;
    for (uint16_t rank = 1; rank <= 2; rank++) {
        s->rank = rank;
        s->host = began + 1000u * rank;
        for (int i = 0; i < 3; i++) sample_op(s, streams[rank - 1], "mul_", 300000, 5 + i);
        sample_synchronize(s, streams[rank - 1], 9);
    }
    s->rank = 0;
    return sample_end(s);
}

/* `count` operations on eight streams, short and long ones, with a record and a wait now and then. */
static inline mr_trace *sample_dense(size_t count) {
    sample *s = sample_begin("dense.lua");
    static const char *const names[] = {"add_", "mul_", "matmul", "relu_", "softmax"};
    uint32_t streams[8], random = 1;
    char name[32];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "stream %d", i + 1);
        streams[i] = sample_stream(s, name);
    }
    while (s->count < count) {
        random = random * 1664525u + 1013904223u;
        uint32_t k = random >> 16, stream = streams[k % 8];
        if (k % 61 == 0 && s->count < sizeof s->record_at / sizeof *s->record_at) {
            uint32_t record = sample_record(s, stream, "step", 30);
            sample_wait(s, streams[(k + 3) % 8], record, "step", 31);
        } else if (k % 7 == 0)
            sample_work(s, stream, "copy_", k % 2 ? MR_ENGINE_COPY_IN : MR_ENGINE_COPY_OUT,
                        1000 + k % 9000, 10 + (int)(k % 5));
        else sample_op(s, stream, names[k % 5], 2000 + k % 40000, 20 + (int)(k % 5));
    }
    sample_synchronize(s, MR_TRACE_NONE, 40);
    return sample_end(s);
}

/* Spans anywhere on two streams: some overlap within a stream, as measured times may, and some are empty. */
static inline mr_trace *sample_random(unsigned seed, int count, uint64_t most) {
    sample *s = sample_begin("random.lua");
    uint32_t streams[] = {sample_stream(s, "a"), sample_stream(s, "b")};
    srand(seed);
    for (int i = 0; i < count; i++) {
        mr_span span = sample_call(s, MR_COMMAND_OP, streams[rand() % 2], i % 3 ? "f" : "g", i % 7);
        span.engine = rand() % 3 ? MR_ENGINE_SM : MR_ENGINE_COPY_IN;
        if (rand() % 8 == 0) {
            span.kind = MR_COMMAND_WAIT;
            span.engine = MR_ENGINE_NONE;
            if (i) span.record = (uint32_t)(rand() % i);
        }
        span.ran = rand() % 10 != 0;
        span.ready = span.begin = (uint64_t)rand() % most;
        span.end = span.begin + (rand() % 3 ? (uint64_t)rand() % 50 : (uint64_t)rand() % most);
        span.host_waited = rand() % 20 == 0;
        span.held_by = (mr_cause)(rand() % (MR_CAUSE_CHOOSER + 1));
        span.holder = i ? (uint32_t)(rand() % i) : MR_TRACE_NONE;
        sample_push(s, &span);
    }
    return sample_end(s);
}

#endif
