/* The drawing of a trace, for all formats. It gives the lanes, the spans that are bars in them, the look of each bar,
 * and the cause of the time before a bar. */
#ifndef MR_TRACE_LANES_H
#define MR_TRACE_LANES_H

#include "base/buffer.h"
#include "trace/trace.h"

/* id; its name in the legend; its word in files (a class of CSS, a column of CSV). For a terminal: the character that
 * fills a bar in ASCII, the one in UTF-8, and the number of its colour of 256 */
// clang-format off
#define MR_LOOK_LIST(X)                                                        \
    X(KERNEL,        "kernel",                "kernel",        "#", "█", 75)   \
    X(COPY_IN,       "copy to the device",    "copy-in",       ">", "▓", 114)  \
    X(COPY_OUT,      "copy to the host",      "copy-out",      "<", "▒", 215)  \
    X(COPY_DEVICE,   "copy inside a device",  "copy-device",   "=", "▚", 80)   \
    X(COPY_PEER,     "copy between devices",  "copy-peer",     "~", "▞", 177)  \
    X(HOST_FUNCTION, "host function",         "host-function", "@", "▦", 222)  \
    X(HOST_WAIT,     "the host waits",        "host-wait",     "-", "░", 246)  \
    X(HOST_WORK,     "the host works",        "host-work",     "%", "▥", 181)  \
    X(HOST_CALL,     "a call of the host",    "host-call",     "|", "╷", 244)
// clang-format on

typedef enum {
#define X(id, legend, word, ascii, fill, color) MR_LOOK_##id,
    MR_LOOK_LIST(X)
#undef X
        MR_LOOK_COUNT,
    MR_LOOK_NONE = MR_LOOK_COUNT, /* no bar: markers, and commands that have not run */
} mr_look;

typedef struct {
    const char *legend, *word, *ascii, *fill;
    int color;
} mr_look_text;
extern const mr_look_text mr_looks[];

/* For a span in its stream's lane, and in the host's: what took most of the call, if the host did not wait. */
mr_look mr_look_of(const mr_span *span);
mr_look mr_look_on_host(const mr_span *span);

/* The bars of one stream, or of one host, by the time at which they begin. */
typedef struct {
    uint32_t stream; /* MR_TRACE_NONE: a host */
    int rank;        /* of that host, or of the stream's first call (mr_trace_rank_of) */
    char label[64];
    uint32_t *spans;
    uint8_t *rows; /* 0, or the row below where bars overlap, as measured times may */
    size_t count;
    int row_count;
    uint64_t busy; /* time with a bar */
} mr_lane;

typedef struct {
    mr_lane *items; /* the hosts first, then the streams with work, as they first got some */
    size_t count, host_count; /* one host; where ranks called, one for each that did */
} mr_lanes;

mr_status mr_lanes_create(const mr_trace *trace, mr_lanes *out_lanes);
void mr_lanes_destroy(mr_lanes *lanes);

/* The index of the lane that has the span's call, and of a stream's lane; -1: it has none. */
int mr_lanes_host(const mr_lanes *lanes, const mr_trace *trace, const mr_span *span);
int mr_lanes_stream(const mr_lanes *lanes, uint32_t stream);

/* Rows in which it is drawn: calls of a host may lie in each other, and share one. */
static inline int mr_lane_rows(const mr_lane *lane) {
    return lane->stream == MR_TRACE_NONE ? 1 : lane->row_count;
}

/* The time before bar i of a lane in which something held the lane up. A late call of the host does not count. */
typedef struct {
    uint64_t begin, end; /* equal: there is none */
    const mr_span *span; /* the bar that ended it; its held_by is the reason why the lane waited */
} mr_lane_gap;
mr_lane_gap mr_lane_gap_before(const mr_trace *trace, const mr_lane *lane, size_t i);

/* ---- in words */

/* The words for a cause, which stand before what shows of its holder. */
typedef enum { MR_SHOWS_NAME, MR_SHOWS_OBJECT, MR_SHOWS_NOTHING } mr_cause_shows;
const char *mr_trace_cause_words(mr_cause cause, mr_cause_shows *out_shows);

/* "waits for event `full` (line 7)"; nothing for a span without a wait. Names are escaped for the terminal. */
void mr_trace_put_cause(mr_buffer *out, const mr_trace *trace, const mr_span *span);
/* The script that most spans are of; NULL: none is known, or they are of several entries of a prompt. */
const char *mr_trace_title(const mr_trace *trace);
/* "line 7" in the script that most spans are of, "mr:7:1" of an entry of a prompt, "other.lua:7" elsewhere; nothing
 * where no line is known. */
void mr_trace_put_place(mr_buffer *out, const mr_trace *trace, mr_site where);
/* "event `full`", "stream `copy`": the object of a record, a wait or a synchronise. */
void mr_trace_put_object(mr_buffer *out, const mr_trace *trace, const mr_span *span);
/* "host"; "host of rank 1" where there are several ranks. */
void mr_trace_put_host(mr_buffer *out, int rank);
/* "copy"; "gpu1 copy" where there are several devices. */
void mr_trace_put_stream(mr_buffer *out, const mr_trace *trace, uint32_t stream);
/* "1.25 ms", with three digits that count. */
void mr_trace_put_time(mr_buffer *out, uint64_t nanoseconds);
/* Two lines of a fix, and how many more it has: "e = a:record_event(); b:wait_event(e), and 2 more lines". Escaped
 * likewise. */
void mr_trace_put_fix(mr_buffer *out, const char *fix);

#endif
