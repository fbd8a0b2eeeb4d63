/* The inside of a player, private to this folder. */
#ifndef MR_PROGRAM_PLAYER_H
#define MR_PROGRAM_PLAYER_H

#include "program/state.h"

/* The context of the player's commands of host functions. */
typedef struct {
    mr_player *player;
    const item *item;
} function_context;

struct mr_player {
    const mr_program *program;
    mr_machine *machine;
    uint64_t start_time;
    bool keep_chooser, keep_model; /* the caller's, whatever the program says */
    const mr_program_edit *edit;   /* or NULL */
    size_t added;                  /* additions of the edit carried out so far */
    uint64_t spread;               /* the factor for numbers of commands */
    MR_VEC(mr_event *) extra;      /* the edit's events, a reference each */

    /* One block (build.c), in this order. */
    char *block;
    size_t block_bytes;
    mr_stream *streams; /* by slot; those of devices are not used */
    mr_event *events;
    mr_storage *storages;
    mr_tensor *views;
    mr_operand *operands;
    mr_command *commands; /* only their references change */
    size_t command_count;
    function_context *functions;
    /* [0]: how many; from 1: host storages whose memory goes as soon as no command uses it */
    uint32_t *due;
    mr_meeting **meetings; /* by the program's; a reference each */

    mr_stream **stream_at;   /* by slot; those of devices are the machine's own */
    mr_command **command_of; /* by item, then by inner item; NULL: it has none */
    /* The users of host storage i are those from users_from[i] to [i + 1]: indices of commands. A host function uses
     * what its items do. */
    uint32_t *users;
    size_t *users_from;
    bool made_inside; /* host functions make memory, which does not exist before they run */

    mr_status (*run_function)(void *context);
    size_t position, dropped; /* items carried out, and drops */
    /* the reader of a value: an access of a host function; 0: the script itself */
    uint64_t reader;
    mr_difference *difference; /* of the run that is under way */
    bool stopped;              /* an unexpected error, or an expected one that did not come */
    mr_status host_work;       /* how the last operation of the host ended; owned */
};

static inline mr_command *command_at(const mr_player *p, const item *it) {
    const mr_program *program = p->program;
    size_t inner = (size_t)(it - program->inner.items);
    if (it >= program->items.items && it < program->items.items + program->items.count)
        return p->command_of[it - program->items.items];
    return p->command_of[program->items.count + inner];
}

/* build.c */
/* `run_function`: the host function of all commands of that kind, called with its function_context. */
mr_status mr_player_build(mr_player *p, mr_status (*run_function)(void *context));
void mr_player_free_parts(mr_player *p); /* what it has made, and its reference to the program */
/* Streams of the devices, which are new after a reset; `epoch` counts from 1. */
void mr_player_find_default_streams(mr_player *p, uint32_t epoch);

/* play.c */
mr_status mr_player_run_function(void *context);

#endif
