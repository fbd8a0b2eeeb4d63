/* The order by the rules alone, without a decision. */
#include "explore/state.h"

/* The settings decide the choices that CUDA leaves open besides the order. `weakly`: each is made so that it orders as
 * little as possible. */
static void place(branch *b, uint32_t i, bool said_yes, bool weakly) {
    order *o = &b->order;
    item_class class = (item_class)b->classes[i];
    bool asked, is_open = order_is_open(o, i, &asked);
    if (is_open && weakly) asked = class == ITEM_COPY; /* it returns early; a free does not wait */
    if (class == ITEM_QUERY) asked = said_yes;
    if (order_has_nodes(class)) order_place_nodes(o, i, asked);
    if (class == ITEM_ALLOC) b->may_miss[i] = order_may_miss(o, i);
    order_leave(o, i, asked);
}

void rules_place(branch *b, uint32_t i, bool said_yes) {
    place(b, i, said_yes, false);
}

/* ---- what is ordered by more than CUDA guarantees */

static bool has_node(const order *o, uint32_t i) {
    return o->first_node[i] < o->first_node[i + 1];
}

static void say_stricter(explorer *e, const branch *b, uint32_t first, uint32_t second) {
    mr_program_item f = mr_program_item_at(b->program, first),
                    s = mr_program_item_at(b->program, second);
    mr_site at_first = explore_shown(e, f.where), at_second = explore_shown(e, s.where);
    explore_incomplete(
        e,
        "the virtual GPU has `%s` (%s:%d) before `%s` (%s:%d) in each of them, which "
        "CUDA does not guarantee",
        f.name, at_first.file ? at_first.file : "?", at_first.line, s.name,
        at_second.file ? at_second.file : "?", at_second.line);
}

void rules_find_stricter(explorer *e, branch *b) {
    const mr_explore_race *races = e->races.items;
    /* The program does not separate its ranks: a wait of one rank's host would wrongly order the work of the other
     * ranks. */
    if (!e->races.count || turns_are_open(b)) return;
    order_forget(&b->order);
    for (uint32_t i = 0; i < b->count; i++)
        place(b, i, mr_program_item_at(b->program, i).came_true, e->options.unspecified);
    for (size_t k = 0; k < e->races.count; k++) {
        uint32_t first = sides_item(b, races[k].first), second = sides_item(b, races[k].second);
        if (first >= second || second == SIDES_NONE) continue;
        if (!has_node(&b->order, first) || !has_node(&b->order, second)) continue;
        if (!order_comes_after(&b->order, second, first)) continue;
        say_stricter(e, b, first, second);
        break;
    }
    order_forget(&b->order);
}
