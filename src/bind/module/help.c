/* help: the help texts of the functions, as a page for people (mr.help); as tables for programs (mr.docs, which
 * docs/api.md, the editor stub and the tests use). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "bind/foreign.h"
#include "bind/module/help.h"
#include "bind/internal.h"
#include "bind/nearest.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/module/topics.h"
#include "bind/wrap.h"
#include "hazard/hazard.h"
#include "ops/ids.h"

/* --- visiting all entries ------------------------------------------------- */

typedef struct {
    const mr_class *class; /* NULL for an operation of the table */
    const mr_op *op;       /* else NULL */
    int form;              /* of the operation */
    const char *owner;     /* "mr", "mr.memory", "tensor" */
    char name[48];
    const char *usage, *text;
    bool property;
} entry;

typedef bool (*visitor)(void *context, const entry *e); /* false ends the walk */

static bool visit_op(const mr_op *op, visitor visit, void *context) {
    static const struct {
        int form;
        const char *owner, *suffix;
    } forms[] = {{MR_FORM_METHOD, "tensor", ""},
                 {MR_FORM_INPLACE, "tensor", "_"},
                 {MR_FORM_FUNCTION, "mr", ""}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        entry e = {.op = op,
                   .form = forms[i].form,
                   .owner = forms[i].owner,
                   .usage = op->usage,
                   .text = op->help};
        if (!(op->forms & forms[i].form)) continue;
        snprintf(e.name, sizeof e.name, "%s%s", op->name, forms[i].suffix);
        if (!visit(context, &e)) return false;
    }
    return true;
}

static bool visit_class(const mr_class *class, visitor visit, void *context) {
    for (const mr_function *const *f = class->functions; *f; f++) {
        entry e = {.class = class, .owner = class->name, .usage = (*f)->usage, .text = (*f)->text};
        if (!*e.usage) continue; /* __gc and the like, which users do not call */
        snprintf(e.name, sizeof e.name, "%s", (*f)->name);
        if (!visit(context, &e)) return false;
    }
    for (const mr_property *p = class->properties; p && p->name; p++) {
        entry e = {.class = class,
                   .owner = class->name,
                   .usage = p->type,
                   .text = p->text,
                   .property = true};
        snprintf(e.name, sizeof e.name, "%s", p->name);
        if (!visit(context, &e)) return false;
    }
    return true;
}

static bool registered(lua_State *L, const char *owner); /* is this table there on this backend */

static void visit_all(lua_State *L, visitor visit, void *context) {
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++)
        if (((*class)->kind || registered(L, (*class)->name)) &&
            !visit_class(*class, visit, context))
            return;
    for (int id = MR_OP_FIRST; id < MR_OP_COUNT; id++)
        if (!visit_op(&mr_ops[id], visit, context)) return;
}

static bool registered(lua_State *L, const char *owner) {
    if (!mr_push_table(L, owner)) return false;
    lua_pop(L, 1);
    return true;
}

/* --- mr.docs ------------------------------------------------------------------------------------ */

static bool add_entry(void *context, const entry *e) {
    lua_State *L = context;
    lua_createtable(L, 0, 5);
    lua_pushstring(L, e->owner);
    lua_setfield(L, -2, "owner");
    lua_pushstring(L, e->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, e->usage);
    lua_setfield(L, -2, e->property ? "type" : "usage");
    lua_pushstring(L, e->text);
    lua_setfield(L, -2, "text");
    if (e->class) {
        lua_pushstring(L, e->class->text);
        lua_setfield(L, -2, "part");
    }
    lua_pushstring(L, e->property ? "property" : e->class ? "function" : "operation");
    lua_setfield(L, -2, "kind");
    lua_seti(L, -2, luaL_len(L, -2) + 1);
    return true;
}

static void add_word(lua_State *L, const char *name, const char *kind, const char *text) {
    lua_createtable(L, 0, 3);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, kind);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, text);
    lua_setfield(L, -2, "text");
    lua_seti(L, -2, luaL_len(L, -2) + 1);
}

static void add_words(lua_State *L) {
    mr_hazard_word word;
    lua_newtable(L);
    for (int i = 0; mr_hazard_word_at(i, &word); i++)
        add_word(L, word.word, word.sort, word.meaning);
    for (int i = 0; i < MR_CLAIM_COUNT; i++) {
        const mr_claim_row *row = &mr_claim_rows[i];
        add_word(L, row->key, row->effect == MR_CLAIM_FORBIDS ? "limit" : "condition",
                 row->several);
    }
}

/* The names of PyTorch and CUDA, as a list. */
static void add_foreign(lua_State *L) {
    mr_foreign row;
    lua_newtable(L);
    for (int i = 0; mr_foreign_at(i, &row); i++) add_word(L, row.name, row.owner, row.advice);
}

MR_FUNCTION(
    help_docs, "docs",
    "mr.docs() -> entries: table[], classes: table[], words: table[], foreign: table[]",
    "Returns the documentation as data. entries has {name=, owner=, kind=, usage= or type=, text=, "
    "part=} for each function and property, in the order of the reference page. classes has "
    "{name=, text=} for each class and table. words has {name=, kind=, text=} for each word of the "
    "hazard checker. Its kind is \"kind\" (of hazard), \"reason\", \"advice\", or \"limit\" or "
    "\"condition\" of its verdict. foreign has {name=, kind=, text=} for each name of PyTorch and "
    "CUDA that is not here: where it would stand, and what to write instead.") {
    lua_newtable(L);
    visit_all(L, add_entry, L);
    lua_newtable(L);
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, (*class)->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, (*class)->text);
        lua_setfield(L, -2, "text");
        lua_seti(L, -2, luaL_len(L, -2) + 1);
    }
    add_words(L);
    add_foreign(L);
    return 4;
}

/* --- mr.help ------------------------------------------------------------------------------------ */

/* The query, and the page that is being written. */
typedef struct {
    const char *owner; /* NULL: any */
    const char *name;  /* NULL: all of the owner */
    const char *table; /* "mr.memory" for "memory", if no function has that name; or NULL */
    int found, width;
    bool only_properties; /* only properties were found */
    mr_buffer *page;
    const mr_class *part; /* of the entry that was shown last, in a listing */
    const mr_op *op;      /* the same */
    mr_nearest nearest;
} search;

/* Words in lines; the first is indented by `first`, the others by `rest`. */
static void add_wrapped(const search *s, const char *text, int first, int rest) {
    mr_wrap_words(s->page, text, strlen(text), s->width, first, rest);
    mr_buffer_add(s->page, "\n", 1);
}

/* The usage line of one form of an operation, made from that of the method "x:add(y [, {out=}]) ->
 * tensor": "x:add_(y) -> x", "mr.add(x, y [, {out=}]) -> tensor". */
static void op_usage(const entry *e, char *out, size_t size) {
    const char *colon = strchr(e->usage, ':'), *open = strchr(e->usage, '(');
    if (!colon || !open || e->form == MR_FORM_METHOD || open[-1] == '_') {
        snprintf(out, size, "%s", e->usage);
    } else if (e->form == MR_FORM_INPLACE) {
        const char *end = strstr(open, "[, {out=}]"), *only = strstr(open, "[{out=}]");
        if (only) end = only;
        int kept = end ? (int)(end - open) : (int)strcspn(open, ")");
        while (open[kept - 1] == ' ') kept--;
        snprintf(out, size, "%.*s:%s_%.*s) -> %.*s", (int)(colon - e->usage), e->usage, e->op->name,
                 kept, open, (int)(colon - e->usage), e->usage);
    } else {
        const char *rest = open + 1, *between = *rest == ')' ? "" : *rest == '[' ? " " : ", ";
        const char *comma = *rest == '[' ? "[, " : ""; /* the brackets get the comma */
        if (*comma) rest++;
        snprintf(out, size, "mr.%s(%.*s%s%s%s", e->op->name, (int)(colon - e->usage), e->usage,
                 between, comma, rest);
    }
}

/* "Also mr.add and add_." */
static void add_other_forms(const search *s, const entry *e) {
    char line[160];
    const mr_op *op = e->op;
    bool method = e->form != MR_FORM_METHOD && op->forms & MR_FORM_METHOD;
    bool in_place = e->form != MR_FORM_INPLACE && op->forms & MR_FORM_INPLACE;
    bool function = e->form != MR_FORM_FUNCTION && op->forms & MR_FORM_FUNCTION;
    if (!method && !in_place && !function) return;
    int used = snprintf(line, sizeof line, "Also");
    if (method)
        used +=
            snprintf(line + used, sizeof line - (size_t)used, " `x:%s`, a new tensor;", op->name);
    if (function)
        used +=
            snprintf(line + used, sizeof line - (size_t)used, " `mr.%s`, a function;", op->name);
    if (in_place)
        used += snprintf(line + used, sizeof line - (size_t)used, " `x:%s_`, in place;", op->name);
    line[used - 1] = '.';
    add_wrapped(s, line, 2, 2);
}

static void show_whole(const search *s, const entry *e) {
    char usage[256];
    if (e->property) {
        snprintf(usage, sizeof usage, "%s.%s: %s", e->owner, e->name, e->usage);
        add_wrapped(s, usage, 0, 4);
    } else if (e->op) {
        op_usage(e, usage, sizeof usage);
        add_wrapped(s, usage, 0, 4);
    } else {
        add_wrapped(s, e->usage, 0, 4);
    }
    add_wrapped(s, e->text, 2, 2);
    if (!e->op) return;
    if (e->form == MR_FORM_INPLACE && e->op->forms & MR_FORM_METHOD)
        add_wrapped(s, "In place: the result is written into x, and x is returned.", 2, 2);
    add_other_forms(s, e);
}

/* One entry of a whole class or table; the text of each part stands above it. */
static void list_entry(search *s, const entry *e) {
    char line[256];
    if (s->found == 1 || e->class != s->part) {
        if (s->found > 1) mr_buffer_add(s->page, "\n", 1);
        add_wrapped(s,
                    e->class ? e->class->text
                             : "Operations. The in-place form, if there is one, has the same name "
                               "and `_`. help(\"add\") explains one of them.",
                    0, 0);
        s->part = e->class;
    }
    if (e->property) {
        snprintf(line, sizeof line, ".%s: %s", e->name, e->usage);
        add_wrapped(s, line, 2, 6);
    } else if (e->op) {
        op_usage(e, line, sizeof line);
        add_wrapped(s, line, 2, 6);
    } else {
        add_wrapped(s, e->usage, 2, 6);
    }
}

/* The forms of an operation follow each other. One that is asked for by its bare name is shown once, and
 * a listing has a line for all that belong to one owner. */
static bool show_entry(void *context, const entry *e) {
    search *s = context;
    mr_nearest_offer(&s->nearest, e->name);
    if (s->owner && strcmp(s->owner, e->owner) != 0) return true;
    if (s->name && strcmp(s->name, e->name) != 0) return true;
    if (e->op && e->op == s->op) return true;
    s->op = e->op;
    s->found++;
    s->only_properties &= e->property;
    if (s->name) show_whole(s, e);
    else list_entry(s, e);
    return true;
}

/* "wait_event", "stream.wait_event", "s:wait_event", "mr.memory", "mr.hazard.why", "stream".
 * Finds the longest owner that it may begin with: "mr.hazard" rather than "mr". */
static void name_text(lua_State *L, const char *text, search *s) {
    size_t longest = 0;
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++) {
        size_t length = strlen((*class)->name);
        if (strcmp((*class)->name, text) == 0) {
            s->owner = (*class)->name;
            s->name = NULL;
            return;
        }
        if (strncmp((*class)->name, "mr.", 3) == 0 && strcmp((*class)->name + 3, text) == 0)
            s->table = (*class)->name;
        if (strncmp((*class)->name, text, length) == 0 && strchr(".:", text[length]) &&
            length > longest) {
            longest = length;
            s->owner = (*class)->name;
            s->name = text + length + 1;
        }
    }
    if (!s->owner) {
        const char *colon = strchr(text, ':');
        s->name = colon ? colon + 1 : text;
    }
}

/* "Stream" of "torch.cuda.Stream", but "torch.distributed" as it stands. */
static const char *without_torch(const char *text) {
    bool is_torch = strncmp(text, "torch.", 6) == 0 && !mr_foreign_advice("word", text);
    return is_torch && strrchr(text, '.')[1] ? strrchr(text, '.') + 1 : text;
}

/* The class with this plural, "streams"; NULL: none. */
static const char *owner_of_plural(lua_State *L, const char *text) {
    size_t length = strlen(text);
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++)
        if ((*class)->kind && length > 1 && text[length - 1] == 's' &&
            strlen((*class)->name) == length - 1 && strncmp((*class)->name, text, length - 1) == 0)
            return (*class)->name;
    return NULL;
}

/* Only the second column may have two blanks before it: a line that is too wide is continued at that column. */
static const char overview[] =
    "millrace runs GPU programs with several streams, line by line.\n"
    "  mr.stream(), mr.event()            streams and events; see help(\"stream\"), "
    "help(\"event\")\n"
    "  mr.zeros(3, 4), mr.randn(1000)     tensors; help(\"tensor\") lists what they can do\n"
    "  s:run(function() ... end)          the operations inside run on stream s\n"
    "  s:wait_event(e), s:record_event()  order between streams\n"
    "  mr.synchronize(), s:synchronize()  the host waits\n"
    "  mr.machine                         the virtual GPU: its chooser, its pending work\n"
    "  x:requires_grad_(), y:backward()   gradients; see help(\"autograd\")\n"
    "  mr.nn, mr.optim, mr.data           networks; see help(\"nn\"), help(mr.nn), "
    "help(mr.nn.Module)\n"
    "help(mr.stream), help(\"add_\"), help(\"mr.memory\"), help(\"no-path\"), help(\"R13\") "
    "explain one "
    "thing;\n"
    "help(\"examples\") lists programs to read and run, help(\"prompt\") says what the prompt can "
    "do.\n";

static const char pager; /* its address is a registry key */

void mr_help_set_pager(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &pager);
}

/* A word of the hazard checker's reports. */
static bool show_word(search *s, const char *text) {
    mr_hazard_word word;
    char line[80];
    for (int i = 0; mr_hazard_word_at(i, &word); i++) {
        mr_nearest_offer(&s->nearest, word.word);
        if (strcmp(word.word, text) != 0) continue;
        bool reason = strcmp(word.sort, "reason") == 0, advice = strcmp(word.sort, "advice") == 0;
        snprintf(line, sizeof line, "%s: %s", word.word,
                 reason   ? "a reason of the hazard checker"
                 : advice ? "advice of the hazard checker"
                          : "a kind of hazard");
        add_wrapped(s, line, 0, 4);
        add_wrapped(s, word.meaning, 2, 2);
        add_wrapped(s, "docs/hazards.md explains all of these words.", 2, 2);
        return true;
    }
    return false;
}

/* Pages, examples and words; the list stays on the stack. */
static void offer_topics(lua_State *L, search *s) {
    mr_topics_push_known(L);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TSTRING; i++) {
        mr_nearest_offer(&s->nearest, lua_tostring(L, -1)); /* the list holds it */
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static int not_found(lua_State *L, search *s) {
    if (!s->name) return mr_misuse(L, "help: there is no `%s` on this backend", s->owner);
    const char *advice = mr_foreign_advice(s->owner, s->name);
    if (advice) return mr_misuse(L, "help: nothing is called `%s`: %s", s->name, advice);
    offer_topics(L, s);
    const char *meant = mr_nearest_found(&s->nearest);
    if (meant)
        return mr_misuse(L, "help: nothing is called `%s`: did you mean `%s`?", s->name, meant);
    return mr_misuse(L, "help: nothing is called `%s`: help() shows the first steps", s->name);
}

/* The kind of a module or an optimiser, which are tables, from the metatable. NULL: it is neither. */
static const char *owner_of_table(lua_State *L, int index) {
    if (!lua_istable(L, index) || luaL_getmetafield(L, index, "help") == LUA_TNIL) return NULL;
    const char *name = lua_tostring(L, -1), *owner = NULL;
    for (const mr_class *const *class = mr_bind_module(L)->classes; name && *class; class ++)
        if (strcmp((*class)->name, name) == 0) owner = (*class)->name;
    lua_pop(L, 1);
    return owner;
}

const char *mr_help_owner(lua_State *L, int index) {
    index = lua_absindex(L, index);
    const char *owner = owner_of_table(L, index);
    if (owner) return owner;
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++) {
        bool found = (*class)->kind && mr_test(L, index, (*class)->kind);
        if (!(*class)->kind && mr_push_table(L, (*class)->name)) {
            found = lua_rawequal(L, index, -1);
            lua_pop(L, 1);
        }
        if (found) return (*class)->name;
    }
    return NULL;
}

void mr_help_push_class(lua_State *L, const char *name) {
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++) {
        if (!(*class)->kind || strcmp((*class)->name, name) != 0) continue;
        lua_rawgetp(L, LUA_REGISTRYINDEX, (*class)->kind);
        return;
    }
    lua_pushnil(L);
}

typedef struct {
    lua_State *L;
    const char *owner, *name;
} usage_search;

static bool push_usage(void *context, const entry *e) {
    char usage[256];
    const usage_search *s = context;
    if (e->property || strcmp(s->owner, e->owner) != 0 || strcmp(s->name, e->name) != 0)
        return true;
    if (e->op) op_usage(e, usage, sizeof usage);
    lua_pushstring(s->L, e->op ? usage : e->usage);
    return false;
}

void mr_help_push_usage(lua_State *L, int index) {
    usage_search s = {.L = L};
    int top = lua_gettop(L);
    s.name = lua_isfunction(L, index) ? mr_registered_name(L, index, &s.owner) : NULL;
    if (s.name) visit_all(L, push_usage, &s);
    if (lua_gettop(L) == top) lua_pushnil(L);
}

/* Writes the text on top of the stack, by the prompt's pager if there is one. */
static int write_page(lua_State *L) {
    size_t size;
    const char *text = lua_tolstring(L, -1, &size);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &pager) == LUA_TFUNCTION) {
        lua_insert(L, -2);
        lua_call(L, 1, 0);
        return 0;
    }
    mr_print_text(L, text, size, false);
    mr_output_flush(stdout);
    return 0;
}

MR_FUNCTION(
    help_help, "help", "mr.help([what: any])",
    "Prints help about a function, an object, or a name such as \"add_\", \"stream\", "
    "\"mr.memory\" or \"one-way\" (a word of the hazard checker). Other topics are an ordering "
    "rule (\"R13\"), \"examples\" or one of them (\"fan_out\"), and any word in the pages of docs/ "
    "(\"overlap\"). Without an argument, it prints the first steps. The line length is the width "
    "of the terminal, or the value of COLUMNS.") {
    search s = {.width = mr_page_width(), .only_properties = true};
    if (lua_isnoneornil(L, 1)) {
        s.page = mr_push_buffer(L);
        mr_wrap_lines(s.page, overview, sizeof overview - 1, s.width);
        mr_buffer_to_text(L);
        return write_page(L);
    }
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING) {
        lua_pushstring(L, without_torch(lua_tostring(L, 1)));
        lua_replace(L, 1);
        name_text(L, lua_tostring(L, 1), &s);
    } else if (lua_isfunction(L, 1)) {
        s.name = mr_registered_name(L, 1, &s.owner);
        if (!s.name) return mr_misuse(L, "help: this function is not one of millrace's functions");
    } else {
        s.owner = mr_help_owner(L, 1);
        if (!s.owner) return mr_misuse(L, "help: there is no help about %s", mr_type_text(L, 1));
    }
    mr_nearest_begin(&s.nearest, s.name ? s.name : "");
    s.page = mr_push_buffer(L);
    bool is_word = lua_type(L, 1) == LUA_TSTRING && show_word(&s, lua_tostring(L, 1));
    visit_all(L, show_entry, &s);
    const char *plural = s.found && s.only_properties && lua_type(L, 1) == LUA_TSTRING
                             ? owner_of_plural(L, lua_tostring(L, 1))
                             : NULL;
    if (plural || (!s.found && s.table)) {
        mr_buffer_free(s.page);
        s.found = 0;
        s.owner = plural ? plural : s.table;
        s.name = NULL;
        visit_all(L, show_entry, &s);
    }
    mr_buffer_to_text(L);
    if (!s.found && !is_word && !mr_topics_push_page(L, 1, mr_page_width()))
        return not_found(L, &s);
    if (s.found) mr_topics_add_same_name(L, 1);
    return write_page(L);
}

static const mr_function *const help_functions[] = {&help_help_function, &help_docs_function, NULL};
const mr_class mr_help_class = {"mr", "Help.", help_functions, NULL, NULL};

void mr_open_help(lua_State *L) {
    mr_table_open(L, &mr_help_class);
}
