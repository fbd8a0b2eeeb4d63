/* The order by the rules alone, without a decision. */
#include "explore/state.h"

void rules_place(branch *b, uint32_t i, bool said_yes) {
    order *o = &b->order;
    item_class class = (item_class)b->classes[i];
    bool asked;
    order_is_open(o, i, &asked);
    if (class == ITEM_QUERY) asked = said_yes;
    if (order_has_nodes(class)) order_enter(o, i);
    for (uint32_t n = o->first_node[i]; n < o->first_node[i + 1] && order_has_nodes(class); n++) {
        order_place(o, n, order_scratch(o));
        o->words[order_scratch(o) + n / 64] |= (uint64_t)1 << n % 64;
    }
    if (class == ITEM_ALLOC) b->may_miss[i] = order_may_miss(o, i);
    order_leave(o, i, asked);
}
