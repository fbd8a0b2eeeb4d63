/* Marks: the machine's checkpoint, the player's block of objects, and the model's counts. */
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "model/given.h"
#include "program/player.h"

struct mr_player_mark {
    mr_player *player;
    mr_checkpoint *checkpoint; /* owned */
    size_t position, dropped;
    uint32_t epoch;
    char bytes[]; /* the counts, then the block */
};

static const mr_simulator *simulator_of(const mr_player *p) {
    return p->machine->backend->simulator;
}

mr_status mr_player_mark_make(mr_player *p, mr_player_mark **out_mark) {
    *out_mark = NULL;
    size_t counts = mr_machine_counts_bytes(p->machine);
    mr_player_mark *mark = malloc(sizeof *mark + counts + p->block_bytes);
    if (!mark) return mr_no_memory("to mark a point of a program");
    mark->player = p;
    mark->position = p->position;
    mark->dropped = p->dropped;
    mark->epoch = p->machine->epoch;
    mr_status status = simulator_of(p)->checkpoint(p->machine, &mark->checkpoint);
    if (status) {
        free(mark);
        return status;
    }
    /* After the checkpoint, which holds references to commands of the block. */
    mr_machine_counts_save(p->machine, mark->bytes);
    memcpy(mark->bytes + counts, p->block, p->block_bytes);
    *out_mark = mark;
    return MR_OK;
}

mr_status mr_player_go_back(mr_player *p, mr_player_mark *mark) {
    if (mark->epoch != p->machine->epoch)
        return mr_fail(MR_CODE_NOT_PERMITTED, "the program cannot go back beyond mr.reset()");
    MR_TRY(simulator_of(p)->restore(p->machine, mark->checkpoint));
    size_t counts = mr_machine_counts_bytes(p->machine);
    mr_machine_counts_load(p->machine, mark->bytes);
    memcpy(p->block, mark->bytes + counts, p->block_bytes);
    mr_error_destroy(p->host_work);
    p->host_work = MR_OK;
    p->position = mark->position;
    p->dropped = mark->dropped;
    return MR_OK;
}

void mr_player_mark_drop(mr_player_mark *mark) {
    if (!mark) return;
    mr_player *p = mark->player;
    simulator_of(p)->checkpoint_drop(p->machine, mark->checkpoint);
    free(mark);
}
