/* The results of a run of the judge, and its questions to the checker, which judge.c and beyond.c use. */
#include "waits/parts.h"

int mr_waits_compare_accesses(const void *a, const void *b) {
    const judged_access *x = a, *y = b;
    if (x->seq != y->seq) return x->seq < y->seq ? -1 : 1;
    return x->storage < y->storage ? -1 : x->storage > y->storage;
}

void mr_waits_judge_add(wait_judge *j, new_hazard h) {
    if (h.lost && j->only_hazards) {
        if (!j->lost.lost) j->lost = h;
        return;
    }
    if (!mr_vec_push(&j->found, h) && !j->status)
        j->status = mr_no_memory("for what the hazard checker finds");
    if (j->stop_at_first || j->status) j->stop = true;
}

bool mr_waits_judge_ordered(const wait_judge *j, uint32_t first, uint64_t seq, uint32_t second) {
    mr_stream *of = (mr_stream *)mr_teller_stream(j->teller, first);
    mr_stream *by =
        second == MR_PROGRAM_NONE ? NULL : (mr_stream *)mr_teller_stream(j->teller, second);
    return mr_hazard_is_ordered(j->hazard, of, seq * j->spread, by);
}

void mr_waits_judge_no_memory(wait_judge *j) {
    if (!j->status) j->status = mr_no_memory("for what waits order");
}
