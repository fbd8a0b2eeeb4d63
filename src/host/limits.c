/* The allocator, the instruction counter and the clock behind --sandbox: see limits.h. */
#include "host/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "host/interrupt.h"

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif

#define MEGABYTE ((uint64_t)1 << 20)

/* Instructions between two looks at the counter. */
#define TICK 1000
/* How long a script may stay in one C function (a pattern match that backtracks, a sort) after its
 * time is up, before the process ends: nothing else can stop it. */
#define GRACE_SECONDS   2.0
#define CLOCK_PERIOD_US 100000
/* Data that the process may need beside the limits: buffers of the matrix library, thread stacks. */
#define DATA_ALLOWANCE (1024 * MEGABYTE)

const mr_limits mr_limits_default = {.memory = 256 * MEGABYTE,
                                     .instructions = 1000000000,
                                     .seconds = 60,
                                     .device_memory = 1024 * MEGABYTE};

static mr_limits limits;
static bool installed;
static uint64_t memory_used;
static uint64_t instructions_used;
static struct timespec time_up; /* CLOCK_MONOTONIC */

/* --- memory -------------------------------------------------------------------------------------- */

/* lua_Alloc. When it refuses, Lua collects garbage, asks again, and then raises "not enough memory". */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    if (!block) old_size = 0; /* Lua passes the kind of the object instead */
    if (new_size == 0) {
        free(block);
        memory_used -= old_size;
        return NULL;
    }
    if (new_size > old_size && memory_used - old_size + new_size > limits.memory) return NULL;
    void *moved = realloc(block, new_size);
    if (moved) memory_used = memory_used - old_size + new_size;
    return moved;
}

/* The outer wall, for what no account sees. AddressSanitizer keeps gigabytes of its own. */
static void limit_data(void) {
#ifndef ADDRESS_SANITIZER
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm) return;
    int found = fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages);
    fclose(statm);
    if (found != 1) return;
    rlim_t data = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + limits.memory +
                  limits.device_memory + DATA_ALLOWANCE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur < data) return;
    limit.rlim_cur = data;
    setrlimit(RLIMIT_DATA, &limit);
#endif
}

/* --- instructions -------------------------------------------------------------------------------- */

static void count_instructions(void) {
    instructions_used += TICK;
    if (instructions_used > limits.instructions) mr_stop_request(MR_STOP_INSTRUCTIONS);
}

void mr_limits_charge_coroutine(void) {
    if (installed && limits.instructions) count_instructions();
}

/* --- time ---------------------------------------------------------------------------------------- */

static double seconds_since(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static void on_alarm(int signal_number) {
    static const char sentence[] = "millrace: the time that --sandbox gives a script is up and it "
                                   "does not stop (--time SECONDS "
                                   "gives it more); ended\n";
    int saved_errno = errno;
    if (mr_interrupt_on_lua_thread(signal_number)) {
        double late = seconds_since(&time_up);
        if (late > GRACE_SECONDS) {
            ssize_t ignored = write(STDERR_FILENO, sentence, sizeof sentence - 1);
            (void)ignored;
            _exit(1);
        }
        if (late >= 0) mr_stop_request(MR_STOP_TIME);
    }
    errno = saved_errno;
}

static void set_clock(double seconds) {
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    if (seconds > 0) {
        timer.it_value.tv_sec = (time_t)seconds;
        timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6) + 1;
        if (timer.it_value.tv_usec > 999999) timer.it_value.tv_usec = 999999;
        timer.it_interval.tv_usec = CLOCK_PERIOD_US;
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* --- all of them --------------------------------------------------------------------------------- */

void mr_limits_install(lua_State *L, const mr_limits *wanted) {
    limits = *wanted;
    memory_used = (uint64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (uint64_t)lua_gc(L, LUA_GCCOUNTB);
    lua_setallocf(L, allocate, NULL);
    limit_data();
    if (limits.seconds > 0) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_alarm;
        sigemptyset(&action.sa_mask);
        sigaction(SIGALRM, &action, NULL);
    }
    if (limits.instructions) mr_interrupt_every(L, TICK, count_instructions);
    installed = true;
}

void mr_limits_begin(void) {
    if (!installed) return;
    instructions_used = 0;
    if (limits.seconds <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &time_up);
    time_up.tv_sec += (time_t)limits.seconds;
    time_up.tv_nsec += (long)((limits.seconds - (double)(time_t)limits.seconds) * 1e9);
    if (time_up.tv_nsec >= 1000000000) {
        time_up.tv_nsec -= 1000000000;
        time_up.tv_sec++;
    }
    set_clock(limits.seconds);
}

void mr_limits_end(void) {
    if (installed && limits.seconds > 0) set_clock(0);
}
