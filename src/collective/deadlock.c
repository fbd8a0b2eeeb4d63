/* Ranks none of which can go on, and what each waits for. */
#include "collective/calls.h"

/* Ranks of a communicator, as ranks of the world. */
static uint64_t ranks_of(const mr_clique *clique, uint64_t members) {
    uint64_t found = 0;
    for (; members; members &= members - 1)
        found |= (uint64_t)1 << mr_clique_host(clique, (uint32_t)__builtin_ctzll(members));
    return found;
}

void mr_host_tell(mr_collectives *c, uint32_t number, mr_buffer *out) {
    for (size_t i = 0; i < c->calls.count; i++) {
        const pending_call *call = &c->calls.items[i];
        if (call->host != number + 1) continue;
        uint64_t missing = mr_collectives_missing(c, i);
        char title[120], place[MR_COLLECTIVE_PLACE];
        mr_buffer_printf(out, "%s rank %u waits in `%s`", out->size ? ";" : "", number, call->name);
        if (call->where.file)
            mr_buffer_printf(out, " at %s", mr_collective_place(call, place, sizeof place));
        const mr_clique *clique = call->ask.comm->clique;
        mr_buffer_printf(out, ", in %s, for ", mr_clique_describe(clique, title, sizeof title));
        if (missing) mr_ranks_tell(ranks_of(clique, missing), out);
        else mr_buffer_puts(out, "an earlier operation of the communicator");
        return;
    }
}

mr_status mr_hosts_deadlock(mr_collectives *c, uint32_t count, uint64_t ended) {
    mr_buffer text = {0};
    for (uint32_t k = 0; k < count; k++) mr_host_tell(c, k, &text);
    if (ended) {
        mr_buffer_puts(&text, "; ");
        mr_ranks_tell(ended, &text);
        mr_buffer_puts(&text, ended & (ended - 1) ? " have ended" : " has ended");
    }
    mr_status status =
        mr_fail(MR_CODE_NO_PEER, "deadlock of the ranks (R62):%s", text.data ? text.data : "");
    mr_buffer_free(&text);
    return status;
}
