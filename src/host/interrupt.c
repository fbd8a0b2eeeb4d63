/* The stop flag, the chain of running threads and the hook: see interrupt.h.
 *
 * Easiest to break: the signal handler may come between any two instructions. So a node is complete before it becomes
 * the head of the chain. The code that enters a node looks at the flag afterwards, as a handler that came before saw
 * the flag's setter only. */
#include "host/interrupt.h"

#include <errno.h>
#include <lauxlib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/stack.h"

#define PATIENCE       8   /* seconds, after SIGTERM, for the call at hand */
#define EXIT_BY_SIGNAL 128 /* + its number, as shells have it */

static volatile sig_atomic_t reason; /* an mr_stop */
static mr_running *volatile innermost;
static pthread_t lua_thread;

static volatile sig_atomic_t presses; /* of Ctrl-C since the flag was set */
static struct timespec last_press;
static volatile sig_atomic_t ended_by;    /* SIGTERM, SIGHUP; 0 */
static volatile sig_atomic_t is_answered; /* the stop has been noticed since */

static char place[LUA_IDSIZE + 16];

static void (*every)(void);
static int every_count;

/* --- the hook ------------------------------------------------------------------------------------ */

static void on_hook(lua_State *L, lua_Debug *frame);

static void set_idle_hook(lua_State *L) {
    if (every) lua_sethook(L, on_hook, LUA_MASKCOUNT, every_count);
    else lua_sethook(L, NULL, 0, 0);
}

/* Count hooks only. Call and line hooks would add nothing, since every loop of Lua code runs
 * instructions. A call hook would also keep C functions from running at all. The __close of a
 * stream's scope is one of them, and has to restore the current stream on the way out. */
static void arm(lua_State *L) {
    lua_sethook(L, on_hook, LUA_MASKCOUNT, 1);
}

void mr_stop_note_place(lua_State *L) {
    lua_Debug frame;
    for (int level = 0; !place[0] && lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sl", &frame);
        bool is_own =
            strncmp(frame.source, "=millrace.", 10) == 0; /* a Lua module of the program */
        if (frame.currentline > 0 && !is_own)
            snprintf(place, sizeof place, "%s:%d", frame.short_src, frame.currentline);
    }
}

void mr_stop_check(lua_State *L) {
    if (!reason) return;
    is_answered = true;
    mr_stop_note_place(L);
    /* Lua raises this text as an out-of-memory error, which goes past the message handler of an
     * xpcall. A handler called from here would run with hooks disabled, and could loop for ever. */
    lua_pushliteral(L, "not enough memory");
    lua_error(L);
}

static void on_hook(lua_State *L, lua_Debug *frame) {
    (void)frame;
    if (lua_gethookcount(L) == every_count && every && !reason) every();
    mr_stop_check(L);
    if (lua_gethookcount(L) != every_count) set_idle_hook(L); /* armed for a stop that is over */
}

void mr_interrupt_every(lua_State *L, int count, void (*tick)(void)) {
    every = tick;
    every_count = tick ? count : 0;
    set_idle_hook(L);
}

/* --- what runs ------------------------------------------------------------------------------------- */

/* The part of the C stack that chained coroutines may use. Lua counts its C levels for each thread
 * anew in places (coroutine.close up to 5.4.5), so the bytes are counted here. */
static size_t stack_allowance(void) {
    static size_t allowance;
    if (!allowance) {
        size_t most = (size_t)8 << 20, stack = mr_stack_size();
        allowance = (stack < most ? stack : most) / 2;
    }
    return allowance;
}

static uintptr_t stack_base; /* 0: the next one to enter is at it */

void mr_running_copy(mr_running_place *out_place) {
    *out_place = (mr_running_place){innermost, 0};
}

void mr_running_swap(mr_running_place *io_place) {
    mr_running_place was = {innermost, stack_base};
    innermost = io_place->innermost;
    stack_base = io_place->stack_base;
    *io_place = was;
    if (!reason) return; /* else mr_stop_request has not seen these */
    for (mr_running *node = innermost; node; node = node->outer) arm(node->L);
}

bool mr_running_enter(mr_running *node, lua_State *L) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!innermost || !stack_base) stack_base = here;
    if ((here > stack_base ? here - stack_base : stack_base - here) > stack_allowance())
        return false;
    node->L = L;
    node->outer = innermost;
    atomic_signal_fence(memory_order_seq_cst);
    innermost = node;
    atomic_signal_fence(memory_order_seq_cst);
    if (reason) arm(L);
    return true;
}

void mr_running_leave(mr_running *node) {
    innermost = node->outer;
}

/* --- stopping -------------------------------------------------------------------------------------- */

void mr_stop_request(mr_stop why) {
    if (!reason) reason = why;
    atomic_signal_fence(memory_order_seq_cst);
    for (mr_running *node = innermost; node; node = node->outer) arm(node->L);
}

mr_stop mr_stop_reason(void) {
    return (mr_stop)reason;
}

bool mr_stop_pending(void *context) {
    (void)context;
    if (reason) is_answered = true;
    return reason != MR_STOP_NONE;
}

const char *mr_stop_place(void) {
    return place;
}

void mr_stop_clear(void) {
    reason = MR_STOP_NONE;
    presses = 0;
    place[0] = '\0';
}

bool mr_stop_take_interrupt(void *context) {
    (void)context;
    if (reason != MR_STOP_INTERRUPT || presses > 1) return false;
    mr_stop_clear(); /* the hooks that are armed find nothing, and disarm themselves */
    return true;
}

bool mr_stop_take_end(void) {
    if (reason != MR_STOP_ENDED) return false;
    mr_stop_clear();
    return true;
}

void mr_stop_end_again(void) {
    mr_stop_request(MR_STOP_ENDED);
}

/* --- a stop by the clock ----------------------------------------------------------------------------- */

#define LATE_SIGNAL SIGVTALRM /* not used otherwise */

static timer_t late_timers[2]; /* of the processor that the thread has, and of the wall */
static bool has_timers;

static void on_late(int signal_number) {
    int saved_errno = errno;
    if (mr_interrupt_on_lua_thread(signal_number)) mr_stop_request(MR_STOP_LATE);
    errno = saved_errno;
}

static bool make_timers(void) {
    struct sigaction action;
    struct sigevent event;
    if (has_timers) return true;
    memset(&action, 0, sizeof action);
    memset(&event, 0, sizeof event);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_late;
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = LATE_SIGNAL;
    has_timers = sigaction(LATE_SIGNAL, &action, NULL) == 0 &&
                 timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &late_timers[0]) == 0 &&
                 timer_create(CLOCK_MONOTONIC, &event, &late_timers[1]) == 0;
    return has_timers;
}

static void set_timer(timer_t timer, double seconds) {
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)seconds}};
    when.it_value.tv_nsec = (long)((seconds - (double)when.it_value.tv_sec) * 1e9);
    timer_settime(timer, 0, &when, NULL);
}

void mr_stop_after(double worked, double waited) {
    if (make_timers()) {
        set_timer(late_timers[0], worked);
        set_timer(late_timers[1], waited);
    }
    if (reason == MR_STOP_LATE) mr_stop_clear();
}

/* --- Ctrl-C ---------------------------------------------------------------------------------------- */

bool mr_interrupt_on_lua_thread(int signal_number) {
    if (pthread_equal(pthread_self(), lua_thread)) return true;
    pthread_kill(lua_thread, signal_number);
    return false;
}

static void say(const char *text) {
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

static double seconds_since(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

/* A C function that takes long (a sort of a long table), or a finalizer, which Lua runs without
 * hooks, does not answer; the user then has a way out. Signals in quick succession are one press. */
static void count_press(void) {
    if (presses > 0 && seconds_since(&last_press) < 0.2) return;
    presses = presses + 1;
    clock_gettime(CLOCK_MONOTONIC, &last_press);
    if (presses == 2)
        say("millrace: stopping when the call at hand returns; Ctrl-C again ends the program at "
            "once\n");
    if (presses < 3) return;
    say("millrace: interrupted in a call that cannot be stopped; ended\n");
    _exit(EXIT_BY_SIGNAL + SIGINT);
}

static void on_interrupt(int signal_number) {
    int saved_errno = errno;
    if (mr_interrupt_on_lua_thread(signal_number)) {
        if (innermost) count_press();
        mr_stop_request(MR_STOP_INTERRUPT);
    }
    errno = saved_errno;
}

/* ---- SIGTERM and SIGHUP ------------------------------------------------------------------------------ */

/* A call of the driver, or of the C library, may never return. A supervisor of the process may send no second signal,
 * or SIGKILL, which leaves no message. */
static void on_alarm(int signal_number) {
    (void)signal_number;
    if (is_answered) return;
    say("millrace: asked to end while a call did not return; ended, without a verdict and a "
        "trace\n");
    _exit(EXIT_BY_SIGNAL + ended_by);
}

static void watch_the_call(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_alarm;
    is_answered = false;
    if (sigaction(SIGALRM, &action, NULL) == 0) alarm(PATIENCE);
}

/* The first one leaves time for the trace, the verdict and finalizers. */
static void on_end(int signal_number) {
    int saved_errno = errno;
    if (mr_interrupt_on_lua_thread(signal_number)) {
        if (ended_by && seconds_since(&last_press) > 0.2) _exit(EXIT_BY_SIGNAL + signal_number);
        if (!ended_by) {
            ended_by = signal_number;
            watch_the_call();
            clock_gettime(CLOCK_MONOTONIC, &last_press);
        }
        mr_stop_request(MR_STOP_ENDED);
    }
    errno = saved_errno;
}

int mr_interrupt_ended_by(void) {
    return ended_by;
}

const char *mr_interrupt_signal_text(int signal_number) {
    return signal_number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

/* ---- handlers ------------------------------------------------------------------------------------------ */

static const struct {
    int signal;
    void (*handler)(int signal_number);
} taken_over[] = {{SIGINT, on_interrupt}, {SIGTERM, on_end}, {SIGHUP, on_end}};

enum { TAKEN_OVER = sizeof taken_over / sizeof *taken_over };

void mr_interrupt_install(void) {
    struct sigaction action, before;
    lua_thread = pthread_self();
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags =
        0; /* no SA_RESTART: io.read at a terminal returns, and the hook gets its turn */
    for (int i = 0; i < TAKEN_OVER; i++) {
        action.sa_handler = taken_over[i].handler;
        if (sigaction(taken_over[i].signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(taken_over[i].signal, &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN);
}

void mr_interrupt_uninstall(void) {
    struct sigaction before;
    for (int i = 0; i < TAKEN_OVER; i++)
        if (sigaction(taken_over[i].signal, NULL, &before) == 0 &&
            before.sa_handler == taken_over[i].handler)
            signal(taken_over[i].signal, SIG_DFL);
}
