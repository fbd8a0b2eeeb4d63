/* A compiler without a file system: see worker.h.
 *
 * The kernel refuses each call of this process that is not in the lists below (seccomp). It lets the calls that open a
 * file or ask for its facts raise SIGSYS. The handler asks millrace for the file, which hands out headers of the
 * toolkit and nothing else (compile/compiler/toolkit.c). So it does not matter which text makes the compiler look for
 * which file, or how. Filters and SIGSYS need no privilege. Easiest to break: the handler may use only calls of the
 * first list. */
#include "compile/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#if defined __x86_64__
#define ARCHITECTURE        AUDIT_ARCH_X86_64
#define REGISTER(c, number) ((c)->uc_mcontext.gregs[registers[number]])
#define RESULT(c)           ((c)->uc_mcontext.gregs[REG_RAX])
static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
#elif defined __aarch64__
#define ARCHITECTURE        AUDIT_ARCH_AARCH64
#define REGISTER(c, number) ((c)->uc_mcontext.regs[number])
#define RESULT(c)           ((c)->uc_mcontext.regs[0])
#endif

#ifdef ARCHITECTURE

/* ---------------------------------------------------------------- files */

static atomic_flag is_asking = ATOMIC_FLAG_INIT;

/* The open file, or -ENOENT. */
static int exchange(const char *path) {
    char byte;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    int file = -ENOENT;
    if (write(MR_WIRE_FILES, path, strlen(path) + 1) < 0) return -ENOENT;
    if (recvmsg(MR_WIRE_FILES, &message, MSG_CMSG_CLOEXEC) <= 0) return -ENOENT;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}

static long open_file(const char *path, long flags) {
    int error = errno;
    if (*path != '/' || (flags & (O_ACCMODE | O_CREAT))) return -ENOENT;
    while (atomic_flag_test_and_set(&is_asking)) sched_yield();
    int file = exchange(path);
    atomic_flag_clear(&is_asking);
    errno = error;
    return file;
}

static long facts_of(int file, void *out) {
    int error = errno;
    long result = syscall(SYS_fstat, file, out) == 0 ? 0 : -errno;
    errno = error;
    return result;
}

static long facts_of_path(const char *path, void *out) {
    long file = open_file(path, O_RDONLY);
    if (file < 0) return file;
    long result = facts_of((int)file, out);
    close((int)file);
    return result;
}

static void *pointer(uint64_t value) {
    return (void *)(uintptr_t)value;
}

static void on_call(int number, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    long result = -ENOENT;
    (void)number;
    switch (info->si_syscall) {
#ifdef SYS_open
    case SYS_open:
        result = open_file(pointer((uint64_t)REGISTER(c, 0)), (long)REGISTER(c, 1));
        break;
    case SYS_stat:
    case SYS_lstat:
        result =
            facts_of_path(pointer((uint64_t)REGISTER(c, 0)), pointer((uint64_t)REGISTER(c, 1)));
        break;
#endif
    case SYS_openat:
        result = open_file(pointer((uint64_t)REGISTER(c, 1)), (long)REGISTER(c, 2));
        break;
    case SYS_newfstatat: {
        const char *path = pointer((uint64_t)REGISTER(c, 1));
        void *out = pointer((uint64_t)REGISTER(c, 2));
        if (*path) result = facts_of_path(path, out);
        else if (REGISTER(c, 3) & AT_EMPTY_PATH) result = facts_of((int)REGISTER(c, 0), out);
        break;
    }
    default: break;
    }
    RESULT(c) = result;
}

/* ---------------------------------------------------------------- the filter */

static const int allowed[] = {
#ifdef SYS_open /* calls that newer architectures do not have */
    SYS_poll,
    SYS_time,
    SYS_getrlimit,
#endif
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_ppoll,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_get_priority_min,
    SYS_sched_get_priority_max,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_gettid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_recvmsg,
    SYS_exit,
    SYS_exit_group,
};

static const int trapped[] = {
#ifdef SYS_open
    SYS_open,   SYS_stat,       SYS_lstat,
#endif
    SYS_openat, SYS_newfstatat,
};

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define FIELD(name) ((uint32_t)offsetof(struct seccomp_data, name))
#define ARGUMENT(at)                                                                               \
    (FIELD(args) + 8 * (at)) /* the lower half: both architectures are little-endian */

typedef struct {
    struct sock_filter lines[4 * (COUNT(allowed) + COUNT(trapped)) + 32];
    unsigned short count;
} filter;

static void put(filter *f, struct sock_filter line) {
    f->lines[f->count++] = line;
}

static void put_load(filter *f, uint32_t at) {
    put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at));
}

static void put_return(filter *f, uint32_t action) {
    put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Where the loaded word is `value`, `action`. */
static void put_case(filter *f, uint32_t value, uint32_t action) {
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    put_return(f, action);
}

/* The call `number` is allowed if an argument is `value`, or has the bit. */
static void put_condition(filter *f, uint32_t number, unsigned short test, uint32_t at,
                          uint32_t value) {
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
    put_load(f, at);
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
    put_return(f, SECCOMP_RET_ALLOW);
    put_return(f, SECCOMP_RET_ERRNO | EPERM);
}

static void put_filter(filter *f) {
    put_load(f, FIELD(arch));
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    put_return(f, SECCOMP_RET_KILL_PROCESS);
    put_load(f, FIELD(nr));
    for (size_t i = 0; i < COUNT(allowed); i++)
        put_case(f, (uint32_t)allowed[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < COUNT(trapped); i++) put_case(f, (uint32_t)trapped[i], SECCOMP_RET_TRAP);
    /* Threads, but no processes; signals and limits of this process alone. glibc uses clone where there is no
     * clone3. */
    put_case(f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    put_condition(f, SYS_clone, BPF_JSET, ARGUMENT(0), CLONE_THREAD);
    put_condition(f, SYS_tgkill, BPF_JEQ, ARGUMENT(0), (uint32_t)getpid());
    put_condition(f, SYS_prlimit64, BPF_JEQ, ARGUMENT(0), 0);
    put_return(f, SECCOMP_RET_ERRNO | ENOENT);
}

const char *worker_confine(void) {
    static filter f;
    const struct sigaction on_trap = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
    put_filter(&f);
    const struct sock_fprog program = {.len = f.count, .filter = f.lines};
    if (sigaction(SIGSYS, &on_trap, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return "this system cannot take the file system from a process (it has no seccomp filters)";
    return NULL;
}

#else

const char *worker_confine(void) {
    return "millrace cannot take the file system from a process on this kind of processor";
}

#endif
