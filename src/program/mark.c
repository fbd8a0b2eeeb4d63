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
    char bytes[]; /* the counts, then the block: of its commands the references */
};

static const mr_simulator *simulator_of(const mr_player *p) {
    return p->machine->backend->simulator;
}

/* Copies a piece of state into a mark, or back. */
static void move(void *here, char **io_kept, size_t size, bool keeps) {
    if (keeps) memcpy(*io_kept, here, size);
    else memcpy(here, *io_kept, size);
    *io_kept += size;
}

static size_t block_bytes_kept(const mr_player *p) {
    return p->block_bytes - p->command_count * (sizeof *p->commands - sizeof p->commands->refs);
}

static void move_block(mr_player *p, char *kept, bool keeps) {
    char *commands = (char *)p->commands, *end = (char *)(p->commands + p->command_count);
    move(p->block, &kept, (size_t)(commands - p->block), keeps);
    move(end, &kept, (size_t)(p->block + p->block_bytes - end), keeps);
    for (size_t i = 0; i < p->command_count; i++)
        move(&p->commands[i].refs, &kept, sizeof p->commands->refs, keeps);
}

mr_status mr_player_mark_make(mr_player *p, mr_player_mark **out_mark) {
    *out_mark = NULL;
    size_t counts = mr_machine_counts_bytes(p->machine);
    mr_player_mark *mark = malloc(sizeof *mark + counts + block_bytes_kept(p));
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
    move_block(p, mark->bytes + counts, true);
    *out_mark = mark;
    return MR_OK;
}

mr_status mr_player_go_back(mr_player *p, mr_player_mark *mark) {
    if (mark->epoch != p->machine->epoch)
        return mr_fail(MR_CODE_NOT_PERMITTED, "the program cannot go back beyond mr.reset()");
    MR_TRY(simulator_of(p)->restore(p->machine, mark->checkpoint));
    size_t counts = mr_machine_counts_bytes(p->machine);
    mr_machine_counts_load(p->machine, mark->bytes);
    move_block(p, mark->bytes + counts, false);
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
