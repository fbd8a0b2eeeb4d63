/* Rules that the tests break one at a time: with MR_HAZARD_MUTATE defined, MR_BROKEN(X) is true while
 * mutant X is chosen. In the product it is the constant false and leaves no trace. */
#ifndef MR_HAZARD_MUTATE_H
#define MR_HAZARD_MUTATE_H

#define MR_MUTANT_LIST(X)                                                                          \
    X(WAIT_LATEST)         /* R11: a wait joins what the stream has now, not the record */         \
    X(RERECORD_KEPT)       /* R12: a second record changes nothing */                              \
    X(WAIT_DIRECT_ONLY)    /* a wait gives the recording stream's work but not what that knew */   \
    X(WAIT_FORGETS)        /* a wait replaces what the stream knew before */                       \
    X(WAIT_DOMINATED)      /* every wait is taken for one that knows more than the waiter */       \
    X(REDUNDANT_TOO_SOON)  /* any earlier wait on the same stream makes a wait redundant */        \
    X(LEGACY_ACQUIRES)     /* R3: the legacy stream does not wait for blocking streams */          \
    X(LEGACY_RELEASES)     /* R3: blocking streams do not wait for the legacy stream */            \
    X(LEGACY_CARRIES)      /* what blocking streams waited for does not pass through it */         \
    X(LEGACY_RECORD)       /* R16: a record in the legacy stream covers that stream only */        \
    X(NONBLOCKING)         /* R4: non-blocking streams take part in the barrier */                 \
    X(HOST_SYNC)           /* a stream synchronise orders nothing */                               \
    X(HOST_SYNC_CARRIES)   /* it orders that stream's own work but not what that waited for */     \
    X(HOST_SYNC_GROUP)     /* R5: synchronising the legacy stream covers all blocking ones */      \
    X(HOST_SYNC_LEGACY)    /* synchronising the legacy stream covers that stream only */           \
    X(EVENT_SYNC)          /* an event synchronise orders nothing */                               \
    X(EVENT_SYNC_LATEST)   /* it orders all of the stream, not what was recorded */                \
    X(QUERY)               /* R10: a successful query orders nothing */                            \
    X(DEVICE_SYNC_ALL)     /* R10: a device synchronise covers every device */                     \
    X(DEVICE_SYNC_CARRIES) /* it does not cover what its streams waited for elsewhere */           \
    X(READ_READ)           /* two reads conflict */                                                \
    X(WRITE_FORGOTTEN)     /* a read replaces a write in the history */                            \
    X(READ_FORGOTTEN)      /* a read replaces an unordered read */                                 \
    X(ATOMIC_PAIR)         /* two atomic updates conflict */                                       \
    X(ATOMIC_REPLACES)     /* an atomic update replaces a plain access */                          \
    X(ASSUMED_REPLACES)    /* what is only assumed replaces what is certain */                     \
    X(PARTIAL_COVER)       /* a write replaces what it covers only in part */                      \
    X(EXTENT_ONLY)         /* views overlap when their extents do */                               \
    X(START_ONLY)          /* views overlap only when they start together */                       \
    X(COPY_SYNC)           /* R20: a synchronous copy to the host does not order */                \
    X(COPY_ASYNC)          /* R22: an asynchronous copy orders like a synchronous one */           \
    X(COPY_D2D)            /* R21: a synchronous copy on the device orders the host */             \
    X(STAGED)              /* R20: a staged copy is complete on return */                          \
    X(FREE_CHECKED)        /* R28: a free is not checked */                                        \
    X(FREE_AT_ONCE)        /* R27: a free at once is in the order of a stream */                   \
    X(FREE_USED_BY)        /* R33: record_stream changes nothing */                                \
    X(ALLOC_CHECKED)       /* R28: use before the allocation goes unseen */                        \
    X(ALLOC_IS_BARRIER)    /* an allocation orders blocking streams */                             \
    X(FREE_IS_BARRIER)     /* so does a free */                                                    \
    X(FUNCTION_FORGOTTEN)  /* what a pending host function may race with is replaced */            \
    X(UNSET_WHOLE)         /* a write of a part counts for all of the memory */                    \
    X(UNSET_COPIED)        /* a copy writes its target, whatever its source has */                 \
    X(UNSET_HURRIED)       /* what host functions may write is judged before they run */           \
    X(HOST_FUNCTION)       /* R46: a host function's accesses count as the host's */               \
    X(LOOK_WITHOUT_ORDER)  /* error mode judges by the order of before the command */              \
    X(SLOT_REUSE) /* a new stream inherits a closed one's place in the clocks too early */         \
    X(INDEX)      /* the index of many views finds only those that start in a cell */

enum {
    MR_MUTANT_NONE,
#define X(name) MR_MUTANT_##name,
    MR_MUTANT_LIST(X)
#undef X
        MR_MUTANT_COUNT
};

#ifdef MR_HAZARD_MUTATE
extern int mr_hazard_mutant;
#define MR_BROKEN(name) (mr_hazard_mutant == MR_MUTANT_##name)
#else
#define MR_BROKEN(name) 0
#endif

#endif
