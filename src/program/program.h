/* Programs: a script's requests to a machine, recorded so that they can be carried out again without the script.
 *
 * A program is a list of items in the order of the host's calls. Each holds a command of the model (model/command.h)
 * and its result. That is the answer of a query, the values that the host read, the bytes that the host wrote, or the
 * error. The list is complete: it has each request to the backend. So a player that carries the items out on a fresh
 * virtual machine, with the same chooser, gets the same bytes, times and errors.
 *
 * A program holds no object of the machine that it was recorded on. Streams, events, storages and views are slots,
 * which are numbered in the order in which they were met. An object that the script has freed or lost is a slot like
 * any other. A program does not change after it was recorded, so several players, in several threads, may share one.
 *
 * A player makes its own objects from the slots, once, in one block of memory. Carrying out an item is then one call of
 * the model, without an allocation. Observers of the player's machine are told the same as those of the recorded
 * machine, with the same numbers and lines. */
#ifndef MR_PROGRAM_PROGRAM_H
#define MR_PROGRAM_PROGRAM_H

#include "base/buffer.h"
#include "model/observer.h"

typedef struct mr_program mr_program;
typedef struct mr_recorder mr_recorder;
typedef struct mr_player mr_player;

/* ---- recording */

/* Begins to record all requests to `machine`, on any backend. If commands were submitted before, it first waits for all
 * devices; their results are then in the initial bytes of the program. The errors are those of such a wait.
 * `most_items`: a longer program is cut there, and is not exact; 0: no bound. */
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

/* The number of items, without those inside host functions. */
size_t mr_program_count(const mr_program *program);

/* NULL: a player with the same chooser and model reproduces the recording exactly. Otherwise the reason why it may not,
 * as a sentence. */
const char *mr_program_inexact(const mr_program *program);

size_t mr_program_bytes(const mr_program *program);      /* of memory, about */
size_t mr_program_host_bytes(const mr_program *program); /* of storages that are on no device */

/* The machine on which it was recorded; the texts live as long as the program. */
typedef struct {
    const char *backend; /* "virtual" */
    int device_count;
    const char *model, *chooser; /* at the beginning; NULL: not a virtual GPU */
    /* recorded from the machine's start: times are then equal, too; otherwise only durations are */
    bool from_the_start;
    bool cut;           /* there were more items than the recorder was to keep */
    uint64_t first_seq; /* the number that its first command could have */
} mr_program_facts;
mr_program_facts mr_program_facts_of(const mr_program *program);

#define MR_PROGRAM_NONE UINT32_MAX /* no slot */

/* Whether the first `until` items of both make the same requests, like two calls of a function that read the same
 * values. Numbers of objects and results (values, times) are not compared. False: text names the first difference. */
bool mr_program_same(const mr_program *a, const mr_program *b, size_t until, char *text,
                     size_t size);

/* The slot of a storage of the recorded machine by its id; MR_PROGRAM_NONE: the program does not use it. */
uint32_t mr_program_storage_slot(const mr_program *program, uint64_t id);

/* One item: the request and its result. Objects are slots, a device is its index; MR_PROGRAM_NONE: it names none. */
typedef struct {
    mr_command_id kind;
    const char *name;
    mr_site where;
    mr_site launched; /* of a graph's launch: its line; else no file */
    uint8_t launch;   /* with it: MR_LAUNCH_*; the record that ends the launch has MR_LAUNCH_NONE */
    uint64_t seq;     /* 0: of a kind that has no number */
    bool came_true;   /* false: it failed, or the query said no */
    bool failed;      /* false: it came true, or the query said no */
    bool has_error;   /* its call returned an error; also where it came true all the same */
    uint32_t stream;
    uint32_t event, other_event; /* ELAPSED: the time from `event` to `other_event` */
    uint32_t storage;            /* the storage that it makes, drops or marks; not an operand */
    uint32_t device;             /* that it names; else that of its stream, or of its storage */
    /* RECORD: its own number; WAIT, EVENT_SYNC, EVENT_QUERY: the record's; 0: none */
    uint64_t bound;
    uint32_t operand_count;      /* mr_program_operand_at */
    const mr_op *row;            /* OP; NULL: it has none */
    bool is_read_back;           /* COPY: to the host, and the call returns when it is done */
    bool meets;                  /* it is one of a meeting of several ranks or devices (R61) */
    uint8_t rank;                /* the rank that made the call, from 1; 0: none, or unknown */
    uint32_t inner, inner_count; /* HOST_FUNCTION: its actions, see mr_player_inner_at */
    /* The objects that a player made for the item, which live as long as the player; without a player, NULL. */
    /* the command that is carried out; NULL: none is made beforehand */
    const mr_command *command;
    const mr_stream *stream_object; /* of `stream`; NULL: none */
    const mr_operand *operands;     /* operand_count of them */
} mr_program_item;
mr_program_item mr_program_item_at(const mr_program *program, size_t i);
/* For loops over long programs that look at few items. */
mr_command_id mr_program_kind_at(const mr_program *program, size_t i);
uint32_t mr_program_stream_of(const mr_program *program, size_t i);
/* Whether it succeeded, or said no, without an error, and is in no meeting. */
bool mr_program_is_plain(const mr_program *program, size_t i);

/* The access of operand `k` of item i: a view without a storage, the storage's slot and id, and the kind of access. */
typedef struct {
    const mr_tensor *view;
    uint32_t storage;
    uint64_t storage_id;
    const char *name; /* the tensor's or the storage's; NULL: it has none */
    uint8_t access;
} mr_program_operand;
mr_program_operand mr_program_operand_at(const mr_program *program, size_t i, uint32_t k);
/* Likewise the actions of a host function: `i` from its `inner` on. */
mr_program_item mr_program_inner_at(const mr_program *program, uint32_t i);
mr_program_operand mr_program_inner_operand_at(const mr_program *program, uint32_t i, uint32_t k);

typedef struct {
    uint64_t id, bytes;
    mr_memory_kind kind;
    uint32_t stream;  /* slot, of the allocation */
    int device;       /* of host memory: 0 */
    const char *name; /* NULL: it has none */
    mr_site made;
} mr_program_storage;
size_t mr_program_storage_count(const mr_program *program);
mr_program_storage mr_program_storage_at(const mr_program *program, uint32_t slot);

typedef struct {
    uint32_t id;
    mr_stream_kind kind;
    int device;
    bool blocking;
    const char *name; /* NULL: unnamed */
    mr_site where;
} mr_program_stream;
size_t mr_program_stream_count(const mr_program *program);
mr_program_stream mr_program_stream_at(const mr_program *program, uint32_t slot);

/* ---- a program with changes */

/* An additional command before item `before`. It uses events of the edit's own. */
typedef struct {
    size_t before;
    mr_command_id kind; /* RECORD, WAIT or EVENT_SYNC */
    uint32_t stream;    /* slot; EVENT_SYNC: none */
    uint32_t event;     /* below event_count; recorded before it is waited for */
    mr_site where;
} mr_program_addition;

/* Functions that take it borrow it as long as their result is used. */
typedef struct {
    const bool *left_out; /* by item; NULL: none. A function's own items go with the function */
    const mr_program_addition *added; /* in the order of `before` */
    size_t added_count;
    uint32_t event_count;
} mr_program_edit;

/* Numbers of commands are multiplied by this where an edit adds some, so that those come between. */
#define MR_PROGRAM_SPREAD 4096

/* ---- telling: calls observers as if the program were carried out */

/* Objects of a program on a machine that carries out no command: for observers that need only the requests, such as the
 * hazard checker. A host function counts as run right after it was submitted. */
typedef struct mr_teller mr_teller;
mr_status mr_teller_open(const mr_program *program, mr_teller **out_teller);
void mr_teller_close(mr_teller *teller); /* accepts NULL; its machine must have no more observers */
mr_machine *mr_teller_machine(const mr_teller *teller);

typedef struct {
    const mr_program_edit *edit; /* NULL: as recorded */
    uint64_t spread;             /* of numbers: 1, or MR_PROGRAM_SPREAD with additions */
    size_t until;                /* items before this one; SIZE_MAX: all */
    const bool *stop;            /* no more items once it is true; NULL: never */
    /* Optional: called before item i, which may be left out. Also for items without an observer's call. */
    void (*next)(void *context, size_t i, bool left_out);
    void *context;
} mr_telling;

/* Call this right before observers are added for a telling: numbers and objects are as at the beginning. */
void mr_teller_rewind(mr_teller *teller, uint64_t spread);
/* Tells the observers of the teller's machine, from the beginning on. OUT_OF_MEMORY is the only failure. */
mr_status mr_teller_tell(mr_teller *teller, const mr_telling *telling);
/* The stream of a slot, on that machine. */
const mr_stream *mr_teller_stream(const mr_teller *teller, uint32_t slot);

/* ---- playing */

typedef struct {
    const mr_backend *backend;   /* a simulated one */
    const mr_program_edit *edit; /* NULL: none. Times, values and answers are then not compared */
    /* times only: no operation is computed, no value compared */
    bool without_bodies;
    /* NULL: as recorded. Otherwise the program's own changes of it are ignored, and times after waits are not
     * compared. */
    const char *chooser, *model;
    uint64_t memory_limit; /* as in mr_machine_options */
} mr_player_options;

/* Opens a machine, makes the program's objects for it, and brings it to the initial state of the recording. */
mr_status mr_player_open(const mr_program *program, const mr_player_options *options,
                         mr_player **out_player);
void mr_player_close(mr_player *player); /* accepts NULL; observers must have gone */

/* To attach observers to, before the first item, and to look at. The player owns it. */
mr_machine *mr_player_machine(const mr_player *player);
/* The storage of a slot, or NULL while it does not exist. */
const mr_storage *mr_player_storage(const mr_player *player, uint32_t slot);
size_t mr_player_position(const mr_player *player); /* items carried out */
/* Leaves out these items from now on; NULL: none. An edit with additions must be given when the player is opened. */
void mr_player_edit(mr_player *player, const mr_program_edit *edit);

typedef enum {
    MR_DIFFERS_NOTHING,
    MR_DIFFERS_ANSWER, /* a query, a step, a clock */
    MR_DIFFERS_VALUE,  /* what the host read */
    MR_DIFFERS_TIME,   /* the host's clock after a wait; or at the end */
    MR_DIFFERS_ERROR,  /* another error, or none, or an unexpected one */
    MR_DIFFERS_BYTES,  /* at the end: a tensor's */
} mr_difference_kind;

/* The first item whose result differs from the recording. */
typedef struct {
    mr_difference_kind kind;
    size_t item; /* the count of items: at the end */
    /* a hash of all different answers and values, and of their readers */
    uint64_t value;
    char text[256];
} mr_difference;

/* Carries out the items up to `until` (or all that there are). An item that fails as in the recording is no difference.
 * *io_difference keeps the first difference over several calls: begin with {0}. It goes on after another answer, value
 * or time. It stops after an error that was not recorded, since later items may depend on it. Then it returns the error
 * (also: INTERRUPTED), or MR_OK if the recorded error did not come. */
mr_status mr_player_run(mr_player *player, size_t until, mr_difference *io_difference);
/* The place in an error of a player is a text of its program. Makes `machine` keep the text before the program is
 * freed. Returns the error. */
mr_status mr_player_error_outlives(mr_machine *machine, mr_status error);

/* Lets the device take steps that the chooser wants, between two items; values that host functions then read are
 * compared, too. */
mr_status mr_player_let_move(mr_player *player, mr_difference *io_difference);

/* Compares the state now with that at the end of the recording: bytes, clocks, the device's
 * failure. */
void mr_player_compare_end(const mr_player *player, mr_difference *io_difference);

/* An item with the objects that the player made for it. */
mr_program_item mr_player_item_at(const mr_player *player, size_t i);
mr_program_item mr_player_inner_at(const mr_player *player, uint32_t i);
size_t mr_player_item_count(const mr_player *player);
size_t mr_player_stream_count(const mr_player *player); /* slots */
size_t mr_player_event_count(const mr_player *player);
size_t mr_player_storage_count(const mr_player *player);
/* The stream of a slot, as in its commands. */
const mr_stream *mr_player_stream(const mr_player *player, uint32_t slot);
/* Appends the bytes that `view` covers, of the storage of this slot; false: it does not exist any more. */
bool mr_player_read(const mr_player *player, uint32_t slot, const mr_tensor *view, mr_buffer *out);

/* The same of any tensor that the CPU can reach. */
void mr_program_read(const mr_tensor *view, mr_buffer *out);

/* A point of the run that a player can return to, as often as wanted: a checkpoint of its machine (simulator.h) with
 * the player's objects and the model's counts. Marks are a stack like checkpoints: going back to one drops those that
 * were made after it. Observers keep what they were told. Going back beyond a mr.reset is refused. */
typedef struct mr_player_mark mr_player_mark;
mr_status mr_player_mark_make(mr_player *player, mr_player_mark **out_mark);
mr_status mr_player_go_back(mr_player *player, mr_player_mark *mark);
void mr_player_mark_drop(mr_player_mark *mark); /* accepts NULL; before the player is closed */

#endif
