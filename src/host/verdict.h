/* Compares the hazards that a checker finds in a script with those of another checker, which sees the script's commands
 * carried out again. It compares the pairs that nothing orders, in the order in which they were found. It does not
 * compare reports: their sentences and fixes come from the script's text and variables, which a replay does not
 * have. */
#ifndef MR_HOST_VERDICT_H
#define MR_HOST_VERDICT_H

#include "base/vec.h"
#include "hazard/hazard.h"
#include "program/program.h"

/* The script called the checker when the program had this many items. */
typedef struct {
    size_t item;
    mr_hazard_turn turn;
    mr_hazard_mode mode;
} mr_verdict_turn;

typedef struct {
    /* of the script; NULL: this is a replay, which has no turns of its own */
    mr_recorder *recorder;
    mr_hazard *hazard;
    MR_VEC(mr_hazard_found) found;
    MR_VEC(mr_verdict_turn) turns;
    size_t checks; /* how often the checker went on, or a check began */
    bool failed;   /* memory was out */
} mr_verdict;

/* Begins to note what `hazard` finds and how the script switches it. `verdict` must stay at its address until
 * mr_verdict_end. */
void mr_verdict_begin(mr_verdict *verdict, mr_hazard *hazard, mr_recorder *recorder);
void mr_verdict_end(mr_verdict *verdict); /* frees the notes, also without a begin */

/* Carries the program out with a checker in `player`, which is opened and has carried out nothing, and which is
 * switched as the script switched its own. Its findings are noted in *replayed. Errors and difference as in
 * mr_player_run. */
mr_status mr_verdict_play(const mr_verdict *script, mr_player *player, mr_verdict *replayed,
                          mr_difference *io_difference);

/* The first pair that is not the same: true, and text that says which. Both machines must still be open. */
bool mr_verdict_differs(const mr_verdict *script, const mr_verdict *replayed, char *text,
                        size_t size);

#endif
