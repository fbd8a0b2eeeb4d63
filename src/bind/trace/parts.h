/* Between the files that make up the class of traces: trace.c, span.c (arguments, spans) and ask.c (questions). */
#ifndef MR_BIND_TRACE_PARTS_H
#define MR_BIND_TRACE_PARTS_H

#include "bind/field.h"
#include "bind/trace/trace.h"

extern const mr_function trace_overlap_function, trace_idle_function, trace_critical_path_function,
    trace_why_function, trace_compare_function;

const mr_trace *mr_check_trace(lua_State *L, int arg);
/* Makes `path` of the .svg, by a converter of the system; NOT_SUPPORTED where none is there. png.c */
bool mr_trace_is_png(const char *path);
mr_status mr_trace_save_png(const mr_trace *trace, const mr_trace *before, const char *path);
/* Saves it in the format of the name's ending. Notes on standard error if the file is large. trace.c */
mr_status mr_trace_save_as(lua_State *L, const mr_trace *trace, const mr_trace *before,
                           const char *path);
/* Sets a new table with weak keys in the registry. */
void mr_open_weak(lua_State *L, const void *key);

void mr_open_spans(lua_State *L);
/* Pushes the list of spans of the trace at `index`, which is made once. */
void mr_push_spans(lua_State *L, int index);
/* A span, its index, or the name of an operation. `other`: a span that is skipped if several have the name. */
uint32_t mr_check_span(lua_State *L, int arg, const mr_trace *trace, uint32_t other);
/* A stream, or its name in the trace. NONE: it did nothing in the trace. */
uint32_t mr_check_trace_stream(lua_State *L, int arg, const mr_trace *trace);

void mr_open_trace_answers(lua_State *L);

static inline const char *mr_trace_stream_name(const mr_trace *trace, uint32_t stream) {
    return stream == MR_TRACE_NONE ? "host" : mr_trace_stream_at(trace, stream)->name;
}

static inline lua_Number mr_trace_ms(uint64_t ns) {
    return (lua_Number)ns * 1e-6;
}

static inline void mr_set_ms(lua_State *L, const char *key, uint64_t ns) {
    mr_set_number(L, key, mr_trace_ms(ns));
}

/* The number of a span, from 1. */
static inline void mr_set_span(lua_State *L, const char *key, uint32_t span) {
    if (span != MR_TRACE_NONE) mr_set_integer(L, key, (uint64_t)span + 1);
}

#endif
