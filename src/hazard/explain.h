/* Explaining: from an unordered pair to a report that says what is wrong, why, and what fixes it. Detection calls
 * mr_hazard_pair_found; nothing here changes a verdict. */
#ifndef MR_HAZARD_EXPLAIN_H
#define MR_HAZARD_EXPLAIN_H

#include "hazard/state.h"

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
    /* where the second was given to its stream, if that was before; or no file */
    mr_site submitted;
    const byte_view *first_view, *second_view; /* NULL: the whole storage */
    const char *first_name;
    /* that is being looked at, with all its operands; NULL: an ALLOC or FREE */
    const mr_command *command;
    /* the same command is ordered after another stream's work on its operands */
    bool covered_other;
    uint64_t unset_bytes; /* of an uninitialised read: how many */
    mr_site unset_made;   /* and where they were allocated, if a copy has brought them */
    bool advisory;
    bool first_merged; /* the first stands for several launches (entry) */
    bool only_look;    /* error mode: it has not happened, and may be looked at again */
};

/* report.c: counts it, or reports it; whatever it may take, the pair has been found unordered. */
void mr_hazard_pair_found(checker *c, const found_pair *pair);
void mr_hazard_publish(checker *c, const mr_hazard_report *report);
/* A wait of `t` may come after a use that was reported. */
void mr_hazard_amend(checker *c, const actor *t, const mr_command *command);

/* draft.c: tells the watcher of it. */
void mr_hazard_tell_found(const checker *c, const found_pair *pair);
void mr_hazard_draft(const checker *c, const found_pair *pair, mr_hazard_report *report);

/* ignore.c: whether a rule suppresses it; the rule counts it, unless this is `only_look`. */
bool mr_hazard_ignored(checker *c, const mr_hazard_report *draft, bool only_look);
/* Whether it is an entry at the prompt: "mr:7", in which 7 is no line. */
bool mr_hazard_is_entry(const checker *c, const char *file);

/* list.c: adds to the report of this pair of places, or makes it; *out_new then. The draft gets its number and
 * count. NULL: ignored, or no room. */
mr_hazard_report *mr_hazard_report_add(checker *c, mr_hazard_report *draft, bool *out_new);
/* The listed report of these places; NULL: there is none. */
mr_hazard_report *mr_hazard_report_of(checker *c, mr_hazard_kind kind, mr_site first,
                                      mr_site second);
/* One of the last, which nobody has seen: what it counted are follow-ups. */
void mr_hazard_report_remove(checker *c, mr_hazard_report *report);
/* Takes it off the list, with all that it counted. */
void mr_hazard_report_withdraw(checker *c, mr_hazard_report *report);

/* amend.c: True: it is one more pair of streams at the report's places. */
bool mr_hazard_add_streams(mr_hazard_report *r, uint32_t first, uint32_t second);
/* One fix is for one pair of streams, and other memory may need one of its own: what `draft` of the same places
 * has and `r` has not becomes part of `r`. The first streams that `r` does not name are told. */
void mr_hazard_merge(checker *c, mr_hazard_report *r, const mr_hazard_report *draft);
/* Whether the pair has to be explained again: it may need lines that the report does not have. */
bool mr_hazard_may_add(const mr_hazard_report *r, const found_pair *pair);

/* What has become part of reports since they were amended. */
void mr_hazard_write_rest(checker *c);

/* blame.c: the fix between these streams that was proposed last; NULL: none. */
blame *mr_hazard_blame_of(const checker *c, const found_pair *pair);
/* Whether that fix orders commands with these numbers; b may be NULL. */
bool mr_hazard_blame_explains(const blame *b, uint64_t first_seq, uint64_t second_seq);
/* The last command of the first stream that a fix like that of `report` would order, at this place. */
uint64_t mr_hazard_fix_reach(const checker *c, const found_pair *pair,
                             const mr_hazard_report *report);
/* Remembers the fix of `report`: later pairs that it orders are follow-ups. */
void mr_hazard_blame_pair(checker *c, const found_pair *pair, const mr_hazard_report *report);
/* Whether the fix of a race that was reported orders this pair, too. */
bool mr_hazard_is_ordered_by_fix(const checker *c, const mr_hazard_report *draft);

/* merge.c: one command may race on many tensors, and what is of one report is written as one. A report is held
 * until its command has been looked at as a whole. */
/* To be published by mr_hazard_publish_held; `own`: then freed. */
void mr_hazard_hold(checker *c, mr_hazard_report *report, bool own);
void mr_hazard_publish_held(checker *c);
/* A new report: the command at hand may come to the race whose fix orders the others only after those. The held ones
 * that it orders become part of it. False: there is none. */
bool mr_hazard_take_over(checker *c, mr_hazard_report *report);
/* held.c */
mr_hazard_report *mr_hazard_held(const checker *c, uint64_t number); /* NULL: it is not held */
/* The report of this command, if one is held, whose fix orders these two streams. */
mr_hazard_report *mr_hazard_held_for(const checker *c, const found_pair *pair);
void mr_hazard_add_tensor(mr_hazard_report *report, const char *name);
/* True: `draft`, of the same places, needs lines that `report` did not have; it has them now. */
bool mr_hazard_add_fixes(mr_hazard_report *report, const mr_hazard_report *draft);
/* check.c: what the call in progress is refused with, which is over then; MR_OK: nothing. */
mr_status mr_hazard_refuse(checker *c);

/* open_pairs.c */
/* Whether it may turn out that the two touch no byte in common: then the pair must hide nothing. */
bool mr_hazard_may_withdraw(const checker *c, const found_pair *pair);
/* The pair has been counted in `report`. False: nothing will be known of it. */
bool mr_hazard_open_pair(checker *c, const found_pair *pair, mr_hazard_report *report);
/* The report, or each from that number on, is about to go. */
void mr_hazard_close_pairs(checker *c, const mr_hazard_report *report);
void mr_hazard_close_pairs_from(checker *c, uint64_t number);
/* withdraw.c */
/* Nobody will tell what this launch touches. */
void mr_hazard_touched_unknown(checker *c, uint64_t seq);
void mr_hazard_touched(mr_observer *observer, const mr_command *command,
                       const mr_kernel_touched *touched);
/* Judges the open pairs whose launches have run. Nothing may be held. */
void mr_hazard_settle(checker *c);
void mr_hazard_withdraw_forget(checker *c); /* what launches touched, and the open pairs */

/* kernel.c */
/* Only a simulated device tells what happens inside a launch. */
/* Streams whose launches may not have finished: on the device with that index; < 0: on any. */
uint64_t mr_hazard_kernels_left(const checker *c, int device);
void mr_hazard_found_in_kernel(mr_observer *observer, const mr_command *command,
                               const mr_kernel_finding *finding);
/* names.c: what a person calls it: its name, a variable that holds it, or what it is. */
void mr_hazard_storage_text(const checker *c, const mr_storage *storage, char *out, size_t size);

void mr_hazard_explain(const checker *c, const found_pair *pair,
                       mr_hazard_report *report); /* reason.c */
void mr_hazard_find_fix(const checker *c, const found_pair *pair,
                        mr_hazard_report *report); /* fix.c */
/* fix.c: the place in front of the second access; false: a line cannot be put there. */
bool mr_hazard_before_second(const checker *c, const found_pair *pair, mr_script_spot *out_spot);

/* launched.c */
/* The second uses what a graph makes, and comes after no launch of it. */
bool mr_hazard_is_before_launch(const found_pair *pair);
bool mr_hazard_is_of_one_launch(const checker *c, const found_pair *pair);
/* The same pair with the place and the stream of a launch where an access is a node of it. */
void mr_hazard_seen_outside(const checker *c, const found_pair *pair, found_pair *out);

/* one_launch.c: reason and fix of such a pair. */
void mr_hazard_explain_one_launch(const checker *c, const found_pair *pair,
                                  mr_hazard_report *report);

/* names.c: what a person calls it, and an expression that a script can use. */
#define NAME_SIZE 64
void mr_hazard_stream_text(const checker *c, const actor *a, char *out, size_t size);
/* An expression for it at that place; false: nothing that the script has there leads to it. */
bool mr_hazard_stream_code(const checker *c, const actor *a, const mr_script_spot *spot, char *out,
                           size_t size);
const char *mr_hazard_event_text(const log_line *line, char *out, size_t size);
bool mr_hazard_event_code(const checker *c, uint32_t id, const mr_script_spot *spot, char *out,
                          size_t size);
/* "f32[100]": what the second accesses; "" of a free. */
const char *mr_hazard_signature(const found_pair *pair, char *out, size_t size);
void mr_hazard_tensor_text(const checker *c, const found_pair *pair, char *out, size_t size);
bool mr_hazard_tensor_code(const checker *c, const found_pair *pair, const mr_script_spot *spot,
                           char *out, size_t size);
/* "race.lua:3"; without the room for it, "...ce.lua:3". What has PLACE_SIZE is always whole. */
#define PLACE_SIZE (MR_LONGEST_NAME + 16)
const char *mr_hazard_place(mr_site where, char *out, size_t size);
/* For a sentence: without the script's folder, unless another file has the short name. */

/* advice.c: called only with c->advice. `carries`: see mr_hazard_order_before. */
void mr_hazard_advise_command(checker *c, const mr_command *command);
bool mr_hazard_advise_carries(const checker *c, const actor *t); /* for a legacy command */
/* Whether a wait of `t` for this record would order `t` after something that it does not come after yet. */
bool mr_hazard_advise_news(const checker *c, const actor *t, const snapshot *s);
void mr_hazard_advise_wait(checker *c, const mr_command *command, bool added, bool carries);
/* Before the host's wait, or its query that says yes, takes effect. */
void mr_hazard_advise_sync(checker *c, const mr_command *command);
/* The stream does something after a wait that was the last it did, or somebody relies on it. */
void mr_hazard_advise_active(checker *c, actor *a);
void mr_hazard_advise_record(checker *c, const mr_command *command, bool carries);
void mr_hazard_advise_used(checker *c, const snapshot *s);
void mr_hazard_advise_needed(checker *c, const actor *first, uint64_t seq);
void mr_hazard_advice_clear(checker *c);
void mr_hazard_advice_forget(checker *c);

#endif
