/* Parts of the checker by themselves: views against sets of bytes, and memory that stays bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hazard/state.h"

static uint64_t seed = 88172645463325252u;

static int draw(int n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)((seed >> 20) % (uint64_t)n);
}

/* ---- views */

enum { BYTES = 4096 };

static void random_tensor(mr_tensor *t) {
    memset(t, 0, sizeof *t);
    t->dtype = draw(2) ? MR_F32 : draw(2) ? MR_U8 : MR_F64;
    t->ndim = (uint8_t)draw(5);
    int64_t low = 0, high = 0, most = BYTES / (int64_t)mr_dtype_size((mr_dtype)t->dtype);
    t->numel = 1;
    for (int d = 0; d < t->ndim; d++) {
        t->shape[d] = 1 + draw(5);
        t->stride[d] = draw(40) - 10;
        t->numel *= t->shape[d];
        int64_t reach = (t->shape[d] - 1) * t->stride[d];
        if (reach < 0) low += reach;
        else high += reach;
    }
    t->offset = -low + draw((int)(most - (high - low)));
}

static void mark_bytes(const mr_tensor *t, uint8_t *bytes) {
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)t->dtype), index[MR_MAX_DIMS] = {0};
    memset(bytes, 0, BYTES);
    for (int64_t n = 0; n < t->numel; n++) {
        int64_t at = t->offset;
        for (int d = 0; d < t->ndim; d++) at += index[d] * t->stride[d];
        memset(bytes + at * size, 1, (size_t)size);
        for (int d = t->ndim - 1; d >= 0 && ++index[d] == t->shape[d]; d--) index[d] = 0;
    }
}

static void overlap_is_exact(void **unused) {
    (void)unused;
    static uint8_t in_a[BYTES], in_b[BYTES];
    int overlaps = 0, apart = 0, covered = 0;
    for (int n = 0; n < 100000; n++) {
        mr_tensor a, b;
        byte_view va, vb;
        random_tensor(&a);
        random_tensor(&b);
        if (draw(2)) b.offset = a.offset; /* near each other, or they seldom meet */
        if (draw(4) == 0) memcpy(b.stride, a.stride, sizeof a.stride);
        mr_tensor fits = b;
        int64_t low = 0, high = 0;
        for (int d = 0; d < b.ndim; d++) {
            int64_t reach = (b.shape[d] - 1) * b.stride[d];
            if (reach < 0) low += reach;
            else high += reach;
        }
        int64_t size = (int64_t)mr_dtype_size((mr_dtype)b.dtype);
        if (fits.offset + low < 0 || (fits.offset + high + 1) * size > BYTES) continue;
        assert_true(mr_hazard_view_of(&a, &va) && mr_hazard_view_of(&b, &vb));
        mark_bytes(&a, in_a);
        mark_bytes(&b, in_b);
        uint64_t shared = 0, only_b = 0, in_view = 0;
        for (int i = 0; i < BYTES; i++) {
            shared += in_a[i] & in_b[i];
            only_b += in_b[i] & !in_a[i];
            in_view += in_a[i];
        }
        assert_int_equal(mr_hazard_view_overlap(&va, &vb), shared > 0);
        assert_int_equal(mr_hazard_view_overlap(&vb, &va), shared > 0);
        if (mr_hazard_view_covers(&va, &vb)) {
            covered++;
            assert_int_equal(only_b, 0);
        }
        for (uint64_t i = va.first; i < va.end; i++) /* the extent is tight */
            if (i == va.first || i == va.end - 1) assert_true(in_a[i]);
        assert_true(in_view > 0);
        overlaps += shared > 0;
        apart += shared == 0;
    }
    assert_true(overlaps > 1000 && apart > 1000 && covered > 100);
}

static void columns_are_told_apart_quickly(void **unused) {
    (void)unused;
    mr_tensor a = {
        .ndim = 1, .dtype = MR_F32, .shape = {1 << 20}, .stride = {1 << 10}, .numel = 1 << 20};
    mr_tensor b = a;
    byte_view va, vb;
    b.offset = 1;
    assert_true(mr_hazard_view_of(&a, &va) && mr_hazard_view_of(&b, &vb));
    for (int i = 0; i < 1000000; i++) assert_false(mr_hazard_view_overlap(&va, &vb));
}

/* ---- memory */

typedef struct {
    mr_machine machine;
    mr_device device, *devices[1];
    mr_hazard *hazard;
} bench;

static void open_bench(bench *b) {
    memset(b, 0, sizeof *b);
    b->devices[0] = &b->device;
    b->device.machine = &b->machine;
    b->machine.device_count = 1;
    b->machine.devices = b->devices;
    b->machine.counts.next_seq = 1;
    assert_null(mr_hazard_create(&b->machine, NULL, &b->hazard));
    assert_null(mr_hazard_set_mode(b->hazard, MR_HAZARD_COLLECT));
}

static void close_bench(bench *b) {
    mr_hazard_destroy(b->hazard);
    mr_vec_free(&b->machine.observing.observers);
}

static mr_observer *observer_of(bench *b) {
    return b->machine.observing.observers.items[0];
}

static uint64_t send(bench *b, mr_command *command) {
    command->seq = b->machine.counts.next_seq++;
    command->machine = &b->machine;
    command->operands = command->inline_operands;
    command->name = "w";
    command->where = (mr_site){"bounds.lua", 1};
    mr_observer *observer = observer_of(b);
    assert_null(observer->may(observer, command));
    observer->did(observer, command, true);
    return command->seq;
}

static void write_to(bench *b, mr_stream *s, mr_tensor *t) {
    mr_command command = {.kind = MR_COMMAND_OP, .stream = s, .operand_count = 1};
    command.inline_operands[0] = (mr_operand){t, MR_WRITE};
    send(b, &command);
}

static void wait_for(bench *b, mr_stream *s, mr_stream *other) {
    mr_event event = {.refs = 1, .machine = &b->machine};
    mr_command record = {.kind = MR_COMMAND_RECORD, .stream = other};
    record.u.event.event = &event;
    event.record_seq = record.u.event.record_seq = send(b, &record);
    mr_command wait = {.kind = MR_COMMAND_WAIT, .stream = s};
    wait.u.event.event = &event;
    wait.u.event.record_seq = event.record_seq;
    send(b, &wait);
    observer_of(b)->event_gone(observer_of(b), &event);
}

/* MR_HAZARD_COMMANDS sets how many; 100 million when somebody wants to see it. */
static uint64_t commands(void) {
    const char *text = getenv("MR_HAZARD_COMMANDS");
    return text ? strtoull(text, NULL, 10) : 1000000;
}

static void memory_is_bounded_without_any_host_wait(void **unused) {
    (void)unused;
    bench b;
    open_bench(&b);
    enum { STREAMS = 100 };
    static mr_stream streams[STREAMS];
    mr_storage storage = {.refs = 1, .bytes = 4096, .machine = &b.machine, .device = &b.device};
    mr_tensor t = {.refs = 1, .dtype = MR_F32, .ndim = 1, .storage = &storage, .contiguous = true};
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (mr_stream){.refs = 1,
                                 .kind = MR_STREAM_USER,
                                 .id = (uint32_t)i + 1,
                                 .device = &b.device,
                                 .blocking = i % 3 == 0};
    uint32_t id = STREAMS;
    for (uint64_t n = 0; n < commands(); n += 3) {
        int i = draw(STREAMS), k = draw(STREAMS);
        t.offset = draw(32) * 32;
        t.numel = t.shape[0] = 32;
        write_to(&b, &streams[i], &t);
        wait_for(&b, &streams[k], &streams[i]);
        if (n % 100 == 0) { /* a stream goes and another comes */
            int gone = draw(STREAMS);
            if (streams[gone].observed)
                observer_of(&b)->stream_gone(observer_of(&b), &streams[gone]);
            streams[gone].id = ++id;
        }
    }
    assert_true(b.hazard->histories.entry_count <= 8 * STREAMS);
    assert_true(b.hazard->order.slots <= 8 * STREAMS);
    assert_true(b.hazard->clocks.live <= 8 * STREAMS);
    assert_true(mr_hazard_report_count(b.hazard) <= 3);
    assert_int_equal(mr_hazard_get_totals(b.hazard, false).claims.count[MR_CLAIM_FORGOTTEN], 0);
    printf("%u slots, %zu entries, %zu clocks\n", b.hazard->order.slots,
           b.hazard->histories.entry_count, b.hazard->clocks.live);
    close_bench(&b);
}

static void the_host_s_waits_free_what_is_done(void **unused) {
    (void)unused;
    bench b;
    open_bench(&b);
    mr_stream s = {.refs = 1, .kind = MR_STREAM_USER, .id = 1, .device = &b.device};
    mr_storage storage = {.refs = 1, .bytes = 1 << 20, .machine = &b.machine, .device = &b.device};
    mr_tensor t = {.refs = 1, .dtype = MR_F32, .ndim = 1, .storage = &storage, .contiguous = true};
    for (uint64_t n = 0; n < commands(); n++) { /* a window that slides */
        t.offset = (int64_t)(n % 200000);
        t.numel = t.shape[0] = 10;
        write_to(&b, &s, &t);
        if (n % 1000) continue;
        mr_command sync = {.kind = MR_COMMAND_STREAM_SYNC, .stream = &s};
        send(&b, &sync);
    }
    assert_true(b.hazard->histories.entry_count < 10000);
    close_bench(&b);
}

/* Accesses are kept as long as a function may still race with them. Replaced accesses are not, however many functions
 * are pending and however long. */
static void memory_is_bounded_while_host_functions_are_pending(void **unused) {
    (void)unused;
    for (int many = 0; many < 2; many++) {
        for (int in_turn = 1; in_turn <= 3; in_turn++) {
            bench b;
            open_bench(&b);
            mr_stream s[4];
            for (uint32_t i = 0; i < 4; i++)
                s[i] = (mr_stream){
                    .refs = 1, .kind = MR_STREAM_USER, .id = i + 1, .device = &b.device};
            mr_storage storage = {.refs = 1,
                                  .kind = MR_MEMORY_PINNED,
                                  .bytes = 4096,
                                  .machine = &b.machine,
                                  .device = &b.device};
            mr_tensor t = {.refs = 1, .dtype = MR_F32, .ndim = 1, .storage = &storage};
            t.contiguous = true;
            t.numel = t.shape[0] = 32;
            for (uint64_t n = 0; n < commands() / 20; n++) {
                mr_command function = {.kind = MR_COMMAND_HOST_FUNCTION, .stream = &s[0]};
                if (many || n == 0) send(&b, &function);
                mr_stream *writer = &s[1 + n % (uint64_t)in_turn];
                write_to(&b, writer, &t);
                wait_for(&b, &s[1 + (n + 1) % (uint64_t)in_turn], writer);
                if (n == 1000 && !many) wait_for(&b, writer, &s[0]);
                mr_command sync = {.kind = MR_COMMAND_STREAM_SYNC, .stream = &s[1]};
                if (n % 100 == 0) send(&b, &sync);
            }
            assert_true(b.hazard->histories.entry_count <= 100);
            assert_int_equal(mr_hazard_report_count(b.hazard), 0);
            assert_int_equal(mr_hazard_get_totals(b.hazard, false).claims.count[MR_CLAIM_FORGOTTEN],
                             0);
            close_bench(&b);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_is_exact),
        cmocka_unit_test(columns_are_told_apart_quickly),
        cmocka_unit_test(memory_is_bounded_without_any_host_wait),
        cmocka_unit_test(the_host_s_waits_free_what_is_done),
        cmocka_unit_test(memory_is_bounded_while_host_functions_are_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
