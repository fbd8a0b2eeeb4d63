/* Whether one graph may take another's place in an executable (R43): the same nodes in the same order, with the same
 * edges. Their operands and numbers may differ. */
#include <stdio.h>
#include <string.h>

#include "graph/state.h"

static void differ(char *text, size_t size, uint32_t i, const mr_command *a, const mr_command *b,
                   const char *what) {
    snprintf(text, size, "node %u is %s: `%.40s` at %.80s:%d, and `%.40s` at %.80s:%d", i + 1, what,
             a->name, a->where.file ? a->where.file : "?", a->where.line, b->name,
             b->where.file ? b->where.file : "?", b->where.line);
}

static bool same_kind(const mr_command *a, const mr_command *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case MR_COMMAND_OP:
        if (a->u.op.row != b->u.op.row) return false;
        return !captured_call_of(a) || captured_call_of(a)->same(a, b);
    case MR_COMMAND_COPY: return a->u.copy.direction == b->u.copy.direction;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return true;
}

/* A graph without edges has no list, and memcmp may not get NULL, even for zero bytes. */
static bool same_edges(const mr_graph *a, const graph_node *x, const mr_graph *b,
                       const graph_node *y) {
    if (x->count != y->count) return false;
    return x->count == 0 || memcmp(a->edges.items + x->first, b->edges.items + y->first,
                                   x->count * sizeof *a->edges.items) == 0;
}

bool mr_graph_same(const mr_graph *a, const mr_graph *b, char *text, size_t size) {
    size_t least = a->nodes.count < b->nodes.count ? a->nodes.count : b->nodes.count;
    for (uint32_t i = 0; i < least; i++) {
        const graph_node *x = &a->nodes.items[i], *y = &b->nodes.items[i];
        if (!same_kind(x->command, y->command)) {
            differ(text, size, i, x->command, y->command, "another operation");
            return false;
        }
        if (!same_edges(a, x, b, y)) {
            differ(text, size, i, x->command, y->command, "behind other nodes");
            return false;
        }
        if (x->command->stream->device != y->command->stream->device) {
            differ(text, size, i, x->command, y->command, "on another device");
            return false;
        }
    }
    if (a->nodes.count == b->nodes.count) return true;
    const mr_graph *longer = a->nodes.count > least ? a : b;
    const mr_command *extra = longer->nodes.items[least].command;
    snprintf(text, size,
             "the topology has changed: %zu node%s, and %zu now; the first that only one of "
             "them has is `%.40s` at %.80s:%d",
             a->nodes.count, a->nodes.count == 1 ? "" : "s", b->nodes.count, extra->name,
             extra->where.file ? extra->where.file : "?", extra->where.line);
    return false;
}
