/* The trace-event format, which Perfetto and chrome://tracing open, in the words of PyTorch's profiler: what reads its
 * traces reads these. A process for the host and one for each device, a thread for each stream.
 *
 * Easiest to break: the slices of one thread must nest. A stream whose measured times overlap gets a second thread. */
#include "trace/draw/formats.h"

#include <stdlib.h>
#include <string.h>

#include "trace/draw/lanes.h"

/* Processes of devices have the devices' numbers. Rank k is the thread HOST + 1 + k of the host's process. */
#define HOST        9999
#define ROW_THREADS 100000 /* added to a stream's thread for each row of overlapping bars */

/* The driver's name for the request; NULL: no call of the driver. */
static const char *runtime_name(const mr_span *span) {
    switch (span->kind) {
    case MR_COMMAND_OP:
        return strncmp(span->name, "memset", 6) == 0 ? "cudaMemsetAsync" : "cudaLaunchKernel";
    case MR_COMMAND_COPY:
        return strcmp(span->name, "memcpy") == 0 ? "cudaMemcpy" : "cudaMemcpyAsync";
    case MR_COMMAND_RECORD: return "cudaEventRecord";
    case MR_COMMAND_WAIT: return "cudaStreamWaitEvent";
    case MR_COMMAND_HOST_FUNCTION: return "cudaLaunchHostFunc";
    case MR_COMMAND_ALLOC: return "cudaMallocAsync";
    case MR_COMMAND_FREE: return "cudaFreeAsync";
    case MR_COMMAND_STREAM_SYNC: return "cudaStreamSynchronize";
    case MR_COMMAND_EVENT_SYNC: return "cudaEventSynchronize";
    case MR_COMMAND_DEVICE_SYNC: return "cudaDeviceSynchronize";
    case MR_COMMAND_STREAM_QUERY: return "cudaStreamQuery";
    case MR_COMMAND_EVENT_QUERY: return "cudaEventQuery";
    case MR_COMMAND_STREAM_CREATE: return "cudaStreamCreateWithPriority";
    case MR_COMMAND_STREAM_CLOSE: return "cudaStreamDestroy";
    case MR_COMMAND_FAULT:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return NULL;
}

static const char *category(const mr_span *span) {
    switch (span->kind) {
    case MR_COMMAND_WAIT: return "cuda_sync";
    case MR_COMMAND_HOST_FUNCTION: return "host_function";
    case MR_COMMAND_COPY: return "gpu_memcpy";
    case MR_COMMAND_OP: return strncmp(span->name, "memset", 6) == 0 ? "gpu_memset" : "kernel";
    case MR_COMMAND_FAULT:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return "kernel";
}

/* The text that all events of a stream share, made once. */
typedef struct {
    char place[40]; /* "pid":0,"tid":7 */
    int device;
    uint32_t id;
} thread;

typedef struct {
    const mr_trace *trace;
    mr_sink *sink;
    thread *threads;
    bool is_first;
} chrome;

static void begin_event(chrome *c, const char *beginning) {
    mr_sink_text(c->sink, c->is_first ? "\n" : ",\n");
    c->is_first = false;
    mr_sink_text(c->sink, beginning);
}

static void begin_slice(chrome *c, const char *category_name, const char *name) {
    begin_event(c, "{\"ph\":\"X\",\"cat\":\"");
    mr_sink_text(c->sink, category_name);
    mr_sink_text(c->sink, "\",\"name\":");
    mr_sink_json(c->sink, name);
}

static uint32_t host_thread(int rank) {
    return (uint32_t)(HOST + 1 + rank);
}

static void put_host_place(const chrome *c, const mr_span *span) {
    mr_sink_format(c->sink, ",\"pid\":%d,\"tid\":%u", HOST,
                   host_thread(mr_trace_rank_of(c->trace, span)));
}

static void put_device_place(const chrome *c, const mr_span *span, int row) {
    const thread *t = &c->threads[span->stream];
    if (row == 0) mr_sink_text(c->sink, t->place);
    else
        mr_sink_format(c->sink, ",\"pid\":%d,\"tid\":%u", t->device,
                       t->id + (uint32_t)row * ROW_THREADS);
}

static void put_interval(mr_sink *sink, uint64_t begin, uint64_t end) {
    mr_sink_text(sink, ",\"ts\":");
    mr_sink_us(sink, begin);
    mr_sink_text(sink, ",\"dur\":");
    mr_sink_us(sink, end - begin);
}

static void put_count(mr_sink *sink, const char *key, uint64_t value) {
    mr_sink_text(sink, key);
    mr_sink_number(sink, value);
}

/* The file only where it is not the trace's: it would be a tenth of the whole. */
static void put_where(const chrome *c, mr_site where) {
    const char *script = mr_trace_facts_of(c->trace)->script;
    if (!where.file) return;
    if (where.file != script && (!script || strcmp(where.file, script) != 0)) {
        mr_sink_text(c->sink, ",\"file\":");
        mr_sink_json(c->sink, where.file);
    }
    mr_sink_text(c->sink, ",\"line\":");
    mr_sink_number(c->sink, (uint64_t)where.line);
}

/* ---- events */

static void write_call(chrome *c, const mr_span *span) {
    const char *name = runtime_name(span);
    begin_slice(c, name ? "cuda_runtime" : "cpu_op", name ? name : span->name);
    put_host_place(c, span);
    put_interval(c->sink, span->call, span->returned);
    put_count(c->sink, ",\"args\":{\"correlation\":", span->seq);
    /* The work of the device is described there. */
    if (!span->ran) {
        mr_sink_text(c->sink, ",\"operation\":");
        mr_sink_json(c->sink, span->name);
        put_where(c, span->where);
    }
    if (span->waited) {
        mr_sink_text(c->sink, ",\"waited us\":");
        mr_sink_us(c->sink, span->waited);
    }
    mr_sink_text(c->sink, "}}");
}

/* An arrow from the call to its work on the device. */
static void write_flow(chrome *c, const mr_span *span, uint64_t to, int row) {
    begin_event(c, "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
    mr_sink_number(c->sink, span->seq);
    put_host_place(c, span);
    mr_sink_text(c->sink, ",\"ts\":");
    mr_sink_us(c->sink, span->call);
    mr_sink_text(c->sink, "}");
    begin_event(c, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
    mr_sink_number(c->sink, span->seq);
    put_device_place(c, span, row);
    mr_sink_text(c->sink, ",\"ts\":");
    mr_sink_us(c->sink, to);
    mr_sink_text(c->sink, "}");
}

static void put_held_by(chrome *c, const mr_span *span) {
    if (span->held_by == MR_CAUSE_NONE || span->held_by == MR_CAUSE_STREAM) return;
    mr_sink_text(c->sink, ",\"held by\":\"");
    mr_sink_text(c->sink, mr_cause_text(span->held_by));
    mr_sink_text(c->sink, "\"");
    if (span->holder != MR_TRACE_NONE)
        put_count(c->sink, ",\"held by correlation\":", mr_trace_spans(c->trace)[span->holder].seq);
}

static void write_work(chrome *c, const mr_span *span, int row) {
    const thread *t = &c->threads[span->stream];
    begin_slice(c, category(span), span->name);
    put_device_place(c, span, row);
    put_interval(c->sink, span->begin, span->end);
    put_count(c->sink, ",\"args\":{\"device\":", (uint64_t)t->device);
    put_count(c->sink, ",\"stream\":", t->id);
    put_count(c->sink, ",\"correlation\":", span->seq);
    if (span->blocks && span->blocks != UINT32_MAX) {
        put_count(c->sink, ",\"grid\":[", span->blocks);
        mr_sink_text(c->sink, ",1,1]");
    }
    if (span->bytes) put_count(c->sink, ",\"bytes\":", span->bytes);
    put_held_by(c, span);
    put_where(c, span->where);
    mr_sink_text(c->sink, "}}");
    if (span->called) write_flow(c, span, span->begin, row);
}

/* The time that a stream stood in a wait. */
static void write_wait(chrome *c, const mr_span *span, uint64_t from, uint64_t end) {
    begin_slice(c, category(span), "Stream Wait Event");
    put_device_place(c, span, 0);
    put_interval(c->sink, from, end);
    put_count(c->sink, ",\"args\":{\"stream\":", c->threads[span->stream].id);
    put_count(c->sink, ",\"correlation\":", span->seq);
    if (span->record != MR_TRACE_NONE) {
        const mr_span *record = &mr_trace_spans(c->trace)[span->record];
        if (record->stream != MR_TRACE_NONE)
            put_count(c->sink, ",\"wait_on_stream\":", c->threads[record->stream].id);
        put_count(c->sink, ",\"wait_on_cuda_event_record_corr_id\":", record->seq);
    }
    if (span->object) {
        mr_sink_text(c->sink, ",\"event\":");
        mr_sink_json(c->sink, span->object);
    }
    put_where(c, span->where);
    mr_sink_text(c->sink, "}}");
    if (span->called) write_flow(c, span, from, 0);
}

/* ---- a stream */

/* How far the waits of a stream have got among its bars. */
typedef struct {
    const mr_lane *lane; /* NULL: the stream has no bars */
    size_t bar;          /* the first that begins later */
    uint64_t reached;    /* the end of all before */
} progress;

/* A wait lasts from the end of the stream's earlier work, and ends before the next bar. */
static void write_one_wait(chrome *c, const mr_span *span, progress *at) {
    const mr_span *spans = mr_trace_spans(c->trace);
    const mr_lane *lane = at->lane;
    size_t count = lane ? lane->count : 0;
    uint64_t end = span->end;
    if (span->called && span->call > at->reached) at->reached = span->call;
    for (; at->bar < count && spans[lane->spans[at->bar]].begin < end; at->bar++) {
        const mr_span *bar = &spans[lane->spans[at->bar]];
        if (bar->begin > at->reached && bar->seq > span->seq) break;
        if (bar->end > at->reached) at->reached = bar->end;
    }
    if (at->bar < count && spans[lane->spans[at->bar]].begin < end)
        end = spans[lane->spans[at->bar]].begin;
    if (end <= at->reached) return;
    write_wait(c, span, at->reached, end);
    at->reached = end;
}

static mr_status write_waits(chrome *c, const mr_lanes *lanes) {
    progress *all = calloc(mr_trace_stream_count(c->trace) + 1, sizeof *all);
    if (!all) return mr_no_memory("to write a trace");
    for (size_t i = lanes->host_count; i < lanes->count; i++)
        all[lanes->items[i].stream].lane = &lanes->items[i];
    for (size_t i = 0; i < mr_trace_count(c->trace); i++) {
        const mr_span *span = &mr_trace_spans(c->trace)[i];
        if (span->kind == MR_COMMAND_WAIT && span->ran && span->stream != MR_TRACE_NONE)
            write_one_wait(c, span, &all[span->stream]);
    }
    free(all);
    return MR_OK;
}

static void write_lane(chrome *c, const mr_lane *lane) {
    const mr_span *spans = mr_trace_spans(c->trace);
    for (size_t i = 0; i < lane->count; i++) {
        const mr_span *span = &spans[lane->spans[i]];
        if (lane->stream == MR_TRACE_NONE) write_call(c, span);
        else write_work(c, span, lane->rows[i]);
    }
}

/* ---- metadata */

static void write_name(chrome *c, const char *what, int pid, uint32_t tid, const char *name,
                       int order) {
    mr_sink_format(
        c->sink,
        "%s\n{\"ph\":\"M\",\"name\":\"%s_name\",\"pid\":%d,\"tid\":%u,\"ts\":0,\"args\":{\"name\":",
        c->is_first ? "" : ",", what, pid, tid);
    c->is_first = false;
    mr_sink_json(c->sink, name);
    mr_sink_format(c->sink,
                   "}},\n{\"ph\":\"M\",\"name\":\"%s_sort_index\",\"pid\":%d,\"tid\":%u,\"ts\":0,"
                   "\"args\":{\"sort_index\":%d}}",
                   what, pid, tid, order);
}

static void write_threads(chrome *c, const mr_lanes *lanes) {
    const mr_trace_facts *facts = mr_trace_facts_of(c->trace);
    write_name(c, "process", HOST, HOST, "host", -1);
    for (size_t i = 0; i < lanes->host_count; i++) {
        const mr_lane *lane = &lanes->items[i];
        const char *name = lane->rank >= 0 ? lane->label : facts->script ? facts->script : "host";
        write_name(c, "thread", HOST, host_thread(lane->rank), name, (int)i);
    }
    for (int i = 0; i < facts->device_count; i++) {
        mr_buffer name = {0};
        mr_buffer_printf(&name, "GPU %d: %s", i, facts->device ? facts->device : "device");
        write_name(c, "process", i, 0, name.data ? name.data : "GPU", i);
        mr_buffer_free(&name);
    }
    for (size_t i = lanes->host_count; i < lanes->count; i++) {
        const mr_lane *lane = &lanes->items[i];
        const mr_trace_stream *stream = mr_trace_stream_at(c->trace, lane->stream);
        for (int row = 0; row < lane->row_count; row++) {
            mr_buffer name = {0};
            mr_buffer_printf(&name, "stream %u %s", stream->id, stream->name);
            write_name(c, "thread", stream->device, stream->id + (uint32_t)row * ROW_THREADS,
                       name.data ? name.data : "stream", (int)i);
            mr_buffer_free(&name);
        }
    }
}

static void write_head(chrome *c) {
    const mr_trace_facts *facts = mr_trace_facts_of(c->trace);
    mr_sink_text(c->sink, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"deviceProperties\":[");
    for (int i = 0; i < facts->device_count; i++) {
        mr_sink_format(c->sink, "%s{\"id\":%d,\"name\":", i ? "," : "", i);
        mr_sink_json(c->sink, facts->device ? facts->device : "device");
        mr_sink_text(c->sink, "}");
    }
    mr_sink_text(c->sink, "],\"how\":");
    mr_sink_json(c->sink, facts->how ? facts->how : "");
    mr_sink_text(c->sink, ",\"script\":");
    mr_sink_json(c->sink, facts->script ? facts->script : "");
    mr_sink_text(c->sink, ",\"traceEvents\":[");
}

mr_status mr_write_chrome(const mr_writing *writing, mr_sink *sink) {
    size_t streams = mr_trace_stream_count(writing->trace);
    chrome c = {writing->trace, sink, calloc(streams + 1, sizeof *c.threads), true};
    mr_lanes lanes = {0};
    mr_status status = c.threads ? mr_lanes_create(writing->trace, &lanes)
                                 : mr_no_memory("for %zu streams", streams);
    if (!status) {
        for (uint32_t i = 0; i < streams; i++) {
            const mr_trace_stream *stream = mr_trace_stream_at(writing->trace, i);
            c.threads[i].device = stream->device;
            c.threads[i].id = stream->id;
            snprintf(c.threads[i].place, sizeof c.threads[i].place, ",\"pid\":%d,\"tid\":%u",
                     stream->device, stream->id);
        }
        write_head(&c);
        write_threads(&c, &lanes);
        for (size_t i = 0; i < lanes.count; i++) write_lane(&c, &lanes.items[i]);
        status = write_waits(&c, &lanes);
        mr_sink_text(sink, "\n]}\n");
    }
    mr_lanes_destroy(&lanes);
    free(c.threads);
    return status;
}
