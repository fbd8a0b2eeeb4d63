/* The bodies of the INDEX family on the CPU. Some pick elements by an index (gather, index_select, embedding). Others
 * set elements, or add to them, by an index (scatter_, scatter_add_, index_add_).
 *
 * Picking: an item is an element of the result. Setting and adding: an item is a line of positions along the dim of the
 * index, which is gone through in its order. So if an element is set twice, the later value stays, and sums are added
 * up in the order of the index. They are the same bits on any number of threads, and on a GPU.
 *
 * Easiest to break: an index is checked before it is used, each time, as the device may write it meanwhile. */
#include "ops/index.h"
#include "ops/body.h"
#include "ops/expr.h"

#include "base/half.h"

#include <inttypes.h>
#include <stdio.h>

/* ------------------------------------------------------------------------- geometry */

static void set_shape(mr_indexing *g, const mr_tensor *shape) {
    g->ndim = shape->ndim > 0 ? shape->ndim : 1;
    g->shape[0] = 1; /* of a tensor without dims */
    for (int d = 0; d < shape->ndim; d++) g->shape[d] = shape->shape[d];
}

static void set_strides(mr_indexing *g, int side, const mr_tensor *t) {
    g->stride[side][0] = 0;
    for (int d = 0; t && d < t->ndim; d++) g->stride[side][d] = t->stride[d];
}

/* The dims of the index replace the dim from which it chooses. */
static void set_flat(mr_indexing *g) {
    const mr_tensor *index = g->tensor[MR_SIDE_INDEX], *chosen = g->tensor[MR_SIDE_CHOSEN];
    const mr_tensor *plain = g->tensor[MR_SIDE_PLAIN];
    int own = plain->ndim - chosen->ndim + 1;
    set_shape(g, plain);
    set_strides(g, MR_SIDE_PLAIN, plain);
    for (int d = 0; d < g->ndim; d++) {
        bool inside = d >= g->along && d < g->along + own;
        int from = d < g->along ? d : d - own + 1;
        g->stride[MR_SIDE_INDEX][d] = inside && index->ndim > 0 ? index->stride[d - g->along] : 0;
        g->stride[MR_SIDE_CHOSEN][d] = inside ? 0 : chosen->stride[from];
    }
}

void mr_indexing_of(const mr_command *command, mr_indexing *out) {
    const mr_index_body *body = command->u.op.row->body;
    const mr_operand *operand = command->operands;
    bool picks = body->action == MR_INDEX_PICK;
    bool has_plain = picks || command->operand_count > 2;
    out->along = mr_params_of(command).index.dim;
    out->tensor[MR_SIDE_CHOSEN] = operand[picks ? 1 : 0].tensor;
    out->tensor[MR_SIDE_INDEX] = operand[picks ? 2 : 1].tensor;
    out->tensor[MR_SIDE_PLAIN] = has_plain ? operand[picks ? 0 : 2].tensor : NULL;
    const mr_tensor *chosen = out->tensor[MR_SIDE_CHOSEN];
    if (body->flat) {
        set_flat(out);
    } else {
        set_shape(out, out->tensor[MR_SIDE_INDEX]);
        for (int side = 0; side < MR_SIDES; side++) {
            for (int d = 0; d < out->ndim; d++) out->stride[side][d] = 0;
            set_strides(out, side, out->tensor[side]);
        }
        out->stride[MR_SIDE_CHOSEN][out->along] = 0;
    }
    out->size = chosen->ndim > 0 ? chosen->shape[out->along] : 1;
    out->step = chosen->ndim > 0 ? chosen->stride[out->along] : 0;
}

/* Neighbouring dims become one where all sides go through them as through one. */
static void merge(mr_indexing *g) {
    int n = 0;
    for (int d = 0; d < g->ndim; d++) {
        if (g->shape[d] == 1 && g->ndim > 1) continue;
        bool joins = n > 0;
        for (int side = 0; side < MR_SIDES && joins; side++)
            joins = g->stride[side][n - 1] == g->stride[side][d] * g->shape[d];
        if (joins) g->shape[n - 1] *= g->shape[d];
        else g->shape[n++] = g->shape[d];
        for (int side = 0; side < MR_SIDES; side++) g->stride[side][n - 1] = g->stride[side][d];
    }
    if (n == 0) {
        g->shape[0] = 1;
        for (int side = 0; side < MR_SIDES; side++) g->stride[side][0] = 0;
        n = 1;
    }
    g->ndim = n;
}

/* A position: where it is in each dim, and on each side. */
typedef struct {
    int64_t at[MR_MAX_DIMS];
    int64_t offset[MR_SIDES];
} place;

static place place_of(const mr_indexing *g, int64_t position) {
    place p = {.offset = {0}};
    for (int d = g->ndim; d-- > 0;) {
        p.at[d] = d > 0 ? position % g->shape[d] : position;
        position = d > 0 ? position / g->shape[d] : 0;
        for (int side = 0; side < MR_SIDES; side++) p.offset[side] += p.at[d] * g->stride[side][d];
    }
    return p;
}

/* On by `n` positions of the last dim, at most to its end. */
static void advance(const mr_indexing *g, place *p, int64_t n) {
    int d = g->ndim - 1;
    p->at[d] += n;
    for (int side = 0; side < MR_SIDES; side++) p->offset[side] += n * g->stride[side][d];
    for (; d > 0 && p->at[d] == g->shape[d]; d--) {
        p->at[d] = 0;
        p->at[d - 1]++;
        for (int side = 0; side < MR_SIDES; side++)
            p->offset[side] += g->stride[side][d - 1] - g->shape[d] * g->stride[side][d];
    }
}

/* ------------------------------------------------------------------------- what is out of range */

static int64_t index_value(const mr_tensor *index, int64_t offset) {
    const void *data = mr_tensor_data(index);
    return index->dtype == MR_I32 ? ((const int32_t *)data)[offset]
                                  : ((const int64_t *)data)[offset];
}

bool mr_index_find_bad(const mr_tensor *index, int64_t size, int64_t *out_at, int64_t *out_value) {
    mr_walk walk;
    mr_walk_init(&walk, index->ndim, index->shape, 1, &index);
    int64_t length = walk.shape[walk.ndim - 1], stride = walk.stride[0][walk.ndim - 1];
    for (int64_t row = 0; row < index->numel; row += length) {
        int64_t offset = mr_walk_offset(&walk, 0, row);
        for (int64_t i = 0; i < length; i++) {
            *out_value = index_value(index, offset + i * stride);
            *out_at = row + i;
            if (*out_value < 1 || *out_value > size) return true;
        }
    }
    return false;
}

mr_status mr_index_fail(mr_code code, const char *name, const mr_tensor *index, int64_t at,
                        int64_t value, const mr_tensor *chosen, int64_t size) {
    char where[MR_MAX_DIMS * 24] = "", element[sizeof where + 16] = "", a[160], b[160];
    int64_t number[MR_MAX_DIMS] = {0};
    for (int d = index->ndim; d-- > 0;) {
        number[d] = at % index->shape[d] + 1;
        at /= index->shape[d];
    }
    size_t used = 0;
    for (int d = 0; d < index->ndim; d++)
        used += (size_t)snprintf(where + used, sizeof where - used, "%s%" PRId64, d ? ", " : "",
                                 number[d]);
    if (index->ndim) snprintf(element, sizeof element, "element [%s] of ", where);
    return mr_fail(code,
                   "%s: an index is out of range: %s%s is %" PRId64 ", but %s has %" PRId64
                   " elements there: expected 1 to %" PRId64,
                   name, element, mr_tensor_describe(index, a, sizeof a), value,
                   mr_tensor_describe(chosen, b, sizeof b), size, size);
}

/* The first wrong one is named, whichever thread found which. */
static mr_status out_of_range(const mr_command *command, const mr_indexing *g) {
    const mr_tensor *index = g->tensor[MR_SIDE_INDEX];
    int64_t at = 0, value = 0;
    if (!mr_index_find_bad(index, g->size, &at, &value))
        return mr_fail(MR_CODE_ASSERT,
                       "%s: an index was out of range, and was overwritten meanwhile",
                       command->name);
    return mr_index_fail(MR_CODE_ASSERT, command->name, index, at, value, g->tensor[MR_SIDE_CHOSEN],
                         g->size);
}

/* ------------------------------------------------------------------------- loops */

/* A rectangle of positions: `length` along one dim, `width` along another. Strides are by side. */
typedef struct {
    void *plain;
    const void *index;
    void *chosen;
    int64_t length, width;
    int64_t along[MR_SIDES], across[MR_SIDES];
    int64_t step, size;
} patch;

/* Goes through a patch along the index, and across it; false at an index that is out of range. MOVE sees `x`, the
 * chosen element, and `v`, the plain one. */
#define PATCH(name, T_, U_, I, MOVE)                                                               \
    static bool name(const patch *p) {                                                             \
        typedef T_ T;                                                                              \
        typedef U_ U;                                                                              \
        T *plain = p->plain;                                                                       \
        U *chosen = p->chosen;                                                                     \
        const I *index = p->index;                                                                 \
        int64_t plain_across = p->across[MR_SIDE_PLAIN], across = p->across[MR_SIDE_CHOSEN];       \
        for (int64_t j = 0; j < p->length; j++) {                                                  \
            const I *at = index + j * p->along[MR_SIDE_INDEX];                                     \
            T *from = plain + j * p->along[MR_SIDE_PLAIN];                                         \
            U *line = chosen + j * p->along[MR_SIDE_CHOSEN];                                       \
            if (p->across[MR_SIDE_INDEX] == 0) {                                                   \
                uint64_t k = (uint64_t)*at - 1;                                                    \
                if (k >= (uint64_t)p->size) return false;                                          \
                line += (int64_t)k * p->step;                                                      \
                if (plain_across == 1 && across == 1) {                                            \
                    for (int64_t w = 0; w < p->width; w++) {                                       \
                        T *v = &from[w];                                                           \
                        U *x = &line[w];                                                           \
                        MOVE;                                                                      \
                    }                                                                              \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t w = 0; w < p->width; w++) {                                           \
                    T *v = &from[w * plain_across];                                                \
                    U *x = &line[w * across];                                                      \
                    MOVE;                                                                          \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t w = 0; w < p->width; w++) {                                               \
                uint64_t k = (uint64_t)at[w * p->across[MR_SIDE_INDEX]] - 1;                       \
                if (k >= (uint64_t)p->size) return false;                                          \
                T *v = &from[w * plain_across];                                                    \
                U *x = &line[w * across + (int64_t)k * p->step];                                   \
                MOVE;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }

typedef bool (*patch_loop)(const patch *p);

/* By the width of the element, and whether the index is i32 or i64. */
#define BY_WIDTH(name, MOVE)                                                                       \
    PATCH(name##_8_i32, uint8_t, uint8_t, int32_t, MOVE)                                           \
    PATCH(name##_8_i64, uint8_t, uint8_t, int64_t, MOVE)                                           \
    PATCH(name##_16_i32, uint16_t, uint16_t, int32_t, MOVE)                                        \
    PATCH(name##_16_i64, uint16_t, uint16_t, int64_t, MOVE)                                        \
    PATCH(name##_32_i32, uint32_t, uint32_t, int32_t, MOVE)                                        \
    PATCH(name##_32_i64, uint32_t, uint32_t, int64_t, MOVE)                                        \
    PATCH(name##_64_i32, uint64_t, uint64_t, int32_t, MOVE)                                        \
    PATCH(name##_64_i64, uint64_t, uint64_t, int64_t, MOVE)                                        \
    static const patch_loop name##_loops[4][2] = {{name##_8_i32, name##_8_i64},                    \
                                                  {name##_16_i32, name##_16_i64},                  \
                                                  {name##_32_i32, name##_32_i64},                  \
                                                  {name##_64_i32, name##_64_i64}};
BY_WIDTH(pick, *v = *x)
BY_WIDTH(set, *x = *v)

/* By dtype. Halves are added to lines of f32. */
#define ADD(tag, T, U, MOVE)                                                                       \
    PATCH(add_##tag##_i32, T, U, int32_t, MOVE)                                                    \
    PATCH(add_##tag##_i64, T, U, int64_t, MOVE)
#define SUM *x = (T)mr_add(*x, *v)
ADD(b8, uint8_t, uint8_t, *x = (*x | *v) != 0)
ADD(u8, uint8_t, uint8_t, SUM)
ADD(i32, int32_t, int32_t, SUM)
ADD(i64, int64_t, int64_t, SUM)
ADD(f32, float, float, SUM)
ADD(f64, double, double, SUM)
ADD(f16, uint16_t, float, *x += mr_f32_from_f16(*v))
ADD(bf16, uint16_t, float, *x += mr_f32_from_bf16(*v))
static const patch_loop add_loops[MR_DTYPE_COUNT][2] = {
    [MR_BOOL] = {add_b8_i32, add_b8_i64},  [MR_U8] = {add_u8_i32, add_u8_i64},
    [MR_I32] = {add_i32_i32, add_i32_i64}, [MR_I64] = {add_i64_i32, add_i64_i64},
    [MR_F32] = {add_f32_i32, add_f32_i64}, [MR_F64] = {add_f64_i32, add_f64_i64},
    [MR_F16] = {add_f16_i32, add_f16_i64}, [MR_BF16] = {add_bf16_i32, add_bf16_i64},
};

static patch_loop loop_of(mr_index_action action, mr_dtype dtype, mr_dtype index) {
    int wide = index == MR_I64;
    if (action == MR_INDEX_ADD) return add_loops[dtype][wide];
    int width = __builtin_ctzl(mr_dtype_size(dtype));
    return (action == MR_INDEX_PICK ? pick_loops : set_loops)[width][wide];
}

/* ------------------------------------------------------------------------- picking */

static char *side_at(const mr_tensor *t, int64_t offset) {
    return (char *)mr_tensor_data(t) + offset * (int64_t)mr_dtype_size((mr_dtype)t->dtype);
}

static void point_at(patch *p, const mr_indexing *g, const place *at) {
    const mr_tensor *plain = g->tensor[MR_SIDE_PLAIN];
    if (plain) p->plain = side_at(plain, at->offset[MR_SIDE_PLAIN]);
    p->index = side_at(g->tensor[MR_SIDE_INDEX], at->offset[MR_SIDE_INDEX]);
    p->chosen = side_at(g->tensor[MR_SIDE_CHOSEN], at->offset[MR_SIDE_CHOSEN]);
}

mr_status mr_pick_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    mr_indexing g;
    mr_indexing_of(command, &g);
    merge(&g);
    int last = g.ndim - 1;
    patch p = {.length = 1, .step = g.step, .size = g.size};
    for (int side = 0; side < MR_SIDES; side++) p.across[side] = g.stride[side][last];
    patch_loop loop = loop_of(MR_INDEX_PICK, (mr_dtype)g.tensor[MR_SIDE_PLAIN]->dtype,
                              (mr_dtype)g.tensor[MR_SIDE_INDEX]->dtype);
    place at = place_of(&g, first);
    while (first < end) {
        p.width = g.shape[last] - at.at[last];
        if (p.width > end - first) p.width = end - first;
        point_at(&p, &g, &at);
        if (!loop(&p)) return out_of_range(command, &g);
        first += p.width;
        advance(&g, &at, p.width);
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------- setting, adding */

/* The geometry without the dim of the index: a position of it is a line. */
static void take_along(mr_indexing *g, int64_t *out_length, int64_t *out_along) {
    *out_length = g->shape[g->along];
    for (int side = 0; side < MR_SIDES; side++) out_along[side] = g->stride[side][g->along];
    g->shape[g->along] = 1;
    for (int side = 0; side < MR_SIDES; side++) g->stride[side][g->along] = 0;
    if (g->ndim > 1) merge(g);
}

int64_t mr_place_items(const mr_command *command) {
    mr_indexing g;
    mr_indexing_of(command, &g);
    int64_t lines = g.shape[g.along] > 0;
    for (int d = 0; d < g.ndim; d++)
        if (d != g.along) lines *= g.shape[d];
    return lines;
}

/* For halves the state has each line in f32, so that sums are rounded once. */
int64_t mr_place_state_bytes(const mr_command *command) {
    const mr_index_body *body = command->u.op.row->body;
    mr_indexing g;
    mr_indexing_of(command, &g);
    if (body->action != MR_INDEX_ADD ||
        !mr_dtype_is_half((mr_dtype)g.tensor[MR_SIDE_CHOSEN]->dtype))
        return 0;
    return mr_place_items(command) * g.size * (int64_t)sizeof(float);
}

/* The chosen line at `at` and the one in f32: from one to the other. */
static void move_line(const mr_indexing *g, const place *at, float *line, bool back) {
    const mr_tensor *t = g->tensor[MR_SIDE_CHOSEN];
    mr_dtype dtype = (mr_dtype)t->dtype;
    char *first = side_at(t, at->offset[MR_SIDE_CHOSEN]);
    mr_block halves;
    for (int64_t i = 0; i < g->size; i += MR_BLOCK) {
        int64_t n = g->size - i < MR_BLOCK ? g->size - i : MR_BLOCK;
        if (back) {
            mr_convert(dtype, &halves, MR_F32, line + i, n);
            mr_scatter(first, 2, 1, &g->size, &g->step, i, n, &halves);
        } else {
            mr_gather(first, 2, 1, &g->size, &g->step, i, n, &halves);
            mr_convert(MR_F32, line + i, dtype, &halves, n);
        }
    }
}

/* As a patch whose chosen side is in the state. */
static bool add_halves(patch_loop loop, const patch *p, const mr_indexing *g, place at,
                       float *lines) {
    patch wide = *p;
    wide.chosen = lines;
    wide.along[MR_SIDE_CHOSEN] = 0;
    wide.across[MR_SIDE_CHOSEN] = g->size;
    wide.step = 1;
    int64_t across = p->across[MR_SIDE_CHOSEN];
    for (int64_t w = 0; w < p->width; w++, at.offset[MR_SIDE_CHOSEN] += across)
        move_line(g, &at, lines + w * g->size, false);
    if (!loop(&wide)) return false;
    at.offset[MR_SIDE_CHOSEN] -= p->width * across;
    for (int64_t w = 0; w < p->width; w++, at.offset[MR_SIDE_CHOSEN] += across)
        move_line(g, &at, lines + w * g->size, true);
    return true;
}

mr_status mr_place_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    if (first >= end) return MR_OK;
    const mr_index_body *body = command->u.op.row->body;
    mr_indexing g;
    mr_indexing_of(command, &g);
    mr_dtype dtype = (mr_dtype)g.tensor[MR_SIDE_CHOSEN]->dtype;
    uint64_t number = 0;
    patch p = {.plain = &number, .step = g.step, .size = g.size};
    if (!g.tensor[MR_SIDE_PLAIN])
        mr_dtype_store(dtype, &number, mr_params_of(command).index.number);
    take_along(&g, &p.length, p.along);
    int last = g.ndim - 1;
    for (int side = 0; side < MR_SIDES; side++) p.across[side] = g.stride[side][last];
    /* Lines side by side only where their elements are neighbours. */
    bool one = p.across[MR_SIDE_CHOSEN] != 1;
    patch_loop loop = loop_of(body->action, dtype, (mr_dtype)g.tensor[MR_SIDE_INDEX]->dtype);
    place at = place_of(&g, first);
    while (first < end) {
        p.width = g.shape[last] - at.at[last];
        if (p.width > end - first) p.width = end - first;
        if (one) p.width = 1;
        point_at(&p, &g, &at);
        bool fine =
            state ? add_halves(loop, &p, &g, at, (float *)state + first * g.size) : loop(&p);
        if (!fine) return out_of_range(command, &g);
        first += p.width;
        advance(&g, &at, p.width);
    }
    return MR_OK;
}

void mr_index_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 4 };
    const mr_index_body *body = command->u.op.row->body;
    mr_indexing g;
    mr_indexing_of(command, &g);
    double positions = 1;
    for (int d = 0; d < g.ndim; d++) positions *= (double)g.shape[d];
    double own = (double)mr_dtype_size((mr_dtype)g.tensor[MR_SIDE_CHOSEN]->dtype);
    double moved = body->action == MR_INDEX_ADD    ? 3
                   : body->action == MR_INDEX_PICK ? 2
                   : g.tensor[MR_SIDE_PLAIN]       ? 2
                                                   : 1;
    const mr_tensor *index = g.tensor[MR_SIDE_INDEX];
    double read = (double)index->numel * (double)mr_dtype_size((mr_dtype)index->dtype);
    double blocks = positions / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = body->action == MR_INDEX_ADD ? positions : 0,
                          .bytes = positions * own * moved + read,
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}

const mr_index_body mr_index_index_select = {MR_INDEX_PICK, true},
                    mr_index_embedding = {MR_INDEX_PICK, true},
                    mr_index_gather = {MR_INDEX_PICK, false},
                    mr_index_scatter = {MR_INDEX_SET, false},
                    mr_index_scatter_add = {MR_INDEX_ADD, false},
                    mr_index_index_add = {MR_INDEX_ADD, true};
