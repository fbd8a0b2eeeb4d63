/* A backend for unit tests of src/tensor and src/ops: device memory is plain memory, and a command is
 * carried out when it is submitted: an operation in slices of random length and order, so that every
 * test on the "device" is also a test that slicing cannot be seen. */
#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "null/null.h"
#include "ops/call.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* What happened, for tests that ask. */
static struct {
    int ops, copies, waits, synchronizes, allocs, frees;
    int live;       /* memory blocks */
    uint64_t limit; /* a larger block is out of memory */
    const char *last_name;
    mr_copy_direction last_direction;
    int last_operands;
    uint8_t last_access; /* of operand 0 */
    int refuse;          /* submit fails when > 0, counting down to it */
} fake = {.limit = (uint64_t)1 << 33};

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}
static int64_t random_below(int64_t n) {
    return (int64_t)(next_random() % (uint64_t)n);
}

static mr_status fake_open(mr_machine *machine, const mr_machine_options *options) {
    MR_TRY(mr_null_backend.open(machine, options));
    for (int i = 0; i < machine->device_count; i++)
        machine->devices[i]->properties.total_memory = (uint64_t)1 << 40;
    return MR_OK;
}

static mr_status fake_stream_synchronize(mr_stream *stream) {
    (void)stream;
    fake.synchronizes++;
    return MR_OK;
}
static mr_status fake_memory_alloc(mr_storage *storage) {
    if (storage->bytes > fake.limit)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "out of memory: %llu bytes",
                       (unsigned long long)storage->bytes);
    storage->host = malloc(storage->bytes ? storage->bytes : 1);
    if (!storage->host) return mr_fail(MR_CODE_OUT_OF_MEMORY, "out of memory");
    memset(storage->host, 0xa5, storage->bytes); /* so that what was not written is seen */
    fake.live++;
    return MR_OK;
}

static void fake_memory_release(mr_storage *storage) {
    free(storage->host);
    fake.live--;
}

/* A copy of a state's bytes is as good as the state, wherever it lies. */
static void *moved_state(const mr_command *command, void *state) {
    size_t bytes = (size_t)mr_op_state_bytes(command);
    if (!state) return NULL;
    void *copy = aligned_alloc(MR_STATE_ALIGNMENT, (bytes + MR_STATE_ALIGNMENT - 1) /
                                                       MR_STATE_ALIGNMENT * MR_STATE_ALIGNMENT);
    assert_non_null(copy);
    memcpy(copy, state, bytes);
    memset(state, 0x5a, bytes);
    free(state);
    return copy;
}

static void run_in_slices(const mr_command *command) {
    enum { MAX_CUTS = 12 };
    const mr_op *row = command->u.op.row;
    void *state;
    assert_null(mr_op_begin(command, &state));
    int64_t items = row->items(command), cuts[MAX_CUTS + 2];
    int count = 0;
    cuts[count++] = 0;
    for (int i = 0; i < MAX_CUTS && items > 1; i++) cuts[count++] = random_below(items + 1);
    cuts[count++] = items;
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && cuts[j - 1] > cuts[j]; j--) {
            int64_t cut = cuts[j];
            cuts[j] = cuts[j - 1];
            cuts[j - 1] = cut;
        }
    int order[MAX_CUTS + 1];
    for (int i = 0; i < count - 1; i++) order[i] = i;
    for (int i = count - 2; i > 0; i--) {
        int j = (int)random_below(i + 1), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (int i = 0; i < count - 1; i++) {
        assert_null(row->run(command, state, cuts[order[i]], cuts[order[i] + 1]));
        state = moved_state(command, state);
    }
    mr_op_finish(command, state);
    free(state);
}

static mr_status fake_submit(const mr_command *command, bool *out_taken) {
    if (command->kind != MR_COMMAND_FREE && fake.refuse > 0 && --fake.refuse == 0)
        return mr_fail(MR_CODE_UNKNOWN, "refused");
    fake.last_name = command->name;
    fake.last_operands = (int)command->operand_count;
    switch (command->kind) {
    case MR_COMMAND_OP: {
        mr_cost cost;
        fake.ops++;
        if (command->operand_count) fake.last_access = command->operands[0].access;
        command->u.op.row->cost(command, &cost);
        assert_true(cost.blocks >= 1 && cost.threads >= 1 && cost.bytes >= 0 && cost.flops >= 0);
        run_in_slices(command);
        break;
    }
    case MR_COMMAND_COPY: {
        mr_tensor *to = command->operands[0].tensor, *from = command->operands[1].tensor;
        assert_true(to->contiguous && from->contiguous);
        assert_true(to->numel * (int64_t)mr_dtype_size(to->dtype) ==
                    (int64_t)command->u.copy.bytes);
        assert_true(from->numel * (int64_t)mr_dtype_size(from->dtype) ==
                    (int64_t)command->u.copy.bytes);
        fake.copies++;
        fake.last_direction = command->u.copy.direction;
        memcpy(mr_tensor_data(to), mr_tensor_data(from), command->u.copy.bytes);
        break;
    }
    case MR_COMMAND_WAIT: fake.waits++; break;
    case MR_COMMAND_ALLOC: fake.allocs++; break;
    case MR_COMMAND_FREE:
        fake.frees++;
        free(command->u.storage->host);
        command->u.storage->host = NULL;
        fake.live--;
        break;
    default: break;
    }
    *out_taken = true;
    return MR_OK;
}

static mr_backend fake_backend;

/* The null backend, but for what the tests look at. */
static void make_fake_backend(void) {
    fake_backend = mr_null_backend;
    fake_backend.name = "fake";
    fake_backend.open = fake_open;
    fake_backend.stream_synchronize = fake_stream_synchronize;
    fake_backend.memory_alloc = fake_memory_alloc;
    fake_backend.memory_release = fake_memory_release;
    fake_backend.submit = fake_submit;
}

static mr_machine *machine;
static mr_caller caller; /* of the machine */

static int open_machine(void **state) {
    (void)state;
    make_fake_backend();
    mr_status status =
        mr_machine_open(&fake_backend, &(mr_machine_options){.device = "null:2"}, &machine);
    caller = (mr_caller){.machine = machine};
    return status ? -1 : 0;
}

static size_t left_over;

static void note_left_over(const char *kind, size_t count) {
    print_error("%zu %s were not released\n", count, kind);
    left_over += count;
}

/* The machine goes, and with it everything must have gone. */
static int close_machine(void **state) {
    (void)state;
    int live = fake.live;
    left_over = 0;
    machine->hooks.left_over = note_left_over;
    mr_machine_close(machine);
    if (live) print_error("%d memory blocks are still live\n", live);
    return live || left_over ? -1 : 0;
}

/* ------------------------------------------------------------------------- tensors */

#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }

static inline void expect_ok(mr_status status) {
    if (status) fail_msg("unexpected error: %s", status->message);
}

/* The call must fail with this code, and its message must hold `part`. */
static inline void expect_error(mr_status status, mr_code code, const char *part) {
    if (!status) fail_msg("no error where one with `%s` was expected", part);
    if (status->code != code || !strstr(status->message, part))
        fail_msg("expected `%s`, got %s: %s", part, mr_code_text(status->code), status->message);
    mr_error_destroy(status);
}

static inline mr_tensor *make_on(mr_memory_kind kind, int device, mr_dtype dtype, int ndim,
                                 const int64_t *shape) {
    mr_tensor *t;
    mr_stream *stream = kind == MR_MEMORY_DEVICE ? machine->devices[device]->current : NULL;
    expect_ok(mr_tensor_create(&caller, kind, stream, dtype, ndim, shape, &t));
    return t;
}
static inline mr_tensor *make(mr_dtype dtype, int ndim, const int64_t *shape) {
    return make_on(MR_MEMORY_PAGEABLE, 0, dtype, ndim, shape);
}
static inline mr_tensor *make_device(mr_dtype dtype, int ndim, const int64_t *shape) {
    return make_on(MR_MEMORY_DEVICE, 0, dtype, ndim, shape);
}

static inline void drop(mr_tensor *t) {
    if (!t) return;
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

/* Address of the element at a row-major position. */
static inline void *element(const mr_tensor *t, int64_t position) {
    int64_t at = 0;
    for (int d = t->ndim; d-- > 0;) {
        at += position % t->shape[d] * t->stride[d];
        position /= t->shape[d];
    }
    return (char *)mr_tensor_data(t) + at * (int64_t)mr_dtype_size(t->dtype);
}
static inline mr_scalar get(const mr_tensor *t, int64_t position) {
    return mr_dtype_load(t->dtype, element(t, position));
}
static inline void set(mr_tensor *t, int64_t position, mr_scalar value) {
    mr_dtype_store(t->dtype, element(t, position), value);
}
static inline mr_scalar real(double v) {
    return (mr_scalar){.f = v};
}
static inline mr_scalar whole(int64_t v) {
    return (mr_scalar){.is_integer = true, .i = v, .f = (double)v};
}
static inline double f64_at(const mr_tensor *t, int64_t position) {
    return get(t, position).f;
}

typedef enum { DENSE, TRANSPOSED, STEPPED, SHIFTED, EXPANDED, LAYOUTS } layout;

/* A tensor of this shape that lies in memory in one of several ways. EXPANDED repeats the first dim. */
static inline mr_tensor *make_laid_out(mr_memory_kind kind, mr_dtype dtype, int ndim,
                                       const int64_t *shape, layout how) {
    int64_t bigger[MR_MAX_DIMS], stride[MR_MAX_DIMS], offset = 0;
    memcpy(bigger, shape, (size_t)ndim * sizeof *shape);
    if (ndim == 0) how = DENSE;
    if (how == STEPPED) bigger[ndim - 1] = bigger[ndim - 1] * 2 + 1;
    if (how == SHIFTED)
        for (int d = 0; d < ndim; d++) bigger[d] += 1;
    if (how == EXPANDED && bigger[0] > 0) bigger[0] = 1;
    if (how == TRANSPOSED)
        for (int d = 0; d < ndim; d++) bigger[d] = shape[ndim - 1 - d];
    mr_tensor *base = make_on(kind, 0, dtype, ndim, bigger), *view;
    for (int d = 0; d < ndim; d++) stride[d] = base->stride[how == TRANSPOSED ? ndim - 1 - d : d];
    if (how == STEPPED) stride[ndim - 1] *= 2, offset = 1;
    if (how == SHIFTED)
        for (int d = 0; d < ndim; d++) offset += base->stride[d];
    if (how == EXPANDED) stride[0] = 0;
    if (base->numel == 0) offset = 0;
    expect_ok(mr_tensor_view(&caller, base, dtype, ndim, shape, stride, offset, &view));
    drop(base);
    return view;
}

/* A double as a number of a floating type: to nearest, even at the middle, infinite from half a unit beyond the
 * largest. By the definition of the formats, not by their bits. */
static inline double naive_rounded(mr_dtype dtype, double x) {
    if (dtype == MR_F64) return x;
    int digits = dtype == MR_F16 ? 10 : dtype == MR_BF16 ? 7 : 23;
    int least = dtype == MR_F16 ? -14 : -126, greatest = dtype == MR_F16 ? 15 : 127, exponent;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    double unit = ldexp(1, exponent - digits), rounded = rint(x / unit) * unit;
    return fabs(rounded) >= ldexp(1, greatest + 1) ? copysign(INFINITY, x) : rounded;
}
/* Whether `got` is what a number at most `slack` from `expected` is rounded to. */
static inline bool is_rounded(mr_dtype dtype, double expected, double slack, double got) {
    if (isnan(expected) || isnan(got)) return isnan(expected) && isnan(got);
    return naive_rounded(dtype, expected - slack) <= got &&
           got <= naive_rounded(dtype, expected + slack);
}

/* Values that programs meet, and values that break them. */
static inline mr_scalar random_value(mr_dtype dtype) {
    static const double hostile[] = {0,    -0.0,     1,         -1,  0.5,   1.5,  2.5,
                                     -2.5, INFINITY, -INFINITY, NAN, 1e-40, 3e38, -1e-3};
    static const int64_t hostile_integers[] = {0,         1,         -1,        2,         7,  255,
                                               INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 256};
    bool bad = random_below(4) == 0;
    switch (mr_dtype_category(dtype)) {
    case 0: return whole(random_below(2));
    case 1:
        if (bad) return whole(hostile_integers[random_below(11)]);
        return whole(random_below(200) - 100);
    default:
        if (bad) return real(hostile[random_below(14)]);
        return real((double)random_below(2000001) / 1e5 - 10);
    }
}
static inline void fill_random(mr_tensor *t) {
    for (int64_t i = 0; i < t->numel; i++) set(t, i, random_value(t->dtype));
}

/* Another memory, the same layout, the same values. */
static inline mr_tensor *copy_in(const mr_tensor *t, mr_memory_kind kind) {
    mr_tensor *base, *view;
    int64_t elements = (int64_t)(t->storage->bytes / mr_dtype_size(t->dtype));
    base = make_on(kind, 0, t->dtype, 1, &elements);
    memcpy(base->storage->host, t->storage->host, t->storage->bytes);
    expect_ok(
        mr_tensor_view(&caller, base, t->dtype, t->ndim, t->shape, t->stride, t->offset, &view));
    drop(base);
    return view;
}

static inline bool same_bits(const mr_tensor *a, const mr_tensor *b) {
    assert_int_equal(a->numel, b->numel);
    assert_int_equal(a->dtype, b->dtype);
    for (int64_t i = 0; i < a->numel; i++)
        if (memcmp(element(a, i), element(b, i), mr_dtype_size(a->dtype)) != 0) return false;
    return true;
}

static inline mr_tensor *run_call(const char *op, const mr_call *call) {
    mr_tensor *out;
    bool is_new;
    const mr_op *row = mr_op_find(op);
    if (!row) fail_msg("no row `%s`", op);
    expect_ok(mr_call_run(&caller, row, call, &out, &is_new));
    assert_true(is_new == !call->out);
    if (call->out) mr_tensor_release(out);
    return out;
}
static inline mr_status try_call(const char *op, const mr_call *call) {
    mr_tensor *out;
    bool is_new;
    mr_status status = mr_call_run(&caller, mr_op_find(op), call, &out, &is_new);
    if (!status) {
        if (is_new) drop(out);
        else mr_tensor_release(out);
    }
    return status;
}

#endif
