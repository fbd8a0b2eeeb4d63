/* help: the documentation that stands beside the bodies, as text for a person (mr.help) and as tables
 * for programs (mr.docs, from which docs/api.md, the editor stub and the tests come). */
#include <stdio.h>
#include <string.h>

#include "bind/internal.h"
#include "bind/nearest.h"

/* --- walking over everything that is documented ------------------------------------------------- */

typedef struct {
    const mr_class *class; /* NULL for an operation of the table */
    const char *owner;     /* "mr", "mr.memory", "tensor" */
    char name[48];
    const char *usage, *text;
    bool property;
} entry;

typedef bool (*visitor)(void *context, const entry *e); /* false ends the walk */

static bool is_object(const mr_class *class) {
    return class->properties != NULL;
}

static bool visit_op(const mr_op *op, visitor visit, void *context) {
    static const struct {
        int form;
        const char *owner, *suffix;
    } forms[] = {{MR_FORM_METHOD, "tensor", ""},
                 {MR_FORM_INPLACE, "tensor", "_"},
                 {MR_FORM_FUNCTION, "mr", ""}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        entry e = {.owner = forms[i].owner, .usage = op->usage, .text = op->help};
        if (!(op->forms & forms[i].form)) continue;
        snprintf(e.name, sizeof e.name, "%s%s", op->name, forms[i].suffix);
        if (!visit(context, &e)) return false;
    }
    return true;
}

static bool visit_class(const mr_class *class, visitor visit, void *context) {
    for (const mr_function *const *f = class->functions; *f; f++) {
        entry e = {.class = class, .owner = class->name, .usage = (*f)->usage, .text = (*f)->text};
        if (!*e.usage) continue; /* __gc and its like: nothing that a person calls */
        snprintf(e.name, sizeof e.name, "%s", (*f)->name);
        if (!visit(context, &e)) return false;
    }
    for (const mr_property *p = class->properties; p && p->name; p++) {
        entry e = {class, class->name, "", p->type, p->text, true};
        snprintf(e.name, sizeof e.name, "%s", p->name);
        if (!visit(context, &e)) return false;
    }
    return true;
}

static bool registered(lua_State *L, const char *owner); /* is this table there on this backend */

static void visit_all(lua_State *L, visitor visit, void *context) {
    for (const mr_class *const *class = mr_classes; *class; class++)
        if ((is_object(*class) || registered(L, (*class)->name)) &&
            !visit_class(*class, visit, context))
            return;
    for (int i = 0; i < mr_op_count; i++)
        if (!visit_op(&mr_ops[i], visit, context)) return;
}

/* Pushes the table "mr" or "mr.memory"; false and nothing if it is not there. */
static bool push_table(lua_State *L, const char *owner) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "millrace");
    lua_remove(L, -2);
    if (owner[2] == '.') {
        lua_getfield(L, -1, owner + 3);
        lua_remove(L, -2);
    }
    if (lua_istable(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

static bool registered(lua_State *L, const char *owner) {
    if (!push_table(L, owner)) return false;
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

MR_FUNCTION(help_docs, "docs", "mr.docs() -> entries: table[], classes: table[]",
            "The documentation as data: {owner=, name=, kind=, usage= or type=, text=, part=} for "
            "everything, in the order of the reference page; then {name=, text=} for each class and table.") {
    lua_newtable(L);
    visit_all(L, add_entry, L);
    lua_newtable(L);
    for (const mr_class *const *class = mr_classes; *class; class++) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, (*class)->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, (*class)->text);
        lua_setfield(L, -2, "text");
        lua_seti(L, -2, luaL_len(L, -2) + 1);
    }
    return 2;
}

/* --- mr.help ------------------------------------------------------------------------------------ */

/* What is looked for, and the page as it grows. */
typedef struct {
    lua_State *L;
    const char *owner; /* NULL: any */
    const char *name;  /* NULL: all of the owner */
    int found;
    luaL_Buffer *page;
    mr_nearest nearest;
} search;

static void add_wrapped(luaL_Buffer *page, const char *text, int indent) {
    int column = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column && column + 1 + (int)word > 92) {
            luaL_addchar(page, '\n');
            column = 0;
        }
        if (!column) {
            for (int i = 0; i < indent; i++) luaL_addchar(page, ' ');
            column = indent;
        } else {
            luaL_addchar(page, ' ');
            column++;
        }
        luaL_addlstring(page, text, word);
        column += (int)word;
        text += word;
        while (*text == ' ') text++;
    }
    luaL_addchar(page, '\n');
}

static bool show_entry(void *context, const entry *e) {
    search *s = context;
    char line[160];
    mr_nearest_offer(&s->nearest, e->name);
    if (s->owner && strcmp(s->owner, e->owner) != 0) return true;
    if (s->name && strcmp(s->name, e->name) != 0) return true;
    s->found++;
    if (e->property)
        snprintf(line, sizeof line, "%s.%s: %s", e->owner, e->name, e->usage);
    else
        snprintf(line, sizeof line, "%s", e->usage);
    if (!s->name) { /* a whole class: one line each, the first sentence */
        luaL_addstring(s->page, "  ");
        luaL_addstring(s->page, e->property ? e->name : line);
        luaL_addchar(s->page, '\n');
        return true;
    }
    luaL_addstring(s->page, line);
    luaL_addchar(s->page, '\n');
    add_wrapped(s->page, e->text, 2);
    return true;
}

/* Finds the name under which a bound function was registered: "mr.zeros", "stream.wait_event". */
static bool name_function(lua_State *L, int arg, search *s) {
    for (const mr_class *const *class = mr_classes; *class; class++) {
        bool there = true;
        if (is_object(*class)) {
            lua_rawgetp(L, LUA_REGISTRYINDEX, *class);
            lua_getfield(L, -1, "methods");
            lua_remove(L, -2);
        } else {
            there = push_table(L, (*class)->name);
        }
        if (!there) continue;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
            if (!lua_rawequal(L, -1, arg) || lua_type(L, -2) != LUA_TSTRING) continue;
            s->owner = (*class)->name;
            s->name = lua_tostring(L, -2); /* stays: the table holds it */
            lua_pop(L, 3);
            return true;
        }
        lua_pop(L, 1);
    }
    return false;
}

/* "wait_event", "stream.wait_event", "s:wait_event", "mr.memory", "stream". */
static void name_text(const char *text, search *s) {
    for (const mr_class *const *class = mr_classes; *class; class++) {
        size_t length = strlen((*class)->name);
        if (strcmp((*class)->name, text) == 0) {
            s->owner = (*class)->name;
            return;
        }
        if (strncmp((*class)->name, text, length) == 0 && strchr(".:", text[length])) {
            s->owner = (*class)->name; /* the longest match stands last: "mr" before "mr.memory" */
            s->name = text + length + 1;
        }
    }
    if (!s->owner) {
        const char *colon = strchr(text, ':');
        s->name = colon ? colon + 1 : text;
    }
}

static void add_class_text(search *s) {
    for (const mr_class *const *class = mr_classes; *class; class++)
        if (strcmp((*class)->name, s->owner) == 0) add_wrapped(s->page, (*class)->text, 0);
}

static const char overview[] =
    "millrace builds multi-stream GPU programs, line by line.\n"
    "  mr.stream()  mr.event()                streams and events; see help(\"stream\"), help(\"event\")\n"
    "  mr.zeros(3, 4)  mr.randn(1000)         tensors; help(\"tensor\") lists what they can do\n"
    "  s:run(function() ... end)              what is inside goes to stream s\n"
    "  s:wait_event(e)  s:record_event()      order between streams\n"
    "  mr.synchronize()  s:synchronize()      the host waits\n"
    "  mr.machine                             the virtual GPU: who decides, what is pending\n"
    "help(mr.stream), help(\"add_\"), help(\"mr.memory\") explain one thing.\n";

MR_FUNCTION(help_help, "help", "mr.help([what: any])",
            "Prints what there is to know about a function, an object, or a name such as \"add_\", "
            "\"stream\" or \"mr.memory\"; without an argument, where to begin.") {
    luaL_Buffer page;
    search s = {.L = L};
    if (lua_isnoneornil(L, 1)) {
        fputs(overview, stdout);
        return 0;
    }
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING) {
        name_text(lua_tostring(L, 1), &s);
    } else if (lua_isfunction(L, 1)) {
        if (!name_function(L, 1, &s)) return mr_misuse(L, "help: that function is not one of millrace's");
    } else {
        for (const mr_class *const *class = mr_classes; *class && !s.owner; class++) {
            if (is_object(*class)) {
                if (mr_test(L, 1, *class)) s.owner = (*class)->name;
            } else if (push_table(L, (*class)->name)) {
                if (lua_rawequal(L, 1, -1)) s.owner = (*class)->name;
                lua_pop(L, 1);
            }
        }
        if (!s.owner) return mr_misuse(L, "help: there is nothing to say about %s", mr_type_text(L, 1));
    }
    mr_nearest_begin(&s.nearest, s.name ? s.name : "");
    luaL_buffinit(L, &page);
    s.page = &page;
    if (!s.name) add_class_text(&s);
    visit_all(L, show_entry, &s);
    luaL_pushresult(&page);
    if (!s.found) {
        const char *meant = mr_nearest_found(&s.nearest);
        if (meant) return mr_misuse(L, "help: nothing is called `%s`: did you mean `%s`?", s.name, meant);
        return mr_misuse(L, "help: nothing is called `%s`: help() says where to begin", s.name);
    }
    fputs(lua_tostring(L, -1), stdout);
    return 0;
}

static const mr_function *const help_functions[] = {&help_help_function, &help_docs_function, NULL};
const mr_class mr_help_class = {"mr", "Help.", help_functions, NULL};

void mr_open_help(lua_State *L, mr_machine *machine) {
    mr_table_open(L, machine, &mr_help_class);
}
