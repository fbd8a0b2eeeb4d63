/* Reports as text and as JSON lines. The last line of a text is a block of stable key=value pairs, for tests and for
 * searching. Everything before it is for people and may be worded better at any time.
 *
 * Easiest to break: a text with a name from the script is written by mr_text_put and similar functions, never by %s. */
#include "hazard/explain.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *title, *strong, *dim, *fix, *off;
} palette;

static const palette plain = {"", "", "", "", ""};
static const palette coloured = {"\033[1;31m", "\033[1m", "\033[2m", "\033[32m", "\033[0m"};

static const char *access_text(const mr_hazard_side *side) {
    if (side->atomic) return "updates";
    switch (side->access) {
    case MR_READ: return "reads";
    case MR_WRITE: return "writes";
    case MR_READ | MR_WRITE: return "reads and writes";
    default: return side->allocates ? "allocates" : "frees";
    }
}

const char *mr_hazard_access_text(const mr_hazard_side *side) {
    switch (side->access) {
    case MR_READ: return "read";
    case MR_WRITE: return "write";
    case MR_READ | MR_WRITE: return "read-write";
    default: return side->allocates ? "alloc" : "free";
    }
}

static const char *place_text(const mr_hazard_side *side, char *out, size_t size) {
    return side->where.file ? mr_hazard_place(side->where, out, size) : "lua-collector";
}

/* For a sentence. */
static const char *shown(mr_site where, const char *file, char *out, size_t size) {
    return mr_hazard_place((mr_site){file ? file : where.file, where.line}, out, size);
}

static const char *shown_side(const mr_hazard_side *side, char *out, size_t size) {
    return side->where.file ? shown(side->where, side->file, out, size) : "lua-collector";
}

static void put_side(mr_buffer *out, const mr_hazard_side *side, const char *tensor,
                     const palette *p, int width) {
    char place[PLACE_SIZE];
    bool on_stream = strncmp(side->stream, "stream #", 8) == 0;
    if (!side->op[0]) return;
    mr_buffer_puts(out, "  ");
    if (side->rank) mr_buffer_printf(out, "rank %d: ", side->rank - 1);
    mr_text_put(out, side->op);
    mr_buffer_printf(out, "%*s %-6s %s", width - mr_text_width(side->op), "", access_text(side),
                     p->strong);
    mr_text_put(out, tensor);
    if (side->captured) mr_buffer_puts(out, ", captured");
    mr_buffer_printf(out, "%s %s", p->off,
                     side->host  ? "by the host"
                     : on_stream ? "on "
                                 : "on stream ");
    if (!side->host) mr_text_put(out, side->stream);
    mr_buffer_puts(out, " at ");
    mr_text_put(out, side->where.file ? shown_side(side, place, sizeof place)
                                      : "the time that Lua collected it");
    if (side->launched.file) {
        mr_buffer_puts(out, ", in a graph launched at ");
        mr_text_put(out, shown(side->launched, side->launched_file, place, sizeof place));
    }
    mr_buffer_puts(out, "\n");
}

static void put_bytes(mr_buffer *out, const mr_hazard_report *r) {
    uint64_t span = r->bytes_last - r->bytes_first + 1;
    if (r->signature[0]) mr_buffer_printf(out, " (%s%s, ", r->is_view ? "view " : "", r->signature);
    else mr_buffer_puts(out, " (");
    if (r->bytes_shared && r->bytes_shared < span)
        mr_buffer_printf(out, "%" PRIu64 " bytes in %" PRIu64 "..%" PRIu64 ")", r->bytes_shared,
                         r->bytes_first, r->bytes_last);
    else mr_buffer_printf(out, "bytes %" PRIu64 "..%" PRIu64 ")", r->bytes_first, r->bytes_last);
}

/* " on ranks 1, 2"; false: there is no other rank. */
static bool put_other_ranks(mr_buffer *out, const mr_hazard_report *r) {
    uint64_t own = r->second.rank ? (uint64_t)1 << (r->second.rank - 1) : 0;
    uint64_t others = r->ranks & ~own;
    if (!others) return false;
    mr_buffer_puts(out, others & (others - 1) ? " on ranks " : " on rank ");
    for (uint64_t left = others; left; left &= left - 1)
        mr_buffer_printf(out, "%s%d", left == others ? "" : ", ", __builtin_ctzll(left));
    return true;
}

/* Each pair of places has one report, but many pairs of streams may race there. */
static void put_streams(mr_buffer *out, const mr_hazard_report *r) {
    if (r->stream_pairs < 2) return;
    mr_buffer_puts(out, "The same happens");
    bool has_ranks = put_other_ranks(out, r);
    if (!has_ranks) mr_buffer_puts(out, " between other streams");
    else if (r->also[0][0]) mr_buffer_puts(out, " and between other streams");
    mr_buffer_puts(out, ", too");
    if (r->also[0][0]) {
        mr_buffer_puts(out, " (");
        mr_text_put(out, r->also[1]);
        mr_buffer_puts(out, " after ");
        mr_text_put(out, r->also[0]);
        mr_buffer_puts(out, ")");
    }
    bool is_more = r->stream_pairs == MR_HAZARD_STREAM_PAIRS;
    bool is_one_fix = r->fix_count && !r->needs_several && !is_more;
    bool are_all = r->fix_count && r->needs_several && !is_more;
    const char *more = r->fix_count == 1 ? "No other line is needed" : "No other lines are needed";
    const char *several = are_all ? "Add all lines of the fix" : "Other pairs may need other fixes";
    mr_buffer_printf(out, ": %" PRIu64 " times so far, for %u%s pairs of streams. %s.\n", r->count,
                     r->stream_pairs, is_more ? " or more" : "", is_one_fix ? more : several);
}

/* "  and 2 more: y, z" */
static void put_more(mr_buffer *out, const mr_hazard_report *r) {
    const char *name = r->more;
    if (r->more_count) mr_buffer_printf(out, "  and %u more: ", r->more_count);
    for (uint32_t i = 0; i < r->more_count; i++, name += strlen(name) + 1) {
        if (i) mr_buffer_puts(out, ", ");
        mr_text_put(out, name);
    }
    if (r->more_count) mr_buffer_puts(out, "\n");
}

static void put_fixes(mr_buffer *out, const mr_hazard_report *r, const palette *p) {
    if (!r->fix_count && !r->advice[0]) return;
    mr_buffer_printf(out, "%sfix: ", p->fix);
    mr_hazard_fix_text(r, out);
    mr_buffer_printf(out, "%s\n", p->off);
}

static void put_keys(mr_buffer *out, const mr_hazard_report *r, const palette *p) {
    char place[PLACE_SIZE];
    const char *none = r->first.op[0] ? "lua-collector" : "-";
    mr_buffer_printf(out, "%skind=%s reason=%s tensor=", p->dim, mr_hazard_kind_text(r->kind),
                     mr_hazard_reason_text(r->reason));
    mr_text_put_value(out, r->tensor[0] ? r->tensor : "-");
    mr_buffer_puts(out, " first=");
    mr_text_put_value(
        out, r->first.where.file ? mr_hazard_place(r->first.where, place, sizeof place) : none);
    mr_buffer_puts(out, " second=");
    mr_text_put_value(out, place_text(&r->second, place, sizeof place));
    mr_buffer_printf(out, "%s%s\n", mr_hazard_is_assumed(r) ? " assumed=yes" : "", p->off);
}

static void put_assumed(mr_buffer *out, const mr_hazard_side *side) {
    char place[PLACE_SIZE];
    if (!side->assumed) return;
    mr_buffer_puts(out, "It is assumed that ");
    mr_text_put(out, side->op);
    mr_buffer_puts(out, " (");
    mr_text_put(out, shown_side(side, place, sizeof place));
    mr_buffer_printf(out, ") accesses these bytes, because %s.\n",
                     mr_assumed_text((mr_assumed)side->assumed));
}

static void put_why(mr_buffer *out, const mr_hazard_report *r) {
    mr_text_put(out, r->why);
    mr_buffer_puts(out, "\n");
    put_assumed(out, &r->first);
    put_assumed(out, &r->second);
}

/* "hazard: read-after-write on `A`" */
static void put_title(mr_buffer *out, const char *word, const mr_hazard_report *r,
                      const palette *p) {
    mr_buffer_printf(out, "%s%s: %s%s on %s`", p->title, word, mr_hazard_kind_text(r->kind), p->off,
                     p->strong);
    mr_text_put(out, r->tensor);
    mr_buffer_printf(out, "`%s", p->off);
}

static void put_advice(const mr_hazard_report *r, const palette *p, mr_buffer *out) {
    char place[PLACE_SIZE];
    mr_buffer_printf(out, "%sadvice: %s%s at ", p->strong, mr_hazard_kind_text(r->kind), p->off);
    mr_text_put(out, shown_side(&r->second, place, sizeof place));
    mr_buffer_puts(out, "\n");
    put_why(out, r);
    put_keys(out, r, p);
}

void mr_hazard_write_text(const mr_hazard_report *r, bool colour, mr_buffer *out) {
    const palette *p = colour ? &coloured : &plain;
    if (mr_hazard_kind_is_advice(r->kind)) {
        put_advice(r, p, out);
        return;
    }
    put_title(out, "hazard", r, p);
    put_bytes(out, r);
    mr_buffer_puts(out, "\n");
    int width = mr_text_width(r->first.op), other = mr_text_width(r->second.op);
    if (other > width) width = other;
    put_side(out, &r->second, r->tensor, p, width);
    put_side(out, &r->first, r->tensor, p, width);
    put_more(out, r);
    put_why(out, r);
    put_fixes(out, r, p);
    put_streams(out, r);
    put_keys(out, r, p);
}

void mr_hazard_write_amended(const mr_hazard_report *r, mr_hazard_news news, bool colour,
                             mr_buffer *out) {
    const palette *p = colour ? &coloured : &plain;
    char place[PLACE_SIZE];
    put_title(out, "update", r, p);
    mr_buffer_puts(out, ", ");
    mr_text_put(out, shown_side(&r->second, place, sizeof place));
    mr_buffer_puts(out, " after ");
    mr_text_put(out, shown_side(&r->first, place, sizeof place));
    mr_buffer_puts(out, ", reported above\n");
    if (news == MR_HAZARD_NEWS_STREAMS) {
        put_streams(out, r);
        if (r->needs_several) put_fixes(out, r, p);
        return;
    }
    if (news == MR_HAZARD_NEWS_TENSORS) {
        put_more(out, r);
        put_fixes(out, r, p);
        return;
    }
    put_why(out, r);
    put_keys(out, r, p);
}

/* ---- JSON */

static void put_json_side(mr_buffer *out, const char *key, const mr_hazard_side *side) {
    char place[PLACE_SIZE];
    mr_buffer_printf(out, ",\"%s\":", key);
    if (!side->op[0]) {
        mr_buffer_puts(out, "null");
        return;
    }
    mr_buffer_puts(out, "{\"op\":");
    mr_text_put_json(out, side->op);
    mr_buffer_printf(out, ",\"access\":\"%s\"", mr_hazard_access_text(side));
    if (side->rank) mr_buffer_printf(out, ",\"rank\":%d", side->rank - 1);
    mr_buffer_puts(out, ",\"stream\":");
    mr_text_put_json(out, side->stream);
    mr_buffer_puts(out, ",\"where\":");
    if (side->where.file) mr_text_put_json(out, mr_hazard_place(side->where, place, sizeof place));
    else mr_buffer_puts(out, "null");
    if (side->launched.file) {
        mr_buffer_puts(out, ",\"launched\":");
        mr_text_put_json(out, mr_hazard_place(side->launched, place, sizeof place));
    }
    if (side->assumed) {
        mr_buffer_puts(out, ",\"assumed\":");
        mr_text_put_json(out, mr_assumed_text((mr_assumed)side->assumed));
    }
    if (side->atomic) mr_buffer_puts(out, ",\"atomic\":true");
    mr_buffer_printf(out, ",\"seq\":%" PRIu64 "}", side->seq);
}

/* As in Lua: `fix` the lines to add, `fixes` each with its place. */
static void put_json_fixes(mr_buffer *out, const mr_hazard_report *r) {
    mr_buffer lines = {0};
    for (int i = 0; i < r->fix_count; i++)
        mr_buffer_printf(&lines, "%s%s", i ? "\n" : "", r->fix[i].text);
    if (!r->fix_count) mr_buffer_puts(&lines, r->advice);
    mr_buffer_puts(out, ",\"fix\":");
    mr_text_put_json(out, lines.data ? lines.data : "");
    mr_buffer_free(&lines);
    mr_buffer_puts(out, ",\"fixes\":[");
    for (int i = 0; i < r->fix_count; i++) {
        const mr_hazard_fix *fix = &r->fix[i];
        mr_buffer_printf(out, "%s{\"place\":\"%s\",\"file\":", i ? "," : "",
                         mr_hazard_place_text(fix->place));
        mr_text_put_json(out, fix->where.file);
        mr_buffer_printf(out, ",\"line\":%d,\"text\":", fix->where.line);
        mr_text_put_json(out, fix->text);
        mr_buffer_puts(out, "}");
    }
    mr_buffer_puts(out, "]");
}

static void put_json_tensors(mr_buffer *out, const mr_hazard_report *r) {
    const char *name = r->more;
    mr_buffer_puts(out, ",\"tensors\":[");
    if (r->tensor[0]) mr_text_put_json(out, r->tensor);
    for (uint32_t i = 0; i < r->more_count; i++, name += strlen(name) + 1) {
        mr_buffer_puts(out, ",");
        mr_text_put_json(out, name);
    }
    mr_buffer_puts(out, "]");
}

static void put_json_ranks(mr_buffer *out, const mr_hazard_report *r) {
    if (!r->ranks) return;
    for (uint64_t left = r->ranks; left; left &= left - 1)
        mr_buffer_printf(out, "%s%d", left == r->ranks ? ",\"ranks\":[" : ",",
                         __builtin_ctzll(left));
    mr_buffer_puts(out, "]");
}

void mr_hazard_write_json(const mr_hazard_report *r, mr_buffer *out) {
    mr_buffer_printf(out,
                     "{\"type\":\"%s\",\"number\":%" PRIu64
                     ",\"kind\":\"%s\",\"reason\":\"%s\",\"tensor\":",
                     mr_hazard_kind_is_advice(r->kind) ? "advice" : "hazard", r->number,
                     mr_hazard_kind_text(r->kind), mr_hazard_reason_text(r->reason));
    mr_text_put_json(out, r->tensor);
    put_json_tensors(out, r);
    mr_buffer_printf(out,
                     ",\"bytes\":[%" PRIu64 ",%" PRIu64 "],\"count\":%" PRIu64
                     ",\"stream_pairs\":%u,\"amended\":%s",
                     r->bytes_first, r->bytes_last, r->count, r->stream_pairs,
                     r->amended ? "true" : "false");
    put_json_ranks(out, r);
    put_json_side(out, "first", &r->first);
    put_json_side(out, "second", &r->second);
    mr_buffer_puts(out, ",\"why\":");
    mr_text_put_json(out, r->why);
    put_json_fixes(out, r);
    mr_buffer_puts(out, "}\n");
}
