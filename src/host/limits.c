/* The allocator, the instruction counter and the clock behind --sandbox: see limits.h. */
#include "host/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "host/interrupt.h"

#define MEGABYTE ((uint64_t)1 << 20)

/* Instructions between two looks at the counter. */
#define TICK            1000
#define CLOCK_PERIOD_US 100000
/* How long a script may stay in one C function (a pattern match that backtracks, a sort) after it was told to stop,
 * before the process ends. Nothing else can stop it. */
#define GRACE_SECONDS 2.0
/* Memory that the process may need beside the limits: records of pending work, and waste of the allocator. Also
 * buffers of the matrix library, which has a thread for each processor. */
#ifdef __SANITIZE_ADDRESS__ /* AddressSanitizer keeps what was freed, and pads each block */
#define PROCESS_ALLOWANCE (1024 * MEGABYTE)
#else
#define PROCESS_ALLOWANCE (64 * MEGABYTE)
#endif
#define PROCESSOR_ALLOWANCE (8 * MEGABYTE)

const mr_limits mr_limits_default = {.memory = 256 * MEGABYTE,
                                     .instructions = 1000000000,
                                     .seconds = 60,
                                     .output = 64 * MEGABYTE,
                                     .device_memory = 1024 * MEGABYTE};

static mr_limits limits;
static bool installed;
static uint64_t memory_used;
static uint64_t instructions_used;
static struct timespec began; /* CLOCK_MONOTONIC */

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

/* The outer limit, for memory that nothing else counts: C memory of pending commands, names, staged
 * copies. A resource limit would not do, since the virtual GPU sets aside address space that it does not
 * use; so the clock looks at what is resident. */
static int statm = -1;
static uint64_t resident_limit;

/* Without pages of files, the libraries' code. Safe in a signal handler. 0 when the system does not tell. */
static uint64_t resident_bytes(void) {
    char text[128];
    ssize_t size = statm < 0 ? 0 : pread(statm, text, sizeof text - 1, 0);
    uint64_t numbers[3] = {0}; /* pages: of the address space, resident, of them shared */
    int field = 0;
    for (ssize_t i = 0; i < size && field < 3; i++) {
        if (text[i] == ' ') field++;
        else if (text[i] >= '0' && text[i] <= '9')
            numbers[field] = numbers[field] * 10 + (uint64_t)(text[i] - '0');
    }
    uint64_t shared = numbers[2] < numbers[1] ? numbers[2] : 0;
    return (numbers[1] - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void watch_process(void) {
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    resident_limit = resident_bytes() + limits.memory + limits.device_memory + PROCESS_ALLOWANCE +
                     (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * PROCESSOR_ALLOWANCE;
}

/* --- instructions -------------------------------------------------------------------------------- */

static void count_instructions(void) {
    instructions_used += TICK;
    if (instructions_used > limits.instructions) mr_stop_request(MR_STOP_INSTRUCTIONS);
}

void mr_limits_charge_coroutine(void) {
    if (installed && limits.instructions) count_instructions();
}

/* --- the clock ----------------------------------------------------------------------------------- */

static double seconds_since(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static bool stop_seen;
static struct timespec stop_seen_at;

static const char *last_words(void) {
    switch (mr_stop_reason()) {
    case MR_STOP_INSTRUCTIONS:
        return "millrace: the script has used all instructions that --sandbox allows "
               "(--instructions N raises the limit), and is in a call that cannot be stopped; "
               "ended\n";
    case MR_STOP_TIME:
        return "millrace: the script has used all the time that --sandbox allows (--time SECONDS "
               "raises the limit), and is in a call that cannot be stopped; ended\n";
    case MR_STOP_MEMORY:
        return "millrace: the script needs more memory than --sandbox allows (--memory MB and "
               "--device-memory MB raise the limits), and cannot be stopped; ended\n";
    case MR_STOP_OUTPUT:
        return "millrace: output could not be written, and the script cannot be stopped; ended\n";
    case MR_STOP_INTERRUPT:
    case MR_STOP_ENDED:
    case MR_STOP_LATE:
    case MR_STOP_NONE: break;
    }
    return "millrace: interrupted in a call that cannot be stopped; ended\n";
}

static void end_process(void) {
    const char *text = last_words();
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
    _exit(1);
}

static void look_at_limits(void) {
    uint64_t resident = resident_bytes();
    if (limits.seconds > 0 && seconds_since(&began) > limits.seconds) mr_stop_request(MR_STOP_TIME);
    if (resident > resident_limit) mr_stop_request(MR_STOP_MEMORY);
    if (mr_stop_reason() == MR_STOP_NONE) return;
    if (!stop_seen) clock_gettime(CLOCK_MONOTONIC, &stop_seen_at);
    stop_seen = true;
    mr_stop_request(mr_stop_reason()); /* again: a hook set at a bad moment may have been lost */
    if (seconds_since(&stop_seen_at) > GRACE_SECONDS || resident > 2 * resident_limit)
        end_process();
}

static void on_alarm(int signal_number) {
    int saved_errno = errno;
    if (mr_interrupt_on_lua_thread(signal_number)) look_at_limits();
    errno = saved_errno;
}

static void set_clock(bool runs) {
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    if (runs) timer.it_value.tv_usec = timer.it_interval.tv_usec = CLOCK_PERIOD_US;
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* --- all of them --------------------------------------------------------------------------------- */

void mr_limits_install(lua_State *L, const mr_limits *wanted) {
    struct sigaction action;
    limits = *wanted;
    memory_used = (uint64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (uint64_t)lua_gc(L, LUA_GCCOUNTB);
    lua_setallocf(L, allocate, NULL);
    watch_process();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    if (limits.instructions) mr_interrupt_every(L, TICK, count_instructions);
    installed = true;
}

void mr_limits_begin(void) {
    if (!installed) return;
    instructions_used = 0;
    stop_seen = false;
    clock_gettime(CLOCK_MONOTONIC, &began);
    set_clock(true);
}

void mr_limits_end(void) {
    if (installed) set_clock(false);
}
