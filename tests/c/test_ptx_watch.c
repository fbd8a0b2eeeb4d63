/* Races inside a launch: for each rule a trace that races and one that does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "ptx/module.h"
#include "ptx/watch/watch.h"
#include "ptx/watch/state.h"

/* ---- telling the watch: warps of one block or several, all lanes or some */

enum { READS = MR_PTX_READS, WRITES = MR_PTX_WRITES, UPDATES = MR_PTX_READS | MR_PTX_WRITES };
static const uint32_t ALL = UINT32_MAX;
static ptx_instruction code[32]; /* instruction 1 is what a trace calls 1 */
static mr_ptx_watch *watch;

static void begin(uint32_t blocks, uint32_t threads) {
    for (uint32_t i = 0; i < 32; i++)
        code[i] = (ptx_instruction){
            .place = {.ptx_line = i, .file = 1, .line = i, .outer_file = 1, .outer_line = i}};
    watch = mr_ptx_watch_create(NULL, blocks, threads);
    assert_non_null(watch);
    for (uint32_t b = 0; b < blocks; b++) ptx_watch_block(watch, b, 1024);
}

/* Ends the launch: how many races there were. */
static uint32_t end(void) {
    uint32_t count = mr_ptx_watch_race_count(watch);
    assert_null(mr_ptx_watch_stopped(watch));
    mr_ptx_watch_destroy(watch);
    watch = NULL;
    return count;
}

typedef struct {
    ptx_space space;
    uint64_t address;
    uint32_t step, bytes;
    ptx_order order;
    ptx_scope scope;
    bool atomic;
    const uint64_t *value;
} place;

static void tell_at(uint32_t at, uint32_t block, uint32_t warp, uint32_t mask, uint8_t access,
                    place p, const uint64_t *address) {
    ptx_watched a = {.block = block,
                     .warp = warp,
                     .mask = mask,
                     .space = p.space,
                     .address = address,
                     .bytes = p.bytes ? p.bytes : 4,
                     .access = access,
                     .atomic = p.atomic,
                     .order = p.order,
                     .scope = p.scope,
                     .value = p.value,
                     .instruction = &code[at]};
    ptx_watch_access(watch, &a);
}

/* Lane i accesses address + i * step. */
static void tell(uint32_t at, uint32_t block, uint32_t warp, uint32_t mask, uint8_t access,
                 place p) {
    uint64_t address[32];
    for (uint32_t i = 0; i < 32; i++) address[i] = p.address + (uint64_t)i * p.step;
    tell_at(at, block, warp, mask, access, p, address);
}

static place shared(uint64_t address, uint32_t step) {
    return (place){.space = PTX_SHARED, .address = address, .step = step};
}
static place global(uint64_t address, uint32_t step) {
    return (place){.space = PTX_GLOBAL, .address = 0x7f0000001000 + address, .step = step};
}
static place strong(place p, ptx_order order, ptx_scope scope) {
    p.order = order;
    p.scope = scope;
    p.atomic = order != PTX_VOLATILE;
    return p;
}
static place flag(ptx_order order, ptx_scope scope) {
    return strong(global(2048, 0), order, scope);
}
static void fence(uint32_t block, uint32_t warp, uint32_t mask, ptx_scope scope) {
    ptx_watch_fence(watch, block, warp, mask, PTX_SEQ_CST, scope);
}
static void barrier(uint32_t block) {
    ptx_watch_barrier(watch, block, NULL, 0);
}

/* ---- inside a block */

static void barrier_orders_warps(void **state) {
    (void)state;
    for (int has_barrier = 0; has_barrier < 2; has_barrier++) {
        begin(1, 64);
        tell(1, 0, 0, ALL, WRITES, shared(0, 4));
        if (has_barrier) barrier(0);
        tell(2, 0, 1, ALL, READS, shared(0, 4));
        assert_int_equal(mr_ptx_watch_race_count(watch), !has_barrier);
        if (!has_barrier) {
            const ptx_race *r = mr_ptx_watch_race(watch, 0);
            assert_int_equal(r->space, PTX_SHARED);
            assert_int_equal(r->address, 0);
            assert_int_equal(r->count, 31);
            assert_int_equal(r->first.warp, 0);
            assert_int_equal(r->second.warp, 1);
            assert_int_equal(r->first.access, WRITES);
            assert_int_equal(r->second.access, READS);
            assert_ptr_equal(r->first.instruction, &code[1]);
            assert_ptr_equal(r->second.instruction, &code[2]);
            assert_non_null(strstr(r->advice, "__syncthreads()"));
            assert_null(mr_ptx_watch_race(watch, 1));
        }
        end();
    }
}

static void write_after_read_needs_a_barrier(void **state) {
    (void)state;
    for (int has_barrier = 0; has_barrier < 2; has_barrier++) {
        begin(1, 128);
        for (uint32_t w = 0; w < 4; w++) tell(1, 0, w, ALL, READS, shared(0, 0)); /* all of one */
        if (has_barrier) barrier(0);
        tell(2, 0, 3, 1, WRITES, shared(0, 0));
        assert_int_equal(end(), !has_barrier);
    }
}

/* Two buffers take turns: one barrier a round is enough, and with one buffer it is not. */
static void double_buffering(void **state) {
    (void)state;
    for (uint32_t buffers = 1; buffers <= 2; buffers++) {
        begin(1, 64);
        for (uint32_t round = 0; round < 10; round++) {
            uint64_t at = round % buffers * 256;
            for (uint32_t w = 0; w < 2; w++) tell(1, 0, w, ALL, WRITES, shared(at + 128 * w, 4));
            barrier(0);
            for (uint32_t w = 0; w < 2; w++) tell(2, 0, w, ALL, READS, shared(at + 128 * !w, 4));
        }
        assert_int_equal(end(), buffers == 1);
    }
}

static void threads_of_a_warp_are_not_in_step(void **state) {
    (void)state;
    for (int has_sync = 0; has_sync < 2; has_sync++) {
        begin(1, 32);
        tell(1, 0, 0, ALL, WRITES, shared(0, 4));
        if (has_sync) ptx_watch_warp_sync(watch, 0, 0, ALL);
        tell(2, 0, 0, ALL >> 1, READS, shared(4, 4));
        assert_int_equal(mr_ptx_watch_race_count(watch), !has_sync);
        if (!has_sync) assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "__syncwarp()"));
        end();
    }
}

static void warp_sync_orders_its_lanes_only(void **state) {
    (void)state;
    begin(1, 64);
    tell(1, 0, 0, 0x00ff, WRITES, shared(0, 4));
    ptx_watch_warp_sync(watch, 0, 0, 0x00ff);
    tell(2, 0, 0, 0x00ff, READS, shared(0, 0));
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(3, 0, 0, 0xff00, READS, shared(0, 0)); /* lanes that were not there */
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    ptx_watch_warp_sync(watch, 0, 0, 0x0180); /* lane 7 knows of lane 0, and now lane 8 does */
    tell(4, 0, 0, 0x0100, READS, shared(0, 0));
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    tell(5, 0, 1, 1, READS, shared(0, 0)); /* another warp */
    assert_int_equal(end(), 2);
}

static void barrier_of_some_warps(void **state) {
    (void)state;
    uint64_t two = 3;
    begin(1, 128);
    tell(1, 0, 0, ALL, WRITES, shared(0, 4));
    ptx_watch_barrier(watch, 0, &two, 2);
    tell(2, 0, 1, ALL, READS, shared(0, 4));
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(3, 0, 2, ALL, READS, shared(0, 4));
    assert_int_equal(end(), 1);
}

/* A producer arrives and goes on, a consumer waits: only what was before the arrival is ordered. */
static void arrival_orders_what_was_before_it(void **state) {
    (void)state;
    uint64_t consumer = 2;
    begin(1, 64);
    tell(1, 0, 0, ALL, WRITES, shared(0, 4));
    ptx_watch_arrive(watch, 0, 0, 1);
    tell(2, 0, 0, ALL, WRITES, shared(512, 4));
    ptx_watch_barrier(watch, 0, &consumer, 1);
    ptx_watch_arrived(watch, 0, 1, &consumer, 1);
    tell(3, 0, 1, ALL, READS, shared(0, 4));
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(4, 0, 1, ALL, READS, shared(512, 4));
    assert_int_equal(end(), 1);
}

static void lanes_that_write_one_place(void **state) {
    (void)state;
    uint64_t ones[32], ramp[32];
    for (uint32_t i = 0; i < 32; i++) ones[i] = 1, ramp[i] = i;
    for (int same = 0; same < 2; same++) {
        place p = shared(0, 0);
        p.value = same ? ones : ramp;
        begin(1, 32);
        tell(1, 0, 0, ALL, WRITES, p);
        assert_int_equal(mr_ptx_watch_race_count(watch), 1);
        assert_int_equal(mr_ptx_watch_race(watch, 0)->same_value, same);
        assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "atomic"));
        end();
    }
}

static void bytes_of_one_word(void **state) {
    (void)state;
    place bytes = shared(0, 1), word = shared(0, 0), halves = shared(0, 2);
    bytes.bytes = 1;
    halves.bytes = 2;
    begin(1, 64);
    tell(1, 0, 0, ALL, WRITES, bytes); /* each lane its byte: no race */
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(2, 0, 1, 1u << 20, WRITES, bytes); /* byte 20 by another warp */
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    assert_int_equal(mr_ptx_watch_race(watch, 0)->address, 20);
    barrier(0);
    word.address = 20;
    tell(3, 0, 0, 1, WRITES, word);
    tell(4, 0, 1, 1u << 11, READS, halves); /* bytes 22 and 23 */
    assert_int_equal(mr_ptx_watch_race_count(watch), 2);
    assert_int_equal(mr_ptx_watch_race(watch, 1)->address, 22);
    end();
}

static void blocks_have_their_own_shared_memory(void **state) {
    (void)state;
    begin(1, 32); /* two blocks, one after the other, use the same storage */
    mr_ptx_watch_destroy(watch);
    watch = mr_ptx_watch_create(NULL, 2, 64);
    for (uint32_t b = 0; b < 2; b++) {
        ptx_watch_block(watch, b, 1024);
        tell(1, b, b, ALL, WRITES, shared(0, 4));
        tell(2, b, b, 1, UPDATES, strong(shared(512, 0), PTX_RELAXED, PTX_SCOPE_BLOCK));
        ptx_watch_block_done(watch, b);
    }
    assert_int_equal(end(), 0);
}

/* ---- atomics */

static void atomics_do_not_race(void **state) {
    (void)state;
    begin(4, 64);
    for (uint32_t b = 0; b < 4; b++)
        for (uint32_t w = 0; w < 2; w++)
            tell(1, b, w, ALL, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(2, 3, 0, 1, READS, global(2048, 0)); /* a plain read of the counter */
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "atomic"));
    end();
}

static bool order_of_end(void) {
    bool matters = mr_ptx_watch_order_matters(watch);
    assert_int_equal(end(), 0);
    return matters;
}

static void volatile_accesses_of_two_threads(void **state) {
    (void)state;
    place x = flag(PTX_VOLATILE, PTX_SCOPE_NONE),
          y = strong(global(0, 4), PTX_RELAXED, PTX_SCOPE_DEVICE);
    begin(2, 64);
    tell(1, 0, 0, 1, WRITES, x);
    tell(2, 0, 0, 1, UPDATES, x); /* the same thread */
    tell(3, 0, 0, ALL, WRITES, y);
    barrier(0);
    tell(4, 0, 1, 1, READS, x);
    tell(5, 0, 1, ALL, READS, y);
    tell(5, 1, 1, ALL, READS, strong(global(512, 4), PTX_RELAXED, PTX_SCOPE_DEVICE));
    assert_false(order_of_end());
    for (int second = 0; second < 3; second++) {
        begin(2, 64);
        tell(1, 0, 0, 1, second == 1 ? READS : WRITES, x);
        tell(2, 1, 0, 1, second == 2 ? READS : WRITES, x);
        assert_true(order_of_end());
    }
    begin(1, 32);
    tell(1, 0, 0, 3, WRITES, x); /* two lanes of one instruction */
    assert_true(order_of_end());
}

/* A store is not forgotten for atomic operations of its thread, however many follow. */
static void a_store_among_atomics(void **state) {
    (void)state;
    for (int stores = 0; stores < 2; stores++) {
        begin(2, 32);
        if (stores) tell(1, 0, 0, 1, WRITES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        for (uint32_t i = 0; i < 100; i++)
            tell(2 + i % 20, 0, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        assert_false(mr_ptx_watch_order_matters(watch));
        tell(30, 1, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        assert_int_equal(order_of_end(), stores);
    }
}

/* A thread's atomic operation may happen to be the later one; the thread's knowledge of that is no order. */
static void atomics_that_tell(void **state) {
    (void)state;
    for (int what = 0; what < 4; what++) { /* 1: fences, 2: data, too, 3: the counter is read */
        begin(2, 32);
        if (what == 2) tell(1, 0, 0, 1, WRITES, global(0, 4));
        if (what == 1 || what == 2) fence(0, 0, 1, PTX_SCOPE_DEVICE);
        tell(2, 0, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        tell(3, 1, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        if (what == 1 || what == 2) fence(1, 0, 1, PTX_SCOPE_DEVICE);
        if (what == 2) tell(4, 1, 0, 1, READS, global(0, 4));
        if (what == 3) tell(5, 1, 0, 1, READS, global(2048, 0));
        assert_int_equal(order_of_end(), what >= 2);
    }
}

static void scope_of_an_atomic(void **state) {
    (void)state;
    for (uint32_t second = 0; second < 2; second++) { /* the same block, or another one */
        begin(2, 64);
        tell(1, 0, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_BLOCK));
        tell(2, second, 1, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        assert_int_equal(mr_ptx_watch_race_count(watch), second);
        if (second) assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "device scope"));
        end();
    }
}

static void size_of_an_atomic(void **state) {
    (void)state;
    place wide = flag(PTX_RELAXED, PTX_SCOPE_DEVICE);
    wide.bytes = 8;
    begin(2, 32);
    tell(1, 0, 0, 1, UPDATES, wide);
    tell(1, 1, 0, 1, UPDATES, wide);
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(2, 1, 0, 2, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "same size"));
    end();
}

/* ---- between blocks */

static void blocks_are_not_ordered(void **state) {
    (void)state;
    begin(2, 32);
    tell(1, 0, 0, ALL, WRITES, global(0, 4));
    barrier(0);
    ptx_watch_block_done(watch, 0);
    tell(2, 1, 0, ALL, READS, global(0, 4));
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    assert_non_null(strstr(mr_ptx_watch_race(watch, 0)->advice, "two launches"));
    end();
}

/* data, fence, flag; flag, fence, data. Each step is left out once, or is of a scope too small. */
static void message_between_blocks(void **state) {
    (void)state;
    enum {
        COMPLETE,
        NO_FENCE,
        NARROW_FENCE,
        NO_FLAG,
        NO_LOOK,
        NARROW_FLAG,
        NO_SECOND_FENCE,
        CASES
    };
    for (int c = 0; c < CASES; c++) {
        ptx_scope scope = c == NARROW_FLAG ? PTX_SCOPE_BLOCK : PTX_SCOPE_DEVICE;
        begin(2, 32);
        tell(1, 0, 0, ALL, WRITES, global(0, 4));
        barrier(0);
        if (c != NO_FENCE) fence(0, 0, 1, c == NARROW_FENCE ? PTX_SCOPE_BLOCK : PTX_SCOPE_DEVICE);
        if (c != NO_FLAG) tell(2, 0, 0, 1, WRITES, flag(PTX_RELAXED, scope));
        if (c != NO_LOOK) tell(3, 1, 0, 1, READS, flag(PTX_VOLATILE, PTX_SCOPE_NONE));
        if (c != NO_SECOND_FENCE) fence(1, 0, 1, PTX_SCOPE_DEVICE);
        barrier(1);
        tell(4, 1, 0, ALL, READS, global(0, 4));
        uint32_t expected = c == COMPLETE ? 0 : c == NARROW_FLAG ? 2 : 1;
        assert_int_equal(mr_ptx_watch_race_count(watch), expected);
        if (c == NO_FLAG)
            assert_non_null(
                strstr(mr_ptx_watch_race(watch, 0)->advice, "a fence alone is not enough"));
        end();
    }
}

static void release_and_acquire_operations(void **state) {
    (void)state;
    for (int c = 0; c < 3; c++) { /* both; no release; no acquire */
        begin(2, 32);
        tell(1, 0, 0, 1, WRITES, global(0, 4));
        tell(2, 0, 0, 1, WRITES, flag(c == 1 ? PTX_RELAXED : PTX_RELEASE, PTX_SCOPE_DEVICE));
        tell(3, 1, 0, 1, READS, flag(c == 2 ? PTX_RELAXED : PTX_ACQUIRE, PTX_SCOPE_DEVICE));
        tell(4, 1, 0, 1, READS, global(0, 4));
        assert_int_equal(end(), c != 0);
    }
}

/* The flag counts only if the reader saw it: what was read was written before the release. */
static void the_value_must_have_been_seen(void **state) {
    (void)state;
    begin(2, 32);
    tell(3, 1, 0, 1, READS, flag(PTX_ACQUIRE, PTX_SCOPE_DEVICE)); /* too early */
    tell(1, 0, 0, 1, WRITES, global(0, 4));
    tell(2, 0, 0, 1, WRITES, flag(PTX_RELEASE, PTX_SCOPE_DEVICE));
    tell(4, 1, 0, 1, READS, global(0, 4));
    assert_int_equal(end(), 1);
}

/* Atomic operations carry on what they have read; a plain store breaks the chain. */
static void chains_of_atomics(void **state) {
    (void)state;
    for (int by_store = 0; by_store < 2; by_store++) {
        begin(3, 32);
        tell(1, 0, 0, 1, WRITES, global(0, 4));
        tell(2, 0, 0, 1, WRITES, flag(PTX_RELEASE, PTX_SCOPE_DEVICE));
        tell(3, 1, 0, 1, by_store ? WRITES : UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        tell(4, 2, 0, 1, READS, flag(PTX_ACQUIRE, PTX_SCOPE_DEVICE));
        tell(5, 2, 0, 1, READS, global(0, 4));
        assert_int_equal(end(), by_store);
    }
}

/* The last block adds up what all blocks have left: each fences before it draws a number, the last one after. */
static void last_block(void **state) {
    (void)state;
    for (int fences_after = 0; fences_after < 2; fences_after++) {
        begin(50, 64);
        for (uint32_t b = 0; b < 50; b++) {
            tell(1, b, 0, 1, WRITES, global(4 * b, 0));
            fence(b, 0, 1, PTX_SCOPE_DEVICE);
            tell(2, b, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
            if (fences_after) fence(b, 0, 1, PTX_SCOPE_DEVICE);
            barrier(b);
            if (b < 49) ptx_watch_block_done(watch, b);
        }
        tell(3, 49, 0, ALL, READS, global(0, 4));
        tell(3, 49, 1, 0x1ffff, READS, global(128, 4));
        tell(4, 49, 1, 1, WRITES, global(2048, 0)); /* the counter starts anew: all have drawn */
        assert_int_equal(end(), !fences_after);
    }
}

/* A lock: what is done under it is ordered, whatever block comes next. */
static void lock(void **state) {
    (void)state;
    for (int has_fences = 0; has_fences < 2; has_fences++) {
        begin(4, 32);
        for (uint32_t round = 0; round < 3000; round++) {
            uint32_t b = round * 7 % 4;
            tell(1, b, 0, 1, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
            if (has_fences) fence(b, 0, 1, PTX_SCOPE_DEVICE);
            tell(2, b, 0, 1, READS, global(0, 4));
            tell(3, b, 0, 1, WRITES, global(0, 4));
            if (has_fences) fence(b, 0, 1, PTX_SCOPE_DEVICE);
            tell(4, b, 0, 1, round % 2 ? UPDATES : WRITES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
        }
        uint32_t count = end();
        assert_true(has_fences ? count == 0 : count > 0);
    }
}

/* A message that goes on through barriers: the writer's block, a thread that passes it on, the reader's block. */
static void order_is_transitive(void **state) {
    (void)state;
    begin(3, 64);
    tell(1, 0, 1, ALL, WRITES, global(0, 4));
    barrier(0);
    tell(2, 0, 0, 1, WRITES, flag(PTX_RELEASE, PTX_SCOPE_DEVICE));
    tell(3, 1, 0, 2, READS, flag(PTX_ACQUIRE, PTX_SCOPE_DEVICE));
    barrier(1);
    place second = flag(PTX_RELEASE, PTX_SCOPE_DEVICE);
    second.address += 4;
    tell(4, 1, 1, 4, WRITES, second);
    second.order = PTX_ACQUIRE;
    tell(5, 2, 0, 8, READS, second);
    barrier(2);
    tell(6, 2, 1, ALL, WRITES, global(0, 4));
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    tell(7, 1, 0, 1, READS, global(0, 4)); /* nothing orders it after the last write */
    assert_int_equal(end(), 1);
}

static void readers_of_many_blocks(void **state) {
    (void)state;
    begin(300, 96);
    for (uint32_t b = 0; b < 300; b++) {
        for (uint32_t w = 0; w < 3; w++) tell(1, b, w, ALL, READS, global(0, 0));
        if (b < 299) ptx_watch_block_done(watch, b);
    }
    assert_int_equal(mr_ptx_watch_race_count(watch), 0);
    barrier(299); /* orders only its own block's readers */
    tell(2, 299, 0, 1, WRITES, global(0, 0));
    assert_int_equal(mr_ptx_watch_race_count(watch), 1);
    assert_int_not_equal(mr_ptx_watch_race(watch, 0)->first.block, 299);
    end();
}

static void a_message_frees_one_reader_of_two(void **state) {
    (void)state;
    for (int both = 0; both < 2; both++) {
        begin(3, 32);
        for (uint32_t b = 0; b < 2; b++) {
            tell(1, b, 0, 1, READS, global(0, 0));
            if (b == 0 || both) tell(2, b, 0, 1, UPDATES, flag(PTX_RELEASE, PTX_SCOPE_DEVICE));
            ptx_watch_block_done(watch, b);
        }
        tell(3, 2, 0, 1, READS, flag(PTX_ACQUIRE, PTX_SCOPE_DEVICE));
        tell(4, 2, 0, 1, WRITES, global(0, 0));
        assert_int_equal(end(), !both);
    }
}

/* ---- several threads, texts */

typedef struct {
    uint32_t first;
} share;

static void *run_blocks(void *context) {
    const share *s = context;
    for (uint32_t b = s->first; b < 400; b += 2) {
        ptx_watch_block(watch, b, 256);
        for (uint32_t w = 0; w < 4; w++) {
            tell(1, b, w, ALL, READS, global(0, 0));
            tell(2, b, w, ALL, WRITES, global(4096 + 512 * b + 128 * w, 4));
            tell(3, b, w, ALL, WRITES, shared(0, 4));
            barrier(b);
            ptx_watch_hold(watch);
            tell(4, b, w, ALL, UPDATES, flag(PTX_ACQ_REL, PTX_SCOPE_DEVICE));
            ptx_watch_let_go(watch);
        }
        if (b == 17) tell(5, b, 0, 1, WRITES, global(4096 + 512 * 399, 0));
        ptx_watch_block_done(watch, b);
    }
    return NULL;
}

static void blocks_on_two_threads(void **state) {
    (void)state;
    begin(1, 1);
    mr_ptx_watch_destroy(watch);
    watch = mr_ptx_watch_create(NULL, 400, 128);
    pthread_t other;
    share shares[2] = {{0}, {1}};
    assert_int_equal(pthread_create(&other, NULL, run_blocks, &shares[1]), 0);
    run_blocks(&shares[0]);
    pthread_join(other, NULL);
    assert_int_equal(end(), 1);
}

static void text_of_a_race(void **state) {
    (void)state;
    static const char *const files[] = {"", "t.cu"};
    struct mr_ptx_module module = {.tree = {.files = files, .file_count = 2}};
    mr_ptx_kernel kernel = {.name = "k"};
    mr_ptx_launch launch = {.kernel = &kernel, .grid = {2, 3, 1}, .block = {8, 4, 1}};
    char text[600];
    begin(6, 32);
    watch->module = &module;
    tell(14, 5, 0, 0x400, WRITES, shared(0, 4));
    tell(15, 5, 0, 0x200, READS, shared(4, 4));
    mr_ptx_race_text(watch, mr_ptx_watch_race(watch, 0), &launch, text, sizeof text);
    assert_string_equal(text,
                        "race in kernel `k`: thread (2,1,0) of block (1,2,0) writes byte 40 of "
                        "shared memory at t.cu:14, and thread (1,1,0) reads it at t.cu:15; nothing "
                        "orders the two");
    assert_string_equal(
        mr_ptx_watch_race(watch, 0)->advice,
        "the threads of a warp are not in step: __syncwarp() between the two orders them");
    end();
}

/* ---- how long an access takes: only with MR_WATCH_BENCH=1 */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_cost(const char *what, double start, uint64_t accesses) {
    printf("%-44s %6.2f ns a lane\n", what, (seconds() - start) * 1e9 / (32.0 * (double)accesses));
}

static void measure(void) {
    enum { BLOCKS = 4000, WARPS = 8 };
    double start = 0;
    for (int round = 0; round < 2; round++) { /* the second one finds its pages */
        if (!round) watch = mr_ptx_watch_create(NULL, 2 * BLOCKS, 32 * WARPS);
        start = seconds();
        for (uint32_t i = 0; i < BLOCKS; i++) {
            uint32_t b = i + (uint32_t)round * BLOCKS;
            ptx_watch_block(watch, b, 0);
            for (uint32_t w = 0; w < WARPS; w++) {
                uint64_t at = 128 * (i * WARPS + w);
                tell(1, b, w, ALL, READS, global(at, 4));
                tell(2, b, w, ALL, READS, global((1 << 24) + at, 4));
                if (!round) tell(3, b, w, ALL, WRITES, global((1 << 25) + at, 4));
            }
            ptx_watch_block_done(watch, b);
        }
        print_cost(round ? "reads of what another block has read" : "saxpy on new pages", start,
                   BLOCKS * WARPS * (round ? 2 : 3));
    }
    end();
    watch = mr_ptx_watch_create(NULL, 4, 32 * WARPS);
    ptx_watch_block(watch, 0, 4096);
    start = seconds();
    for (uint32_t i = 0; i < 100000; i++) {
        for (uint32_t w = 0; w < WARPS; w++) tell(1, 0, w, ALL, WRITES, shared(128 * w, 4));
        barrier(0);
        for (uint32_t w = 0; w < WARPS; w++) tell(2, 0, w, ALL, READS, shared(128 * (w ^ 1), 4));
        barrier(0);
    }
    print_cost("shared memory, written, barrier, read", start, 100000 * 2 * WARPS);
    start = seconds();
    for (uint32_t i = 0; i < 20000; i++) { /* a tile of 16 x 16, as in a matrix product */
        barrier(0);
        for (uint32_t k = 0; k < 16; k++)
            for (uint32_t w = 0; w < WARPS; w++) {
                uint64_t row[32], column[32];
                for (uint32_t l = 0; l < 32; l++) row[l] = 128 * w + l / 16 * 64 + 4 * k;
                for (uint32_t l = 0; l < 32; l++) column[l] = 1024 + 64 * k + l % 16 * 4;
                tell_at(3, 0, w, ALL, READS, shared(0, 0), row);
                tell_at(4, 0, w, ALL, READS, shared(0, 0), column);
            }
    }
    print_cost("tile of a matrix product (shared reads)", start, 20000 * 16 * WARPS * 2);
    ptx_watch_block_done(watch, 0);
    ptx_watch_block(watch, 1, 4096);
    start = seconds();
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t w = 0; w < WARPS; w++)
            tell(5, 1, w, ALL, UPDATES,
                 strong(shared(i * 36 % 896, 4), PTX_RELAXED, PTX_SCOPE_DEVICE));
    print_cost("atomics on shared memory", start, 20000 * WARPS);
    start = seconds();
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t w = 0; w < WARPS; w++)
            tell(6, 1, w, ALL, UPDATES, flag(PTX_RELAXED, PTX_SCOPE_DEVICE));
    print_cost("atomics of all lanes on one counter", start, 20000 * WARPS);
    start = seconds();
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t w = 0; w < WARPS; w++) {
            for (uint32_t k = 0; k < 3; k++)
                tell(7 + k, 1, w, ALL, READS, global(8192 + 128 * w + 4 * k, 4));
            if (w == WARPS - 1) barrier(1);
        }
    print_cost("stencil of three (global reads)", start, 20000 * WARPS * 3);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barrier_orders_warps),
        cmocka_unit_test(write_after_read_needs_a_barrier),
        cmocka_unit_test(double_buffering),
        cmocka_unit_test(threads_of_a_warp_are_not_in_step),
        cmocka_unit_test(warp_sync_orders_its_lanes_only),
        cmocka_unit_test(barrier_of_some_warps),
        cmocka_unit_test(arrival_orders_what_was_before_it),
        cmocka_unit_test(lanes_that_write_one_place),
        cmocka_unit_test(bytes_of_one_word),
        cmocka_unit_test(blocks_have_their_own_shared_memory),
        cmocka_unit_test(atomics_do_not_race),
        cmocka_unit_test(volatile_accesses_of_two_threads),
        cmocka_unit_test(a_store_among_atomics),
        cmocka_unit_test(atomics_that_tell),
        cmocka_unit_test(scope_of_an_atomic),
        cmocka_unit_test(size_of_an_atomic),
        cmocka_unit_test(blocks_are_not_ordered),
        cmocka_unit_test(message_between_blocks),
        cmocka_unit_test(release_and_acquire_operations),
        cmocka_unit_test(the_value_must_have_been_seen),
        cmocka_unit_test(chains_of_atomics),
        cmocka_unit_test(last_block),
        cmocka_unit_test(lock),
        cmocka_unit_test(order_is_transitive),
        cmocka_unit_test(readers_of_many_blocks),
        cmocka_unit_test(a_message_frees_one_reader_of_two),
        cmocka_unit_test(blocks_on_two_threads),
        cmocka_unit_test(text_of_a_race),
    };
    if (getenv("MR_WATCH_BENCH")) {
        measure();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
