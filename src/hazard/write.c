/* Reports as text and as JSON lines. The last line of a text is a block of stable key=value pairs, for
 * tests and for searching; everything before it is for people and may be worded better at any time. */
#include "hazard/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *title, *strong, *dim, *cure, *off;
} palette;

static const palette plain = {"", "", "", "", ""};
static const palette coloured = {"\033[1;31m", "\033[1m", "\033[2m", "\033[32m", "\033[0m"};

static const char *access_text(const mr_hazard_side *side) {
    switch (side->access) {
    case MR_READ: return "reads";
    case MR_WRITE: return "writes";
    case MR_READ | MR_WRITE: return "reads and writes";
    default: return strcmp(side->op, "alloc") == 0 ? "allocates" : "frees";
    }
}

static void put_side(mr_buffer *out, const mr_hazard_side *side, const char *tensor,
                     const palette *p, int width) {
    char place[160];
    bool on_stream = strncmp(side->stream, "stream #", 8) == 0;
    mr_buffer_printf(out, "  %-*s %-6s %s%s%s %s%s%s at %s\n", width, side->op, access_text(side),
                     p->strong, tensor, p->off,
                     side->host  ? ""
                     : on_stream ? "on "
                                 : "on stream ",
                     side->host ? "by the host" : side->stream, "",
                     side->where.file ? mr_hazard_place(side->where, place, sizeof place)
                                      : "the time that Lua collected it");
}

static void put_bytes(mr_buffer *out, const mr_hazard_report *r) {
    uint64_t span = r->bytes_last - r->bytes_first + 1;
    if (r->signature[0]) mr_buffer_printf(out, " (%s, ", r->signature);
    else mr_buffer_puts(out, " (");
    if (r->bytes_shared && r->bytes_shared < span)
        mr_buffer_printf(out, "%" PRIu64 " bytes in %" PRIu64 "..%" PRIu64 ")", r->bytes_shared,
                         r->bytes_first, r->bytes_last);
    else mr_buffer_printf(out, "bytes %" PRIu64 "..%" PRIu64 ")", r->bytes_first, r->bytes_last);
}

static void put_keys(mr_buffer *out, const mr_hazard_report *r, const palette *p) {
    char first[160], second[160];
    const char *none = r->first.op ? "lua-collector" : "-";
    mr_buffer_printf(out, "%skind=%s reason=%s tensor=%s first=%s second=%s%s\n", p->dim,
                     mr_hazard_kind_text(r->kind), mr_hazard_reason_text(r->reason),
                     r->tensor[0] ? r->tensor : "-",
                     r->first.where.file ? mr_hazard_place(r->first.where, first, sizeof first)
                                         : none,
                     r->second.where.file ? mr_hazard_place(r->second.where, second, sizeof second)
                                          : "lua-collector",
                     p->off);
}

static void put_advice(const mr_hazard_report *r, const palette *p, mr_buffer *out) {
    char place[160];
    mr_buffer_printf(out, "%sadvice: %s%s at %s\n%s\n", p->strong, mr_hazard_kind_text(r->kind),
                     p->off, mr_hazard_place(r->second.where, place, sizeof place), r->why);
    put_keys(out, r, p);
}

void mr_hazard_write_text(const mr_hazard_report *r, bool colour, mr_buffer *out) {
    const palette *p = colour ? &coloured : &plain;
    if (mr_hazard_kind_is_advice(r->kind)) {
        put_advice(r, p, out);
        return;
    }
    mr_buffer_printf(out, "%shazard: %s%s on %s`%s`%s", p->title, mr_hazard_kind_text(r->kind),
                     p->off, p->strong, r->tensor, p->off);
    put_bytes(out, r);
    mr_buffer_puts(out, "\n");
    int width = (int)strlen(r->first.op), other = (int)strlen(r->second.op);
    if (other > width) width = other;
    put_side(out, &r->second, r->tensor, p, width);
    put_side(out, &r->first, r->tensor, p, width);
    mr_buffer_printf(out, "%s\n", r->why);
    if (r->fix_count) {
        mr_buffer_printf(out, "%sfix: ", p->cure);
        mr_hazard_fix_text(r, out);
        mr_buffer_printf(out, "%s\n", p->off);
    }
    put_keys(out, r, p);
}

/* ---- JSON */

static void put_string(mr_buffer *out, const char *text) {
    mr_buffer_puts(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (*s == '"' || *s == '\\') mr_buffer_printf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f) mr_buffer_printf(out, "\\u%04x", *s);
        else mr_buffer_add(out, (const char *)s, 1);
    }
    mr_buffer_puts(out, "\"");
}

static void put_json_side(mr_buffer *out, const char *key, const mr_hazard_side *side) {
    char place[160];
    mr_buffer_printf(out, ",\"%s\":", key);
    if (!side->op) {
        mr_buffer_puts(out, "null");
        return;
    }
    mr_buffer_puts(out, "{\"op\":");
    put_string(out, side->op);
    mr_buffer_printf(out, ",\"access\":\"%s\",\"stream\":",
                     side->access == MR_READ          ? "read"
                     : side->access == MR_WRITE       ? "write"
                     : side->access                   ? "read-write"
                     : strcmp(side->op, "alloc") == 0 ? "alloc"
                                                      : "free");
    put_string(out, side->stream);
    mr_buffer_puts(out, ",\"where\":");
    if (side->where.file) put_string(out, mr_hazard_place(side->where, place, sizeof place));
    else mr_buffer_puts(out, "null");
    mr_buffer_printf(out, ",\"seq\":%" PRIu64 "}", side->seq);
}

void mr_hazard_write_json(const mr_hazard_report *r, mr_buffer *out) {
    mr_buffer_printf(out,
                     "{\"type\":\"%s\",\"number\":%" PRIu64
                     ",\"kind\":\"%s\",\"reason\":\"%s\",\"tensor\":",
                     mr_hazard_kind_is_advice(r->kind) ? "advice" : "hazard", r->number,
                     mr_hazard_kind_text(r->kind), mr_hazard_reason_text(r->reason));
    put_string(out, r->tensor);
    mr_buffer_printf(out,
                     ",\"bytes\":[%" PRIu64 ",%" PRIu64 "],\"count\":%" PRIu64 ",\"amended\":%s",
                     r->bytes_first, r->bytes_last, r->count, r->amended ? "true" : "false");
    put_json_side(out, "first", &r->first);
    put_json_side(out, "second", &r->second);
    mr_buffer_puts(out, ",\"why\":");
    put_string(out, r->why);
    mr_buffer_puts(out, ",\"fix\":[");
    for (int i = 0; i < r->fix_count; i++) {
        char place[160];
        mr_buffer_printf(out, "%s{\"place\":\"%s\",\"where\":", i ? "," : "",
                         r->fix[i].before ? "before" : "after");
        put_string(out, mr_hazard_place(r->fix[i].where, place, sizeof place));
        mr_buffer_puts(out, ",\"text\":");
        put_string(out, r->fix[i].text);
        mr_buffer_puts(out, "}");
    }
    mr_buffer_puts(out, "]}\n");
}

/* ---- the end */

void mr_hazard_summary(const mr_hazard *c, mr_buffer *out) {
    const mr_hazard_totals *t = &c->totals;
    uint64_t advice = 0;
    for (size_t i = 0; i < c->reports.count; i++)
        advice += mr_hazard_kind_is_advice(c->reports.items[i]->kind);
    if (!t->hazards && !t->forgotten) {
        mr_buffer_printf(out,
                         "no hazards: every legal schedule of these %" PRIu64
                         " operations gives the same values",
                         t->operations);
        if (t->decided_by_host)
            mr_buffer_puts(out, ", as long as queries and values that the host read do not make it "
                                "submit something else");
        if (t->ignored) mr_buffer_puts(out, ", but for what was ignored");
        mr_buffer_puts(out, "\n");
    } else {
        mr_buffer_printf(
            out, "%" PRIu64 " hazard%s at %" PRIu64 " pair%s of places in %" PRIu64 " operations",
            t->hazards, t->hazards == 1 ? "" : "s",
            (uint64_t)c->reports.count - advice + t->dropped,
            c->reports.count - advice + t->dropped == 1 ? "" : "s", t->operations);
        if (t->dropped) mr_buffer_printf(out, " (%" PRIu64 " not shown)", t->dropped);
        if (t->follow_ups)
            mr_buffer_printf(out, "; %" PRIu64 " more accesses were unordered for the same reasons",
                             t->follow_ups);
        mr_buffer_puts(out, "\n");
    }
    if (t->forgotten)
        mr_buffer_printf(out,
                         "%" PRIu64 " accesses were forgotten to bound memory: a hazard with one "
                         "of them would not be seen\n",
                         t->forgotten);
    mr_hazard_describe_ignores(c, out);
}

void mr_hazard_summary_json(const mr_hazard *c, mr_buffer *out) {
    const mr_hazard_totals *t = &c->totals;
    mr_buffer text = {0};
    mr_hazard_summary(c, &text);
    while (text.size && text.data[text.size - 1] == '\n') text.data[--text.size] = '\0';
    mr_buffer_printf(out,
                     "{\"type\":\"summary\",\"operations\":%" PRIu64 ",\"hazards\":%" PRIu64
                     ",\"ignored\":%" PRIu64 ",\"follow_ups\":%" PRIu64 ",\"dropped\":%" PRIu64
                     ",\"forgotten\":%" PRIu64 ",\"text\":",
                     t->operations, t->hazards, t->ignored, t->follow_ups, t->dropped,
                     t->forgotten);
    put_string(out, text.data ? text.data : "");
    mr_buffer_puts(out, "}\n");
    mr_buffer_free(&text);
}
