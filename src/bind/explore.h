/* The functions of mr.explore for the host program and other calls of scripts. */
#ifndef MR_BIND_EXPLORE_H
#define MR_BIND_EXPLORE_H

#include <lua.h>
#include <stdbool.h>

#include "hazard/hazard.h"
#include "model/command.h"

/* The options of mr.explore that are numbers, which --explore takes, too. The last row has no name. */
typedef struct {
    const char *name;
    bool whole; /* a whole number of at least `least`; else a number above `least` */
    bool any;   /* `least` says nothing */
    double least;
} mr_explore_bound;
extern const mr_explore_bound mr_explore_bounds[];

/* A function of Lua: (chunk, bounds, arguments...) -> what it has found, one of these texts. Runs the chunk under every
 * schedule; the outcome is what it prints and how it ends. Prints the result. `bounds`: as after --explore=.
 *
 *     one          One outcome, and there is no hazard. Whether all schedules were tried is in what is printed.
 *     found        Several outcomes, or a hazard.
 *     failed       One outcome, and that is an error or another status than 0.
 *     interrupted  Ctrl-C or a signal ended it.
 */
int mr_bind_explore_script(lua_State *L);

/* Functions that the host program provides beyond the machine's hooks. Without them, only waits for a device are
 * ended. */
typedef struct {
    /* From now on Lua code is stopped, as by Ctrl-C, after so many seconds; 0: no more stops, and a pending stop of
     * this kind is cancelled. */
    void (*stop_after)(double worked, double waited);
    /* Where Lua code was stopped: "race.lua:12"; "": not in Lua code. Valid until the stop is cancelled. */
    const char *(*stop_place)(void);
    /* take_end: true if the process was asked to end (SIGTERM); clears that request. The other one makes the request
     * again. */
    bool (*take_end)(void);
    void (*end_again)(void);
} mr_explore_host;
extern const mr_explore_host *mr_bind_explore_host; /* NULL: none */

/* Raises an error at the script's line, and ends the search, if mr.explore is trying all schedules of the function that
 * calls. `what`: a call, and why no search can follow it. mr.replay and mr.stress permit it. */
void mr_bind_explore_refuse(lua_State *L, const char *what);
/* Likewise for a collective that a function of mr.explore, mr.replay or mr.stress calls, if one rank of this process
 * has called that for itself. */
void mr_bind_explore_refuse_meeting(lua_State *L);
/* The reason: the actions of other code are not part of a run. */
#define MR_OUTSIDE_NOT_EXPLORED                                                                    \
    "code outside of millrace sees one order only, and no order of another run"
/* The same with the reason of mr_explore_refusal. */
void mr_bind_explore_refuse_kind(lua_State *L, mr_command_id kind);

/* Notes a call that may return something else in another run, with advice. If the function turns out not to be
 * repeatable, the error has this text. */
void mr_bind_explore_differs(lua_State *L, const char *what);

/* Raises an error if a function of mr.explore, mr.replay or mr.stress closes or frees an object from before it. Its
 * other runs need the object. */
void mr_bind_explore_frees(lua_State *L, const mr_storage *storage);
void mr_bind_explore_closes_stream(lua_State *L, const mr_stream *stream);
void mr_bind_explore_closes_event(lua_State *L, const mr_event *event);

/* Whether the data shared by ranks is watched. Then mr.dist.spawn reports three events: ranks are about to begin, with
 * the function and its arguments (`count` values on the stack); one has had a turn; all have ended. */
bool mr_bind_explore_watches_ranks(lua_State *L);
void mr_bind_explore_ranks_begin(lua_State *L, int first, int count);
void mr_bind_explore_ranks_turn(lua_State *L);
/* The script reads a number that counts over all ranks, such as a stream's. */
void mr_bind_explore_tells_number(lua_State *L);
void mr_bind_explore_ranks_end(lua_State *L, bool failed);

/* The checker has judged a call of the function: its reports, MR_HAZARD_MAX_REPORTS at most. */
void mr_bind_explore_judged(lua_State *L, const mr_hazard_totals *totals,
                            const mr_hazard_report *reports, size_t count);

#endif
