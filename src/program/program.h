/* Programs: what a script asked of a machine, written down so that it can be carried out again without the script.
 *
 * A program is a list of items in the order of the host's calls. Each holds a command of the model (model/command.h)
 * and what came of it: the answer of a query, the values that the host read, the bytes that it wrote, the error. The
 * list is complete: it has all that was asked of the backend. So a player that carries the items out on a fresh
 * virtual machine, with the same chooser, gets the same bytes, times and errors.
 *
 * A program holds no object of the machine that it was recorded on. Streams, events, storages and views are slots,
 * which are numbered in the order in which they were met; an object that the script has freed or lost is a slot like
 * any other. A program does not change after it was recorded, so several players, in several threads, may share one.
 *
 * A player makes its own objects of the slots, once, in one block of memory. Carrying out an item is then one call of
 * the model, without an allocation, and observers of the player's machine are told what those of the recorded machine
 * were told: same numbers, same lines. */
#ifndef MR_PROGRAM_PROGRAM_H
#define MR_PROGRAM_PROGRAM_H

#include "model/observer.h"

typedef struct mr_program mr_program;
typedef struct mr_recorder mr_recorder;
typedef struct mr_player mr_player;

/* ---- recording */

/* Begins to record all that is asked of `machine`, on any backend. Where something has been submitted before, it first
 * waits for all devices; what those commands did is then in the bytes that the program begins with. The errors are
 * those of such a wait.
 * `most_items`: a longer program is cut there and not exact; 0: no bound. */
mr_status mr_program_record(mr_machine *machine, size_t most_items, mr_recorder **out_recorder);

/* Items so far, not counting those inside host functions. */
size_t mr_recorder_count(const mr_recorder *recorder);

/* Ends the recording, at any moment outside of a host function. Takes the recorder, also on failure; the caller owns
 * one reference to the program. OUT_OF_MEMORY: at some moment it was. */
mr_status mr_recorder_finish(mr_recorder *recorder, mr_program **out_program);
void mr_recorder_abandon(mr_recorder *recorder); /* accepts NULL */

/* ---- programs */

void mr_program_retain(const mr_program *program);  /* atomic */
void mr_program_release(const mr_program *program); /* accepts NULL */

size_t mr_program_count(
    const mr_program *program); /* of items, not counting those inside host functions */
size_t mr_program_bytes(const mr_program *program); /* memory that it takes, roughly */

/* NULL: a player with the same chooser and model gets exactly what was recorded. Else why it may not, as a sentence. */
const char *mr_program_inexact(const mr_program *program);

/* What it was recorded on; the texts live as long as the program. */
typedef struct {
    const char *backend; /* "virtual" */
    int device_count;
    const char *model, *chooser; /* at the beginning; NULL: not a virtual GPU */
    bool from_the_start; /* of the machine: times are then equal, too; else only durations are */
} mr_program_facts;
mr_program_facts mr_program_facts_of(const mr_program *program);

/* One item, as a person is told. */
typedef struct {
    mr_command_id kind;
    const char *name;
    mr_site where;
    uint64_t seq; /* 0: of a kind that has no number */
} mr_program_item;
mr_program_item mr_program_item_at(const mr_program *program, size_t i);

/* ---- playing */

typedef struct {
    const mr_backend *backend; /* a simulated one */
    /* NULL: as recorded. Else changes of it in the program are left out, and times after waits are not compared. */
    const char *chooser, *model;
    uint64_t memory_limit; /* as in mr_machine_options */
} mr_player_options;

/* Opens a machine, makes the program's objects for it, and brings it to where the recording began. */
mr_status mr_player_open(const mr_program *program, const mr_player_options *options,
                         mr_player **out_player);
void mr_player_close(mr_player *player); /* accepts NULL; observers must have gone */

/* To attach observers to, before the first item, and to look at. The player owns it. */
mr_machine *mr_player_machine(const mr_player *player);
/* The storage of a slot, or NULL while it does not exist. */
const mr_storage *mr_player_storage(const mr_player *player, uint32_t slot);
size_t mr_player_position(const mr_player *player); /* items carried out */

typedef enum {
    MR_DIFFERS_NOTHING,
    MR_DIFFERS_ANSWER, /* a query, a step, a clock */
    MR_DIFFERS_VALUE,  /* what the host read */
    MR_DIFFERS_TIME,   /* the host's clock after a wait; or at the end */
    MR_DIFFERS_ERROR,  /* another error, or none, or an unexpected one */
    MR_DIFFERS_BYTES,  /* at the end: a tensor's */
} mr_difference_kind;

/* The first item that did not come out as recorded. */
typedef struct {
    mr_difference_kind kind;
    size_t item; /* the count of items: at the end */
    char text[256];
} mr_difference;

/* Carries out the items up to `until` (or all that there are). An item that fails as it did when it was recorded has
 * come out as recorded. *io_difference keeps the first difference over several calls: begin with {0}. After another
 * answer, value or time it goes on; after an error that is not the recorded one it stops, as what follows may need
 * what has failed, and returns the error (also: INTERRUPTED), or MR_OK if the recorded error did not come. */
mr_status mr_player_run(mr_player *player, size_t until, mr_difference *io_difference);

/* What is alive now beside what was at the end of the recording: bytes, clocks, the device's failure. */
void mr_player_compare_end(const mr_player *player, mr_difference *io_difference);

/* All of it: opens, runs, compares, closes. `observer` may be NULL; it is attached before the first item. */
mr_status mr_program_replay(const mr_program *program, const mr_player_options *options,
                            mr_observer *observer, mr_difference *out_difference);

/* A point of the run that a player can return to, as often as wanted: a checkpoint of its machine (simulator.h) with
 * the player's objects and the model's counts. Marks are a stack like checkpoints: going back to one drops those that
 * were made after it. Observers keep what they were told. Going back beyond a mr.reset is refused. */
typedef struct mr_player_mark mr_player_mark;
mr_status mr_player_mark_make(mr_player *player, mr_player_mark **out_mark);
mr_status mr_player_go_back(mr_player *player, mr_player_mark *mark);
void mr_player_mark_drop(mr_player_mark *mark); /* accepts NULL; before the player is closed */

#endif
