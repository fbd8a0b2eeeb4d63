/* Stopping Lua code from outside: by Ctrl-C, or because a limit of the sandbox is reached.
 *
 * A stop is a flag with a reason. While it is set, a hook raises an error at every instruction of every Lua function
 * that runs. So no pcall, handler or coroutine of the script can swallow it; it ends when all of them have been left
 * and the outermost caller clears the flag.
 *
 * Hooks cost half of Lua's speed, so none is armed before it is needed. To find what runs at that
 * moment, the code that starts a Lua thread (the outermost call, coroutine.resume) enters it into a chain of nodes on
 * the C stack. The signal handler walks that chain. There is one chain: one Lua state a process. */
#ifndef MR_HOST_INTERRUPT_H
#define MR_HOST_INTERRUPT_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    MR_STOP_NONE,
    MR_STOP_INTERRUPT,    /* Ctrl-C */
    MR_STOP_INSTRUCTIONS, /* limits.h: this one and those below */
    MR_STOP_TIME,
    MR_STOP_MEMORY,
    MR_STOP_OUTPUT, /* output.h */
    /* SIGTERM or SIGHUP: the process is to end in good order, with its verdict and its trace */
    MR_STOP_ENDED,
    MR_STOP_LATE, /* mr_stop_after; its caller clears it */
} mr_stop;

typedef struct mr_running {
    lua_State *L;
    struct mr_running *outer;
} mr_running;

/* Takes over SIGINT, SIGTERM and SIGHUP, for the calling thread, each unless it is ignored (a job in the background).
 * The third Ctrl-C, or the second of the others, that finds the first one unanswered ends the process with 128 + its
 * number. A file that grows beyond the limit of the process is an error of the write from now on, not a signal. */
void mr_interrupt_install(void);
/* The signal that asked the process to end (MR_STOP_ENDED), also after mr_stop_clear; 0: none did. */
int mr_interrupt_ended_by(void);
/* "SIGTERM" */
const char *mr_interrupt_signal_text(int signal_number);
/* These signals end the process from now on. For the last clean-up, whose finalizers nothing can stop. */
void mr_interrupt_uninstall(void);
/* For signal handlers: false when this is another thread than the one that runs Lua (a helper of the matrix library).
 * The signal has then been sent on to that thread, and there is nothing to do. */
bool mr_interrupt_on_lua_thread(int signal_number);

/* Around every lua_pcall from outside and every lua_resume. False when the C stack is nearly used up:
 * then nothing was entered and the caller raises an error. */
bool mr_running_enter(mr_running *node, lua_State *L);
void mr_running_leave(mr_running *node);

/* Forgets the stop by an earlier call. Stops what runs when the calling thread has worked so many seconds, or waited
 * and worked so many, unless it is called again; 0: not any more. */
void mr_stop_after(double worked, double waited);
/* A stop by SIGTERM or SIGHUP is forgotten, for a last report: false if there is none. And asks for it again. */
bool mr_stop_take_end(void);
void mr_stop_end_again(void);

/* The Lua code that runs on one C stack. */
typedef struct {
    mr_running *innermost;
    uintptr_t stack_base;
} mr_running_place;
/* the running place, as seen from a new C stack */
void mr_running_copy(mr_running_place *out_place);
void mr_running_swap(mr_running_place *io_place); /* goes on with that; it is then what ran */

/* Stops what runs. The first reason counts until it is cleared. Safe in a signal handler. */
void mr_stop_request(mr_stop why);
mr_stop mr_stop_reason(void);
/* Forgets the stop and where it came; for the outermost caller, with nothing running. */
void mr_stop_clear(void);
/* mr_machine.take_interrupt: true after one Ctrl-C, which is then forgotten while Lua code still runs. */
bool mr_stop_take_interrupt(void *context);
/* "race.lua:12", the first line that was stopped; "" when it was not in Lua code. Valid until clear. */
const char *mr_stop_place(void);
/* For the message handler: remembers the place if the hook has not yet. */
void mr_stop_note_place(lua_State *L);
/* mr_machine.interrupted: a stop ends the wait for a device. */
bool mr_stop_pending(void *context);

/* For C functions that take long, every millisecond or so: raises the error of the hook if there is a stop. */
void mr_stop_check(lua_State *L);

/* Calls `tick` after every `count` instructions of L and of the coroutines that it makes from now on;
 * it may request a stop. NULL: no more. */
void mr_interrupt_every(lua_State *L, int count, void (*tick)(void));

#endif
