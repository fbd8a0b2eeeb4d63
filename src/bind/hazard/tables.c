/* The checker's reports and totals as Lua tables: see tables.h. */
#include "bind/hazard/tables.h"

#include <string.h>

#include "bind/field.h"

/* --- reports as tables -------------------------------------------------------------------------- */

static void set_side(lua_State *L, const char *key, const mr_hazard_side *side) {
    if (!side->op[0]) return;
    lua_createtable(L, 0, 6);
    mr_set_text(L, "op", side->op);
    mr_set_text(L, "access", mr_hazard_access_text(side));
    mr_set_text(L, "stream", side->stream);
    if (side->rank) mr_set_integer(L, "rank", side->rank - 1u);
    mr_set_integer(L, "seq", side->seq);
    if (side->assumed) mr_set_text(L, "assumed", mr_assumed_text((mr_assumed)side->assumed));
    if (side->atomic) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "atomic");
    }
    mr_push_site(L, side->where);
    lua_setfield(L, -2, "where");
    if (side->launched.file) {
        mr_push_site(L, side->launched);
        lua_setfield(L, -2, "launched");
    }
    lua_setfield(L, -2, key);
}

static void set_fixes(lua_State *L, const mr_hazard_report *report) {
    luaL_Buffer lines;
    lua_createtable(L, report->fix_count, 0);
    for (int i = 0; i < report->fix_count; i++) {
        const mr_hazard_fix *fix = &report->fix[i];
        lua_createtable(L, 0, 4);
        mr_set_text(L, "place", mr_hazard_place_text(fix->place));
        mr_set_text(L, "file", fix->where.file);
        mr_set_integer(L, "line", (uint64_t)fix->where.line);
        mr_set_text(L, "text", fix->text);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "fixes");
    luaL_buffinit(L, &lines);
    for (int i = 0; i < report->fix_count; i++) {
        if (i) luaL_addchar(&lines, '\n');
        luaL_addstring(&lines, report->fix[i].text);
    }
    if (!report->fix_count) luaL_addstring(&lines, report->advice);
    luaL_pushresult(&lines);
    lua_setfield(L, -2, "fix");
}

static void set_tensors(lua_State *L, const mr_hazard_report *report) {
    const char *name = report->more;
    lua_createtable(L, (int)report->more_count + 1, 0);
    if (report->tensor[0]) {
        lua_pushstring(L, report->tensor);
        lua_rawseti(L, -2, 1);
    }
    for (uint32_t i = 0; i < report->more_count; i++, name += strlen(name) + 1) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, (int)i + 2);
    }
    lua_setfield(L, -2, "tensors");
}

/* A list, where ranks made the calls. */
static void set_ranks(lua_State *L, uint64_t ranks) {
    if (!ranks) return;
    lua_createtable(L, __builtin_popcountll(ranks), 0);
    for (int i = 1; ranks; ranks &= ranks - 1) {
        lua_pushinteger(L, __builtin_ctzll(ranks));
        lua_rawseti(L, -2, i++);
    }
    lua_setfield(L, -2, "ranks");
}

/* tostring of a report: its message, without the end of the last line. */
static int text_of_report(lua_State *L) {
    size_t size = 0;
    const char *text =
        lua_getfield(L, 1, "message") == LUA_TSTRING ? lua_tolstring(L, -1, &size) : "";
    while (size && text[size - 1] == '\n') size--;
    lua_pushlstring(L, text, size);
    return 1;
}

/* tostring of a list of reports: their texts. */
static int text_of_reports(lua_State *L) {
    lua_Integer count = luaL_len(L, 1);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    if (!count) luaL_addstring(&text, "no reports");
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1) luaL_addchar(&text, '\n');
        lua_geti(L, 1, i);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    return 1;
}

static void give_text(lua_State *L, const char *kind, lua_CFunction text) {
    if (luaL_newmetatable(L, kind)) {
        lua_pushcfunction(L, text);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
}

static void push_report(lua_State *L, const mr_hazard_report *report) {
    lua_createtable(L, 0, 15);
    give_text(L, "millrace.hazard.report", text_of_report);
    mr_set_text(L, "kind", mr_hazard_kind_text(report->kind));
    mr_set_text(L, "reason", mr_hazard_reason_text(report->reason));
    if (report->tensor[0]) mr_set_text(L, "tensor", report->tensor);
    set_tensors(L, report);
    mr_set_text(L, "why", report->why);
    mr_set_integer(L, "count", report->count);
    mr_set_integer(L, "stream_pairs", report->stream_pairs);
    lua_pushboolean(L, report->amended);
    lua_setfield(L, -2, "amended");
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, (lua_Integer)report->bytes_first);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, (lua_Integer)report->bytes_last);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, "bytes");
    set_ranks(L, report->ranks);
    set_side(L, "first", &report->first);
    set_side(L, "second", &report->second);
    set_fixes(L, report);
    mr_hazard_write_text(report, false, mr_push_buffer(L));
    mr_buffer_to_text(L);
    lua_setfield(L, -2, "message");
}

void mr_copy_reports(const mr_hazard *hazard, size_t first, size_t count, bool advice,
                     mr_buffer *copies) {
    for (size_t i = first; i < count; i++) {
        const mr_hazard_report *report = mr_hazard_report_at(hazard, i);
        if (mr_hazard_kind_is_advice(report->kind) != advice || report->withdrawn) continue;
        mr_buffer_add(copies, (const char *)report, sizeof *report);
    }
}

void mr_push_reports(lua_State *L) {
    const mr_buffer *copies = lua_touserdata(L, -1);
    const mr_hazard_report *reports = (const mr_hazard_report *)(const void *)copies->data;
    int count = (int)(copies->size / sizeof *reports);
    if (copies->failed) mr_raise(L, mr_no_memory("for the reports"));
    lua_createtable(L, count, 0);
    give_text(L, "millrace.hazard.reports", text_of_reports);
    for (int i = 0; i < count; i++) {
        push_report(L, &reports[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* --- totals ------------------------------------------------------------------------------------- */

/* A list of the clauses that concern the explorer, with their keys and what they leave of the claim. */
static void push_unexplored(lua_State *L, const mr_hazard_totals *t) {
    const mr_claims explored = mr_claims_explored(&t->claims);
    lua_newtable(L); /* keys */
    lua_newtable(L);
    mr_set_text(L, "claim", mr_claim_text(mr_claims_judge(&explored)));
    for (int i = 0, count = 0; i < MR_CLAIM_COUNT; i++) {
        if (!explored.count[i]) continue;
        mr_claims_write_row(&explored, (mr_claim_id)i, mr_push_buffer(L));
        mr_buffer_to_text(L);
        lua_rawseti(L, -2, ++count);
        lua_pushstring(L, mr_claim_rows[i].key);
        lua_rawseti(L, -3, count);
    }
    lua_insert(L, -2);
    lua_setfield(L, -2, "keys");
    lua_setfield(L, -2, "unexplored");
}

/* The clauses that forbid the claim; without any, its conditions. */
static void push_not_followed(lua_State *L, const mr_hazard_totals *t) {
    bool is_forbidden = mr_claims_judge(&t->claims) == MR_CLAIM_IS_NONE;
    lua_newtable(L);
    for (int i = 0, count = 0; i < MR_CLAIM_COUNT; i++) {
        bool is_said = !is_forbidden || mr_claim_rows[i].effect == MR_CLAIM_FORBIDS;
        if (!t->claims.count[i] || !is_said) continue;
        mr_claims_write_row(&t->claims, (mr_claim_id)i, mr_push_buffer(L));
        mr_buffer_to_text(L);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "not_followed");
}

void mr_push_totals(lua_State *L, const mr_hazard_totals *t) {
    lua_createtable(L, 0, 8 + MR_CLAIM_COUNT);
    push_unexplored(L, t);
    push_not_followed(L, t);
    mr_set_text(L, "claim", mr_claim_text(mr_hazard_claim(t)));
    mr_set_integer(L, "operations", t->operations);
    mr_set_integer(L, "hazards", t->hazards);
    mr_set_integer(L, "reports", t->reports);
    mr_set_integer(L, "follow_ups", t->follow_ups);
    mr_set_integer(L, "checked_apart", t->checked_apart);
    for (int i = 0; i < MR_CLAIM_COUNT; i++)
        mr_set_integer(L, mr_claim_rows[i].key, t->claims.count[i]);
}
