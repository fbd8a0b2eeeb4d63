/* The structures of the checker, private to this folder.
 *
 * Time is the host's order of submission: a command's seq. "Actor i up to seq n" is then a complete
 * description of a prefix of a stream, and a clock is a map from actors to such prefixes.
 *
 * The order is stored in four places, so that the cost of a command does not depend on the number of
 * streams. A command of actor t now comes after (i, n) if any of these says so:
 *     - i is t: a stream is in order (R1);
 *     - the host knows (i, n): what the host has waited for is before everything that it submits;
 *     - t's own clock knows it, from the waits in t;
 *     - t takes part in its device's legacy barrier, and that knows it (R3).
 * Only order.c uses these four.
 *
 * Clocks. Each stream has a vector clock. For each other stream, it holds the number of that stream's last command
 * that is known to be complete. The host has a clock, too. An event record saves a copy of its stream's clock. A
 * wait, a synchronize or a successful query merges that copy into the waiting clock. So a later record does not
 * change earlier waits. The default stream's barrier is stored as two clocks for each device (one collects, one
 * releases) instead of an edge to every blocking stream. Clocks are shared until one is written (copy on write). A
 * closed stream's slot is reused.
 *
 * Epochs. An access is a pair of stream and command number. It is ordered before the current command if the current
 * stream's clock has reached that number. This is one comparison, for any number of streams. Most commands need only
 * this comparison, because the same stream uses the same view again.
 *
 * Histories. A storage has a list of the accesses that a later access may still race with. An access leaves the list
 * when a later access to the same bytes is ordered after it and replaces it. While host functions are pending, an
 * access also stays if a host function could race with it but not with its replacement (`function.c`). Strided views
 * are compared exactly. When a storage has more than a few views, an index by position is used, so a thousand
 * disjoint views cost no more than one.
 *
 * Detection is separate from reporting. `order.c`, `function.c`, `history.c`, `index.c`, `view.c`, `check.c`,
 * `touch.c` and `lifetime.c` run for every command and do not use names. `draft.c`, `reason.c`, `fix.c`, `names.c` and
 * `write.c` run only for a pair that is about to be reported. They search a log of the last 4096 commands for the waits
 * and records that the script did make, and describe what is missing. So an error in a sentence cannot change a
 * verdict. The place of a fix and the variables that are in scope there come from the script's text (`src/script`) and
 * the Lua stack, which tells what runs now (`bind/place.c`, `bind/variable.c`). There is one report for each pair of
 * places. Other pairs that the same fix orders are only counted. A fix covers the first stream up to a known point;
 * hazards with later work are reported separately.
 *
 * Uninitialised bytes. `unset.c` keeps which bytes no command has written, exactly, and only while a storage has
 * some: one flag of the history says so. A copy passes this state on to its destination. A read that comes after a
 * host function which has not run is judged once the function has run, in the order of submission.
 *
 * Only guarantees count. The checker uses the order of the host's calls, not the times at which they ran, and the
 * rules that CUDA guarantees. So its verdict holds for every schedule, and is the same on every backend. */
#ifndef MR_HAZARD_STATE_H
#define MR_HAZARD_STATE_H

#include "base/map.h"
#include "base/slab.h"
#include "hazard/function.h"
#include "hazard/history.h"
#include "hazard/log.h"
#include "hazard/mutate.h"
#include "hazard/unset.h"
#include "hazard/withdraw.h"

/* A line that waits, records or synchronises the device, and whether it could go: only if it did
 * nothing at every occurrence, which is known at the end. */
typedef struct {
    mr_site where;
    mr_command_id kind; /* MR_COMMAND_WAIT, RECORD or DEVICE_SYNC */
    bool needed;        /* at some occurrence */
    bool fresh;         /* it occurred since the last clear */
    bool told;
    bool recorded;     /* a wait: its event had been recorded, at some occurrence */
    bool idle;         /* a wait: its stream did nothing after it, at some occurrence */
    uint64_t seq;      /* of the first occurrence */
    uint64_t count;    /* occurrences */
    int busy;          /* a device synchronise: streams that it waited for, at most */
    uint32_t producer; /* and the one whose work was used behind it; 0: none so far */
    const char *op;
    char stream[64], event[80], of[64]; /* `of`: whose record it was */
} advice_place;

typedef struct {
    uint32_t first, second; /* ids of streams, 0: the host */
    uint64_t seq;           /* an order reported as missing, up to here */
    uint64_t from;          /* and for what the second stream was given from here on */
} blame;

typedef struct {
    mr_name *tensor, *file; /* a reference each; NULL: any */
    int kind;
    int line;
    uint64_t count;
} ignore_rule;

typedef struct {
    mr_hazard_report *report;
    bool own;
} held_report;

typedef struct found_pair found_pair;

/* What a stretch of work that stands apart puts back when it ends. */
typedef struct {
    bool on;
    mr_hazard_apart kind;
    mr_hazard_mode mode, mode_before_check;
    bool advice, checking, returned, returned_before_check;
    size_t first, check_first; /* reports */
    uint64_t last_storage;     /* that was there before */
    mr_hazard_totals totals, totals_before_check;
    bool judging;
    mr_hazard_mode judged_in; /* mr_hazard_judge_begin: the mode before it, and what there was */
    size_t judged_first;
    mr_hazard_totals before_judged;
} stretch;

struct mr_hazard {
    mr_observer observer;
    mr_machine *machine;
    mr_hazard_hooks hooks;
    mr_hazard_watcher watcher;
    mr_hazard_mode mode, mode_before_check;
    bool advice, checking, out_of_memory;
    bool returned, returned_before_check; /* the code that is judged */
    size_t check_first;
    mr_hazard_totals totals_before_check;
    const char *prompt; /* how names of entries of a prompt begin, or NULL */
    const char *script; /* the file that is run, or NULL; its folder has that many bytes */
    size_t folder_size; /* with the '/' */
    uint64_t opened;    /* what was submitted before the check, up to here */
    uint64_t off_since; /* the seq that was next when it was made, or switched off last */
    stretch apart;

    /* order */
    actor host_actor;
    actor *actors;       /* all of them, linked */
    snapshot *snapshots; /* likewise */
    /* of the members of the meeting that is being submitted: what each came after */
    snapshot *entered;
    uint64_t *host;                       /* by slot: what the host that runs knows; one of these */
    uint64_t *hosts[1 + MR_MEETING_MOST]; /* hosts.c: the outer host's, and by rank from 1 */
    uint16_t host_number;
    uint32_t worlds; /* how often the outer host went on after ranks */
    uint32_t slots, slot_capacity;
    MR_VEC(uint32_t) free_slots;
    uint32_t zombies, zombies_swept; /* actors without stream that still hold a slot */
    uint64_t floor;                  /* everything up to here counts as ordered */
    barrier *barriers;               /* by device */
    int barrier_count;
    MR_VEC(function_queue) functions; /* pending ones; no queue is empty */
    host_past *host_past;             /* the newest one; one reference */
    bool functions_may_be_done;       /* the host has waited since they were submitted */
    uint64_t functions_noted;         /* up to here they are counted, if they have to be */
    mr_slab clocks;
    MR_VEC(unset_event) unset_events;  /* by seq */
    MR_VEC(unset_before) unset_before; /* of launches that have not begun */
    size_t unset_before_bytes;
    uint64_t first_storage; /* made since it was switched on: those with a greater id */

    /* history */
    history *histories;
    mr_slab history_slab, small_entries, large_entries;
    size_t entry_count;
    MR_VEC(entry *) found;
    MR_VEC(entry *) replaced; /* of those found, by the access at hand */
    uint64_t stamp;

    /* explaining */
    log_line *log; /* ring, by order of arrival; kept when the checker is switched off */
    uint64_t logged;
    MR_VEC(blame) blames;
    struct {
        size_t report; /* index + 1; 0: unused */
        uint32_t first, second;
        uint64_t first_seq;
    } recent[8]; /* that a later wait may explain */
    unsigned recent_next;
    MR_VEC(mr_hazard_report *) reports;
    MR_MAP(uint32_t) places; /* in `reports`, by a hash of the pair of places */
    MR_VEC(ignore_rule) ignores;
    mr_hazard_totals totals, before_clear; /* since the last clear, and what was before */
    uint64_t numbered;                     /* reports, over all clears */
    MR_VEC(held_report) held;              /* of the command in progress */
    /* error mode: what the command in progress, or the next one, is refused with */
    mr_status refusal;

    /* withdrawing */
    MR_VEC(touched_set) touched; /* oldest first */
    size_t touched_ranges;       /* of all of them */
    MR_VEC(open_pair) open_pairs;
    bool may_settle; /* there are open pairs that have not been judged */
    bool has_missed; /* and a launch has told what it touched while reports were held */

    /* advice */
    struct {
        /* an asynchronous pageable copy: advice unless a synchronise follows at once */
        bool pending;
        uint32_t stream;
        mr_site where;
        uint64_t seq;
    } pageable;
    MR_VEC(advice_place) advised; /* in the order of the first occurrence */
    MR_MAP(uint32_t) advised_at;  /* by a hash of the place */

    /* collected tensors whose free was unordered: reported when the script does anything more */
    MR_VEC(mr_hazard_report *) collected;
};

/* Host functions touch host memory only: using the device in one is an error (R46). */
static inline bool mr_hazard_functions_reach(const checker *c, const mr_storage *storage) {
    return c->functions.count && storage->kind != MR_MEMORY_DEVICE;
}

/* Whether a command of t comes after (a, seq): the question asked on every access. */
static inline bool mr_hazard_knows(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    if (a == t && mr_order_takes(&t->lane, MR_PLACE_LANE)) return true;
    if (seq <= c->floor || c->host[a->slot] >= seq) return true;
    return mr_hazard_knows_slowly(c, t, a, seq);
}

extern const mr_observer mr_hazard_observer; /* check.c */

/* touch.c. `only_look`: find hazards, change nothing. */
/* `staged`: a copy whose source, operand 1, the host has read before. */
void mr_hazard_touch_operands(checker *c, const mr_command *command, actor *a, bool staged,
                              bool only_look);
/* The host reads the source of a staged copy, behind the stream of `a`. */
void mr_hazard_read_staged(checker *c, const mr_command *command, actor *a, bool only_look);
/* HOST_ACCESS, also of a host function that runs. */
void mr_hazard_host_access(checker *c, const mr_command *command, bool only_look);

/* lifetime.c */
/* A tensor that Lua's collector took: there is no line of the script at which to raise anything. */
static inline bool mr_hazard_is_collected(const mr_command *command) {
    return command->kind == MR_COMMAND_FREE && !command->where.file;
}
void mr_hazard_alloc(checker *c, actor *t, const mr_command *command);
/* `only_look`: find hazards, change nothing. */
void mr_hazard_free_memory(checker *c, actor *t, const mr_command *command, bool only_look);

/* collected.c */
void mr_hazard_flush_collected(checker *c);
void mr_hazard_drop_collected(checker *c);

#endif
