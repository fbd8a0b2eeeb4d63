/* Races in a trace of a launch, by the definition: a graph of all events, every pair looked at. */
#ifndef MR_TESTS_NAIVE_WATCH_H
#define MR_TESTS_NAIVE_WATCH_H

#include "ptx/watch/watch.h"

typedef enum {
    EVENT_ACCESS,
    EVENT_BARRIER, /* warps: mask; 0: the whole block */
    EVENT_ARRIVE,  /* barrier number 1; the next EVENT_BARRIER_ARRIVED takes it over */
    EVENT_BARRIER_ARRIVED,
    EVENT_WARP_SYNC,
    EVENT_FENCE,
    EVENT_BEGIN,
    EVENT_END,
} event_kind;

typedef struct {
    event_kind kind;
    uint32_t block, warp, mask;
    ptx_space space;
    uint64_t address[32];
    uint32_t bytes, element;
    uint8_t access;
    bool atomic;
    ptx_order order;
    ptx_scope scope;
} event;

#define MOST_EVENTS 64
typedef struct {
    uint32_t blocks, threads;
    uint32_t count;
    event events[MOST_EVENTS];
} trace;

/* Two accesses of a trace that race: the events and the lanes. */
bool naive_is_race(uint32_t first, uint32_t first_lane, uint32_t second, uint32_t second_lane);
/* Bytes that race, by naive_byte(). */
#define NAIVE_BYTES 1280
typedef struct {
    bool racy[NAIVE_BYTES];
    bool has_race;
    bool order_matters; /* a pair that no barrier orders, beside pairs of atomic operations */
} naive_verdict;
uint32_t naive_byte(ptx_space space, uint32_t block, uint64_t address);
void naive_watch(const trace *t, naive_verdict *out);

/* The trace's global memory, in two pages, and each block's shared memory. Most accesses are to the middle. */
#define GLOBAL_START 0x7f80u
#define REGION_BYTES 256
#define MIDDLE       112
#define MIDDLE_BYTES 32

#endif
