/* Why two operations did not run at the same time, as a sentence: see analysis.h.
 *
 * First the rules are asked. If a way leads from one to the other, the cause is the step between two streams that is
 * nearest to the later one. This holds even if the host was so late that no stream had to wait. Otherwise the later one
 * waited for a busy engine, or for the host, which is then the cause. The saved time comes from a replan without the
 * cause (replan.h); if that is only an estimate, the sentence says "about". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "trace/analysis.h"
#include "trace/analysis/chain.h"
#include "trace/analysis/data.h"
#include "trace/analysis/replan.h"

typedef struct {
    const mr_trace *trace;
    const mr_span *spans;
    const mr_trace_order *order;
    uint32_t early, late;
    mr_trace_removal removal; /* the cause to remove */
    uint64_t saved;
    bool exact;         /* `saved` is the exact result of a run without the cause */
    bool is_known;      /* whether the data allow it was looked at to the end */
    mr_trace_need need; /* the data that forbid the removal; no access: none */
} question;

#define NOTHING_SAVED_NS 1000

/* ---- by the rules */

/* Goes back from the later one. *out_to: the span at the end of the step that is the cause; *out_rule: its rule. */
static bool find_way(const question *q, uint32_t *next_of, uint32_t *queue) {
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < q->order->count; i++) next_of[i] = MR_TRACE_NONE;
    queue[tail++] = q->late;
    next_of[q->late] = q->late;
    while (head < tail) {
        uint32_t at = queue[head++];
        if (at == q->early) return true;
        for (size_t e = q->order->first[at]; e < q->order->first[at + 1]; e++) {
            const mr_trace_edge *edge = &q->order->edges[e];
            if (edge->rule == MR_CAUSE_SYNCHRONIZE || next_of[edge->from] != MR_TRACE_NONE)
                continue;
            next_of[edge->from] = at;
            queue[tail++] = edge->from;
        }
    }
    return false;
}

static mr_cause rule_of(const question *q, uint32_t from, uint32_t to) {
    for (size_t e = q->order->first[to]; e < q->order->first[to + 1]; e++) {
        const mr_trace_edge *edge = &q->order->edges[e];
        if (edge->from == from && edge->rule != MR_CAUSE_SYNCHRONIZE) return edge->rule;
    }
    return MR_CAUSE_STREAM;
}

/* The last step that leads from one stream to another; all in one stream: the earlier one leaves it. */
static void take_step(question *q, const uint32_t *next_of) {
    q->removal = (mr_trace_removal){q->early, MR_CAUSE_STREAM, q->early};
    for (uint32_t at = q->early; at != q->late; at = next_of[at]) {
        mr_cause rule = rule_of(q, at, next_of[at]);
        if (rule == MR_CAUSE_STREAM) continue;
        q->removal = (mr_trace_removal){next_of[at], rule, at};
        if (rule == MR_CAUSE_EVENT) q->removal.holder = next_of[at];
    }
}

static mr_status ask_rules(question *q, bool *out_found) {
    size_t count = q->order->count;
    uint32_t *next_of = malloc(count * sizeof *next_of), *queue = malloc(count * sizeof *queue);
    *out_found = false;
    mr_status status = MR_OK;
    if (next_of && queue) {
        *out_found = find_way(q, next_of, queue);
        if (*out_found) take_step(q, next_of);
    } else {
        status = mr_no_memory("to look at a trace");
    }
    free(next_of);
    free(queue);
    return status;
}

/* ---- by what happened */

/* A copy that is staged is so after the wait. */
static uint64_t stood_since(const mr_span *call) {
    return call->returned - call->waited - call->worked;
}

/* A call in which the host stood when the earlier one ended. The host submitted `at` after it. */
static void blame_host(question *q, uint32_t at) {
    const mr_span *early = &q->spans[q->early];
    q->removal = (mr_trace_removal){at, MR_CAUSE_HOST, early->called ? q->early : MR_TRACE_NONE};
    if (!q->spans[at].called) return;
    for (uint32_t c = q->order->call_before[at]; c != MR_TRACE_NONE; c = q->order->call_before[c]) {
        const mr_span *call = &q->spans[c];
        if (call->returned <= early->begin) return;
        if (!call->host_waited || stood_since(call) > early->end) continue;
        mr_cause rule = mr_trace_cause_of_wait(q->spans, q->order->count, c);
        q->removal = (mr_trace_removal){c, rule, c};
        return;
    }
}

static void ask_times(question *q) {
    uint32_t at = q->late, marker;
    for (size_t steps = 0; steps < q->order->count; steps++) {
        uint32_t behind = mr_trace_work_behind(q->spans, at, &marker);
        if (behind == MR_TRACE_NONE) {
            blame_host(q, marker);
            return;
        }
        const mr_span *span = &q->spans[at];
        q->removal = (mr_trace_removal){at, span->held_by, span->holder};
        if (mr_cause_is_engine(span->held_by)) return;
        bool holder_goes = span->held_by == MR_CAUSE_EVENT || span->held_by == MR_CAUSE_STREAM;
        if (holder_goes) q->removal.span = span->holder;
        if (q->spans[behind].begin < q->spans[q->early].end) return;
        at = behind;
    }
}

/* ---- what is saved */

/* They run when the host waits, and copies of pageable memory wait for them. */
static bool host_functions_before(const question *q) {
    for (size_t i = 0; i < q->order->count; i++) {
        const mr_span *span = &q->spans[i];
        if (span->kind == MR_COMMAND_HOST_FUNCTION && span->seq < q->spans[q->late].seq)
            return true;
    }
    return false;
}

static bool changes_order(mr_cause rule) {
    return rule == MR_CAUSE_STREAM || rule == MR_CAUSE_EVENT || rule == MR_CAUSE_DEFAULT_STREAM ||
           rule == MR_CAUSE_PEER_COPY || rule == MR_CAUSE_SYNCHRONIZE || rule == MR_CAUSE_PAGEABLE;
}

/* A call that comes sooner still comes after the data that it depends on, also in the replan. */
static mr_status ask_data(question *q, mr_trace_replan *replan) {
    mr_trace_order_state state = MR_TRACE_ORDER_KEPT;
    mr_trace_need asked = {q->early, q->late, NULL};
    q->need = (mr_trace_need){MR_TRACE_NONE, MR_TRACE_NONE, NULL};
    if (changes_order(q->removal.rule))
        MR_TRY(mr_trace_order_keeps(q->trace, q->order, mr_trace_replan_edit(replan), asked, &state,
                                    &q->need));
    q->is_known = state != MR_TRACE_ORDER_UNKNOWN;
    return MR_OK;
}

/* One of two operations of a stream leaves it: the earlier one, or if the data do not allow that, the later one. */
static mr_status try_other_way(question *q, mr_trace_replan *replan) {
    question other = *q;
    if (q->removal.rule != MR_CAUSE_STREAM || q->removal.span != q->early || !q->need.access)
        return MR_OK;
    other.removal = (mr_trace_removal){q->late, MR_CAUSE_STREAM, q->early};
    MR_TRY(mr_trace_replan_without(replan, other.removal));
    MR_TRY(ask_data(&other, replan));
    if (!other.need.access && other.is_known) *q = other;
    return MR_OK;
}

static mr_status find_saving(mr_trace_replan *replan, question *q) {
    const mr_trace_facts *facts = mr_trace_facts_of(q->trace);
    MR_TRY(mr_trace_replan_without(replan, q->removal));
    MR_TRY(ask_data(q, replan));
    MR_TRY(try_other_way(q, replan));
    mr_cause rule = q->removal.rule;
    if (q->need.access || !q->is_known) return MR_OK;
    int64_t begin = mr_trace_replan_begin(replan, q->late);
    int64_t was = (int64_t)q->spans[q->late].begin;
    q->saved = begin < was ? (uint64_t)(was - begin) : 0;
    bool fits = facts->exact && !mr_cause_is_engine(rule) && rule != MR_CAUSE_MEMORY &&
                q->spans[q->late].called && !host_functions_before(q);
    if (fits) MR_TRY(mr_trace_replan_fits(replan, q->late, &fits));
    q->exact = fits;
    return MR_OK;
}

/* ---- sentences */

typedef struct {
    char text[180];
} name;

static name site_of(const mr_span *span) {
    name out = {""};
    if (span->where.file)
        mr_text_format(out.text, sizeof out.text, " (%s:%d)", span->where.file, span->where.line);
    return out;
}

static name name_of(const mr_span *span) {
    name out = {""};
    mr_text_format(out.text, sizeof out.text, "`%s`%s", span->name, site_of(span).text);
    return out;
}

static const char *stream_of(const question *q, uint32_t span) {
    uint32_t stream = q->spans[span].stream;
    return stream == MR_TRACE_NONE ? "the host" : mr_trace_stream_at(q->trace, stream)->name;
}

static double ms(uint64_t ns) {
    return (double)ns * 1e-6;
}

static void say_event(const question *q, char *out, size_t size) {
    const mr_span *wait = &q->spans[q->removal.span];
    char event[220] = "an event", recorded[400] = "";
    if (wait->record != MR_TRACE_NONE &&
        strcmp(wait->name, "wait_event") != 0) /* wait_stream, barrier */
        mr_text_format(event, sizeof event, "stream `%s`", stream_of(q, wait->record));
    if (wait->object) mr_text_format(event, sizeof event, "event `%s`", wait->object);
    if (wait->record != MR_TRACE_NONE)
        mr_text_format(recorded, sizeof recorded, ", and the record%s is behind %s",
                       site_of(&q->spans[wait->record]).text, name_of(&q->spans[q->early]).text);
    mr_text_format(out, size, "stream `%s` waits for %s%s before %s%s",
                   stream_of(q, q->removal.span), event, site_of(wait).text,
                   name_of(&q->spans[q->late]).text, recorded);
}

/* How the host spent the time between two of its calls. */
static void say_meanwhile(const question *q, uint32_t from, uint32_t to, char *out, size_t size) {
    uint64_t in_calls = 0;
    uint32_t calls = 0;
    *out = '\0';
    for (uint32_t c = q->order->call_before[to]; c != MR_TRACE_NONE && c != from;
         c = q->order->call_before[c]) {
        in_calls += q->spans[c].returned - q->spans[c].call;
        calls++;
    }
    uint64_t begin = q->spans[from].returned, end = q->spans[to].call;
    if (end <= begin) return;
    uint64_t between = end - begin > in_calls ? end - begin - in_calls : 0;
    mr_text_format(out, size,
                   "; between both calls it made %u other%s, which took %.3f ms, and %.3f ms were "
                   "the script's own",
                   calls, calls == 1 ? "" : "s", ms(in_calls), ms(between));
}

/* Says how to cure a late call: either a place for it, or fewer calls. */
static void say_host_cure(const question *q, char *out, size_t size) {
    const mr_span *late = &q->spans[q->removal.span], *early = &q->spans[q->early];
    const mr_trace_facts *facts = mr_trace_facts_of(q->trace);
    *out = '\0';
    if (!late->called || !early->called || (facts->chooser && !facts->exact)) return;
    if (q->saved >= NOTHING_SAVED_NS)
        mr_text_format(out, size, ". Call %s right behind %s", name_of(late).text,
                       name_of(early).text);
    else if (q->order->call_before[q->removal.span] != q->early ||
             early->end - early->begin > late->returned - early->call)
        mr_text_format(out, size, ". The work before it is called late, too");
    else
        mr_text_format(
            out, size,
            ". The host takes longer for its calls than `%s` runs (%.3f ms), and `%s` is "
            "called as early as possible. Submit both in one call, as a graph "
            "(mr.graph), or give each more work",
            early->name, ms(early->end - early->begin), late->name);
}

/* Also where it is the record of an event, on which the later one depends. */
static void say_host(const question *q, char *out, size_t size) {
    const mr_span *late = &q->spans[q->removal.span], *early = &q->spans[q->early];
    char meanwhile[160] = "", before[220] = "", cure[260];
    if (late->called && early->called && early->returned <= late->call)
        say_meanwhile(q, q->early, q->removal.span, meanwhile, sizeof meanwhile);
    say_host_cure(q, cure, sizeof cure);
    if (q->removal.span != q->late)
        mr_text_format(before, sizeof before, ", which %s comes after,",
                       name_of(&q->spans[q->late]).text);
    mr_text_format(out, size,
                   "the host submitted %s%s at %.3f ms, and %s ran from %.3f to %.3f ms%s%s",
                   name_of(late).text, before, ms(late->call), name_of(early).text,
                   ms(early->begin), ms(early->end), meanwhile, cure);
}

/* A change is worth a word only if it keeps what the data need and begins the later one sooner. */
static bool proposes(const question *q) {
    const mr_trace_facts *facts = mr_trace_facts_of(q->trace);
    bool timed = !facts->chooser || facts->exact;
    return !q->need.access && q->is_known && (!timed || q->saved >= NOTHING_SAVED_NS);
}

static name wait_of(const question *q) {
    name out = {0};
    mr_text_format(out.text, sizeof out.text, "%s waits for", name_of(&q->spans[q->late]).text);
    return out;
}

/* If no chain leads from the earlier one to the later one, the later one, or a predecessor of it, waited for another
 * operation. */
static void say_stream(const question *q, char *out, size_t size) {
    bool proposed = proposes(q);
    uint32_t stream = q->spans[q->removal.span].stream;
    uint32_t first = q->spans[q->early].stream == stream ? q->early : q->removal.holder;
    bool is_behind = q->spans[q->late].stream != stream;
    if (first == MR_TRACE_NONE) first = q->removal.span;
    mr_text_format(
        out, size,
        "%s%s comes after %s on stream `%s`: the operations of one stream run one after "
        "the other%s%s%s",
        is_behind ? "what " : "", is_behind ? wait_of(q).text : name_of(&q->spans[q->late]).text,
        name_of(&q->spans[first]).text, stream_of(q, q->removal.span), proposed ? ". Give " : "",
        proposed ? name_of(&q->spans[q->removal.span]).text : "",
        proposed ? " another stream" : "");
}

static void say_default_stream(const question *q, const char *holder, char *out, size_t size) {
    mr_text_format(out, size,
                   "the default stream waits for all blocking streams, and they wait for it (R3): "
                   "`%s` on stream `%s` comes after %s on stream `%s`%s",
                   q->spans[q->removal.span].name, stream_of(q, q->removal.span), holder,
                   q->removal.holder == MR_TRACE_NONE ? "?" : stream_of(q, q->removal.holder),
                   proposes(q) ? ". Make the other stream non-blocking" : "");
}

/* The operation was ready, but another one had its engine. */
static void say_engine(const question *q, const char *holder, char *out, size_t size) {
    const mr_span *held = &q->spans[q->removal.span];
    if (q->removal.rule == MR_CAUSE_MULTIPROCESSORS)
        mr_text_format(
            out, size,
            "%s was ready at %.3f ms, but had to wait for multiprocessors until %s ended: "
            "they were full",
            name_of(held).text, ms(held->ready), holder);
    else
        mr_text_format(
            out, size,
            "%s was ready at %.3f ms, but the copy engine of that direction was busy with %s",
            name_of(held).text, ms(held->ready), holder);
}

/* The host stood in a call. */
static void say_call(const question *q, const char *holder, char *out, size_t size) {
    name later = name_of(&q->spans[q->late]), earlier = name_of(&q->spans[q->early]);
    double returned = ms(q->spans[q->removal.holder].returned);
    bool same = q->removal.holder == q->early;
    if (q->removal.rule == MR_CAUSE_SYNCHRONIZE)
        mr_text_format(out, size,
                       "the host waited in %s until %.3f ms%s%s%s, and submitted %s only then",
                       holder, returned, same ? "" : ", after ", same ? "" : earlier.text,
                       same ? "" : " had ended", later.text);
    else
        mr_text_format(
            out, size,
            "the host stood in %s until %.3f ms, because a copy of pageable memory waits "
            "(R23), and submitted %s only then%s",
            holder, returned, later.text, proposes(q) ? ". Use pinned memory (pinned=true)" : "");
}

static void say_cause(const question *q, char *out, size_t size) {
    name later = name_of(&q->spans[q->late]), holder = {"other work"};
    if (q->removal.holder != MR_TRACE_NONE) holder = name_of(&q->spans[q->removal.holder]);
    switch (q->removal.rule) {
    case MR_CAUSE_STREAM: say_stream(q, out, size); break;
    case MR_CAUSE_EVENT: say_event(q, out, size); break;
    case MR_CAUSE_DEFAULT_STREAM: say_default_stream(q, holder.text, out, size); break;
    case MR_CAUSE_PEER_COPY:
        mr_text_format(
            out, size, "a synchronous copy between devices orders all streams of both (R60): %s%s",
            holder.text, proposes(q) ? ". Make it asynchronous (non_blocking=true)" : "");
        break;
    case MR_CAUSE_COLLECTIVE:
        mr_text_format(out, size,
                       "the ranks of a collective run together (R61): %s is part of one that also "
                       "comes after %s",
                       name_of(&q->spans[q->removal.span]).text, holder.text);
        break;
    case MR_CAUSE_MULTIPROCESSORS:
    case MR_CAUSE_COPY_ENGINE: say_engine(q, holder.text, out, size); break;
    case MR_CAUSE_SYNCHRONIZE:
    case MR_CAUSE_PAGEABLE: say_call(q, holder.text, out, size); break;
    case MR_CAUSE_MEMORY:
        mr_text_format(
            out, size,
            "the memory of %s is that of a tensor which another stream frees in %s (R30)",
            later.text, holder.text);
        break;
    case MR_CAUSE_HOST_FUNCTION:
        mr_text_format(out, size, "%s comes after the host function %s of its stream (R46)",
                       later.text, holder.text);
        break;
    case MR_CAUSE_CHOOSER:
        mr_text_format(
            out, size, "the chooser `%s` of the virtual GPU runs one operation after the other",
            mr_trace_facts_of(q->trace)->chooser ? mr_trace_facts_of(q->trace)->chooser : "?");
        break;
    case MR_CAUSE_CONNECTION:
    case MR_CAUSE_HOST:
    case MR_CAUSE_NONE: say_host(q, out, size); break;
    }
}

static bool is_host(const question *q) {
    mr_cause rule = q->removal.rule;
    return rule == MR_CAUSE_HOST || rule == MR_CAUSE_NONE || rule == MR_CAUSE_CONNECTION;
}

static name memory_of(const mr_trace_access *access) {
    name out = {"the same memory"};
    if (access->name) mr_text_format(out.text, sizeof out.text, "`%s`", access->name);
    else if (access->made.file)
        mr_text_format(out.text, sizeof out.text, "the tensor made at %s:%d", access->made.file,
                       access->made.line);
    return out;
}

/* Two operations whose data need the cause. */
static void say_need(const question *q, char *out, size_t size) {
    const mr_trace_need *need = &q->need;
    const mr_span *first = &q->spans[need->first], *second = &q->spans[need->second];
    const mr_trace_access *theirs = mr_trace_conflict(q->trace, need->second, need->first);
    const char *both = need->access->writes && theirs->writes ? "both write"
                       : need->access->writes                 ? "the first writes"
                                                              : "the second writes";
    bool sure = need->access->is_dense && theirs->is_dense;
    mr_text_format(out, size, ". This order %s: %s and %s access %s, which %s.",
                   sure ? "is needed" : "may be needed", name_of(first).text, name_of(second).text,
                   memory_of(need->access).text, both);
}

/* Only what a replan supports. Another chooser's times are not times that a device needs. */
static void say_saving(const question *q, char *out, size_t size) {
    const mr_trace_facts *facts = mr_trace_facts_of(q->trace);
    bool host = is_host(q);
    const char *without = host ? "Then" : "Without that";
    const char *about = q->exact ? "" : "about ";
    if (q->need.access) say_need(q, out, size);
    else if (!q->is_known || (facts->chooser && !facts->exact)) mr_text_format(out, size, ".");
    else if (q->saved >= NOTHING_SAVED_NS)
        mr_text_format(out, size, ". %s it could have begun %s%.3f ms earlier.", without, about,
                       ms(q->saved));
    else if (host) mr_text_format(out, size, ".");
    else
        mr_text_format(out, size, ". Removing only that saves nothing: something else comes next.");
}

static void say(const question *q, mr_trace_why *why) {
    char cause[620], saving[800];
    say_cause(q, cause, sizeof cause);
    say_saving(q, saving, sizeof saving);
    if (why->overlapped)
        mr_text_format(why->text + strlen(why->text), sizeof why->text - strlen(why->text),
                       " It began no sooner because %s%s", cause, saving);
    else mr_text_format(why->text, sizeof why->text, "%s%s", cause, saving);
}

/* ---- */

static mr_status find_cause(question *q, mr_trace_replan *replan) {
    const bool after = q->spans[q->late].begin >= q->spans[q->early].end;
    bool found = false;
    q->order = mr_trace_replan_order(replan);
    if (after) MR_TRY(ask_rules(q, &found));
    if (!found) ask_times(q);
    return find_saving(replan, q);
}

static mr_status explain(question *q, mr_trace_why *why) {
    mr_trace_replan *replan;
    MR_TRY(mr_trace_replan_open(q->trace, &replan));
    mr_status status = find_cause(q, replan);
    if (!status) {
        why->saved = q->saved;
        why->exact = q->exact;
        why->cause = q->removal.rule;
        why->needed_first = q->need.first;
        why->needed_second = q->need.second;
        bool is_span = is_host(q) || q->removal.rule == MR_CAUSE_STREAM;
        why->holder = is_span ? q->removal.span : q->removal.holder;
        say(q, why);
    }
    mr_trace_replan_close(replan);
    return status;
}

/* If at least this share of the shorter one overlaps, both count as having run together, and no cause is given. */
#define TOGETHER 0.9

static mr_status explain_overlap(question *q, mr_trace_why *why) {
    const mr_span *early = &q->spans[q->early], *late = &q->spans[q->late];
    bool late_is_shorter = late->end - late->begin <= early->end - early->begin;
    const mr_span *shorter = late_is_shorter ? late : early;
    uint64_t end = early->end < late->end ? early->end : late->end;
    uint64_t length = shorter->end - shorter->begin;
    why->overlapped = true;
    why->overlap = end > late->begin ? end - late->begin : 0;
    why->share = length ? (double)why->overlap / (double)length : 1;
    mr_text_format(why->text, sizeof why->text, "%s and %s ran at the same time for %.3f ms",
                   name_of(early).text, name_of(late).text, ms(why->overlap));
    char *rest = why->text + strlen(why->text);
    size_t size = sizeof why->text - strlen(why->text);
    if (why->share >= 0.9995) mr_text_format(rest, size, ".");
    else
        mr_text_format(rest, size, ", %.1f %% of `%s` (%.3f ms).", 100 * why->share, shorter->name,
                       ms(length));
    return why->share < TOGETHER ? explain(q, why) : MR_OK;
}

mr_status mr_trace_explain(const mr_trace *trace, uint32_t a, uint32_t b, mr_trace_why *out_why) {
    const mr_span *spans = mr_trace_spans(trace);
    *out_why = (mr_trace_why){
        .holder = MR_TRACE_NONE, .needed_first = MR_TRACE_NONE, .needed_second = MR_TRACE_NONE};
    for (int i = 0; i < 2; i++) {
        const mr_span *span = &spans[i ? b : a];
        if (!span->ran || !mr_span_is_work(span))
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "why: %s %s", name_of(span).text,
                           mr_span_is_work(span) ? "has not run when the trace was made"
                                                 : "is no operation that a device runs");
    }
    question q = {.trace = trace, .spans = spans, .early = a, .late = b};
    bool swapped = b < a ? spans[b].begin <= spans[a].begin : spans[b].begin < spans[a].begin;
    if (swapped) {
        q.early = b;
        q.late = a;
    }
    if (a == b) {
        mr_text_format(out_why->text, sizeof out_why->text,
                       "%s is one operation: there is nothing to compare it with. Ask about two, "
                       "as names, as numbers or as spans of tr.spans.",
                       name_of(&spans[a]).text);
        return MR_OK;
    }
    bool apart = spans[q.late].begin >= spans[q.early].end;
    return apart ? explain(&q, out_why) : explain_overlap(&q, out_why);
}
