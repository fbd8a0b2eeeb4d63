/* Limits of a stranger's script: memory of Lua, instructions, time.
 *
 * (Tensors are counted by the model: mr_machine_memory.limit.) Each limit ends a script with one
 * sentence, whatever pcalls it is in. A script that sits in a C function and cannot
 * be stopped ends with the process. There is one set of limits a process. */
#ifndef MR_HOST_LIMITS_H
#define MR_HOST_LIMITS_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t memory;        /* bytes that Lua may have at once */
    uint64_t instructions;  /* of Lua's virtual machine; 0: no limit */
    double seconds;         /* of wall time; 0: no limit */
    uint64_t output;        /* bytes that it may write to the standard streams; 0: no limit */
    uint64_t device_memory; /* bytes of tensors, on devices and on the host, at once */
} mr_limits;

extern const mr_limits mr_limits_default;

/* Puts limits on a state in which nothing runs yet. From now on its memory is bounded; instructions
 * and time are counted, and the process's memory as a whole is watched, between begin and end. Takes
 * SIGALRM and the process's timer. Copies `limits`. */
void mr_limits_install(lua_State *L, const mr_limits *limits);

/* Around each script or line. Nothing happens where no limits are installed. */
void mr_limits_begin(void);
void mr_limits_end(void);

/* Creating a coroutine counts as many instructions as it may run unseen, so that a script made of
 * short ones is counted too. */
void mr_limits_charge_coroutine(void);

#endif
