/* Reports: the listed ones, the delayed ones, the fixes that they proposed, and the rules that hide some. */
#ifndef MR_HAZARD_REPORTS_H
#define MR_HAZARD_REPORTS_H

#include "base/map.h"
#include "hazard/order.h"

typedef struct {
    uint32_t first, second; /* ids of streams, 0: the host */
    uint64_t seq;           /* an order reported as missing, up to here */
    uint64_t from;          /* for commands of the second stream from here on */
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

typedef struct {
    size_t report;          /* index + 1; 0: unused */
    uint32_t first, second; /* ids of streams */
    uint64_t first_seq;
} recent_pair;

typedef struct found_pair found_pair;

typedef struct {
    MR_VEC(mr_hazard_report *) listed;
    MR_MAP(uint32_t) places; /* in `listed`, by a hash of the pair of places */
    uint64_t numbered;       /* over all clears */
    recent_pair recent[8];   /* that a later wait may explain */
    unsigned recent_next;
    MR_VEC(held_report) held; /* of the command in progress */
    /* unordered frees of collected tensors: reported when the script goes on */
    MR_VEC(mr_hazard_report *) collected;
    /* error mode: what the command in progress, or the next one, is refused with */
    mr_status refusal;
    MR_VEC(blame) blames;
    MR_VEC(ignore_rule) ignores;
} reports_part;

/* reports/ignore.c: whether a rule suppresses it; the rule counts it, unless this is `only_look`. */
bool mr_hazard_ignored(checker *c, const mr_hazard_report *draft, bool only_look);

/* reports/list.c: adds to the report of this pair of places, or makes it and sets *out_new. The draft gets its number
 * and count. NULL: ignored, or no room. */
mr_hazard_report *mr_hazard_report_add(checker *c, mr_hazard_report *draft, bool *out_new);
/* The listed report of the pair's places; NULL: there is none. */
mr_hazard_report *mr_hazard_report_of(checker *c, mr_hazard_kind kind, const found_pair *pair);
/* Removes one of the last reports, which was not shown: its pairs become follow-ups. */
void mr_hazard_report_remove(checker *c, mr_hazard_report *report);
/* Takes the report off the list, and its pairs out of the totals. */
void mr_hazard_report_withdraw(checker *c, mr_hazard_report *report);
void mr_hazard_reports_destroy(checker *c); /* nothing is listed, held or ignored any more */

/* reports/amend.c: True: it is one more pair of streams at the report's places. */
bool mr_hazard_add_streams(mr_hazard_report *r, uint32_t first, uint32_t second);
void mr_hazard_add_rank(mr_hazard_report *r, uint16_t rank); /* from 1; 0: none */
/* A fix is for one pair of streams, and other memory may need its own fix. Adds to `r` the parts of `draft`, of the
 * same places, that `r` lacks. The first pair of streams that `r` does not name becomes `also`. */
void mr_hazard_merge(checker *c, mr_hazard_report *r, const mr_hazard_report *draft);
/* Whether the pair must be explained again, because it may need lines that the report lacks. */
bool mr_hazard_may_add(const mr_hazard_report *r, const found_pair *pair);

/* Writes the parts that reports have gained since they were amended. */
void mr_hazard_write_rest(checker *c);

/* reports/blame.c: the last fix proposed between these streams; NULL: none. */
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

/* merge.c: one command may race on many tensors, and these races can share a report. So a report is held until its
 * whole command is checked. */
/* mr_hazard_publish_held publishes it; `own`: then freed. */
void mr_hazard_hold(checker *c, mr_hazard_report *report, bool own);
void mr_hazard_publish_held(checker *c);
/* For a new report: merges the held reports that its fix orders into it. A command may meet the race with that fix
 * after others. False: there is none. */
bool mr_hazard_take_over(checker *c, mr_hazard_report *report);
/* reports/held.c */
mr_hazard_report *mr_hazard_held(const checker *c, uint64_t number); /* NULL: it is not held */
/* The held report of this command whose fix orders these two streams; NULL: none. */
mr_hazard_report *mr_hazard_held_for(const checker *c, const found_pair *pair);
void mr_hazard_add_tensor(mr_hazard_report *report, const char *name);
/* Adds the lines of `draft`, of the same places, that `report` lacks. True: some were added. */
bool mr_hazard_add_fixes(mr_hazard_report *report, const mr_hazard_report *draft);
/* check.c: takes the error with which the call in progress is refused; MR_OK: none. */
mr_status mr_hazard_refuse(checker *c);

/* collected.c */
void mr_hazard_flush_collected(checker *c);
void mr_hazard_drop_collected(checker *c);

#endif
