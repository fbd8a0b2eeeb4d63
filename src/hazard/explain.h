/* From an unordered pair to a report: the hazard, the reason, and the fix. Detection calls
 * mr_hazard_pair_found; nothing here changes a verdict. */
#ifndef MR_HAZARD_EXPLAIN_H
#define MR_HAZARD_EXPLAIN_H

#include "hazard/state.h"
#include "model/capture.h"

/* An unordered pair, as detection hands it over. `first` and `second` point into the history or the
 * stack and are valid only during the call. */
struct found_pair {
    mr_hazard_kind kind;
    history *history;
    const mr_tensor *tensor; /* of the second; NULL for a free */
    actor *first, *second;
    uint64_t first_seq, second_seq;
    uint8_t first_access, second_access;
    const char *first_op, *second_op;
    mr_site first_where, second_where;
    /* where the second was submitted, if that was earlier; otherwise no file */
    mr_site submitted;
    const byte_view *first_view, *second_view; /* NULL: the whole storage */
    const char *first_name;
    /* the command in progress, with all its operands; NULL: an ALLOC or FREE */
    const mr_command *command;
    /* the same command is ordered after another stream's work on its operands */
    bool covered_other;
    uint64_t unset_bytes; /* of an uninitialised read: how many */
    mr_site unset_made;   /* and where they were allocated, if they came by a copy */
    bool advisory;
    bool first_merged; /* the first stands for several launches (entry) */
    bool by_scope;     /* a free at the end of a <close> variable's block */
    bool only_look;    /* error mode: the command has not run, and may be checked again */
    /* second_where is the line of this call of a function of mr.graph.auto, which did the second; NULL: it is not */
    const mr_function_call *call;
};

/* report.c: counts or reports the pair, which detection has found unordered. */
void mr_hazard_pair_found(checker *c, const found_pair *pair);
void mr_hazard_publish(checker *c, const mr_hazard_report *report);
/* A wait of `t` may come after a use that was reported. */
void mr_hazard_amend(checker *c, const actor *t, const mr_command *command);

/* draft.c: tells the watcher about the pair. */
void mr_hazard_tell_found(const checker *c, const found_pair *pair);
void mr_hazard_tell_unspecified(const checker *c, const found_pair *pair);
void mr_hazard_draft(const checker *c, const found_pair *pair, mr_hazard_report *report);

/* kernel.c */
/* Streams whose launches may be unfinished, on the device with that index; < 0: on any. */
uint64_t mr_hazard_kernels_left(const checker *c, int device);
/* Reported only by a simulated device: a race or an unwritten read inside a launch. */
void mr_hazard_found_in_kernel(mr_observer *observer, const mr_command *command,
                               const mr_kernel_finding *finding);
void mr_hazard_explain(const checker *c, const found_pair *pair,
                       mr_hazard_report *report); /* reason.c */
void mr_hazard_find_fix(const checker *c, const found_pair *pair,
                        mr_hazard_report *report); /* fix.c */

/* work.c: for a first access by an asynchronous collective whose work is in no variable any more. */
/* The code that waits for it after the line of its call: `work:wait()`. False: no variable holds the work there. */
bool mr_hazard_work_wait(const checker *c, const found_pair *pair, const mr_script_spot *behind,
                         char *out, size_t size);
/* The same at `spot`, where the variable `work` holds it. False: no expression leads to the stream that waits. */
bool mr_hazard_wait_of_work(const checker *c, const found_pair *pair, const char *work,
                            const mr_script_spot *spot, char *out, size_t size);
/* Whether the script dropped the work; waiting for it would be the shortest fix. */
bool mr_hazard_work_is_lost(const checker *c, const found_pair *pair);

/* relay.c */
/* For a second access by a collective whose own call first makes its stream wait for `bound_stream` (mr.dist with
 * `async`): that wait. Otherwise NULL. */
const log_line *mr_hazard_wait_of_call(const checker *c, const found_pair *pair);
/* The last stream before *io_before that waited for the first one. *io_before is a seq, and becomes that of the wait.
 * The stream comes after the first stream's commands up to *out_covered. NULL: none. */
const actor *mr_hazard_behind_first(const checker *c, const found_pair *pair, uint64_t *io_before,
                                    mr_site *out_where, uint64_t *out_covered);
const actor *mr_hazard_find_actor(const checker *c, uint32_t id); /* NULL: it is gone */

/* launched.c */
/* Whether the second uses a graph's result without coming after a launch of that graph. */
bool mr_hazard_is_before_launch(const found_pair *pair);
bool mr_hazard_is_of_one_launch(const checker *c, const found_pair *pair);
/* The lines that a fix goes by, where an access is a node of a graph: those of the launches; for two nodes of one
 * launch, those in its capture. Otherwise no files. */
void mr_hazard_outer_places(const checker *c, const found_pair *pair, mr_site *out_first,
                            mr_site *out_second);
/* The line of a node in the log; for an access inside a host function, that of the function. NULL: it is gone. */
const log_line *mr_hazard_captured_line(const checker *c, uint64_t seq);
/* The same pair; for an access that is a node of a graph, with the place and the stream of the launch. */
void mr_hazard_seen_outside(const checker *c, const found_pair *pair, found_pair *out);
/* Where a function of mr.graph.auto does the second, and the first is older than that call: puts the place of the call
 * into the pair. */
void mr_hazard_see_call(const checker *c, found_pair *pair);

/* one_launch.c: reason and fix of such a pair. */
void mr_hazard_explain_one_launch(const checker *c, const found_pair *pair,
                                  mr_hazard_report *report);

#endif
