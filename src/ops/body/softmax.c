/* Runs softmax and log_softmax along one dim. An item is a row: all elements along the dim at one place in
 * the others. Few long rows are cut into chunks of fixed size as in reduce.c. Then the items are the chunks,
 * which leave their maximum and sum in the state, and `finish` writes the results.
 *
 * A row is gone through in leaves, which lie densely or are gathered: for its maximum, for the sum, and for
 * the result. No value depends on how rows were grouped or sliced. */
#include "ops/expr.h"
#include "ops/body/fold.h"

#include "base/parallel.h"

#include <string.h>

enum {
    CHUNK = 16 * MR_LEAF,    /* elements */
    MOST_PARTIALS = 1 << 20, /* of all rows together: beyond, the chunks become longer */
    FEW_ROWS = 256,
    MIN_NEIGHBOURS = 4,
    /* rows whose elements are neighbours, and are gathered together; short rows of any kind */
    TILE = 16,
};
_Static_assert((int)TILE == (int)MR_SHORT_ROWS, "a tile of short rows is folded at once");

/* ------------------------------------------------------------------------- loops */

#define LOOPS(name, tag, T_, kept, norm_, result_)                                                 \
    MR_CLONES static double name##_weigh_##tag(const void *x_, int64_t count, double max,          \
                                               void *k_) {                                         \
        typedef T_ T;                                                                              \
        const T *x = x_;                                                                           \
        T *k = k_, m = (T)max;                                                                     \
        T e_[MR_LEAF]; /* added up in a loop of its own, which has registers for the lanes */      \
        double lane[MR_LANES] = {0};                                                               \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < count; i++) {                                                      \
            T d = x[i] - m, e = mr_exp(d);                                                         \
            k[i] = kept;                                                                           \
            e_[i] = e;                                                                             \
        }                                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + MR_LANES <= count; i += MR_LANES)                                               \
            for (int l = 0; l < MR_LANES; l++) lane[l] += (double)e_[i + l];                       \
        for (int l = 0; i < count; i++, l++) lane[l] += (double)e_[i];                             \
        for (int half = MR_LANES / 2; half > 0; half /= 2)                                         \
            for (int l = 0; l < half; l++) lane[l] += lane[l + half];                              \
        return lane[0];                                                                            \
    }                                                                                              \
    static double name##_norm_##tag(double s) {                                                    \
        return norm_;                                                                              \
    }                                                                                              \
    MR_CLONES static void name##_result_##tag(void *k_, int64_t count, double norm) {              \
        typedef T_ T;                                                                              \
        T *all = k_, n = (T)norm;                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                      \
            T k = all[i];                                                                          \
            all[i] = result_;                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* One loop over the elements of all rows: exp is worth whole vectors. */                      \
    MR_CLONES static void name##_weigh_rows_##tag(const void *x_, int64_t apart, int64_t n,        \
                                                  int64_t count, const double *max, void *k_,      \
                                                  int64_t k_apart, void *e_) {                     \
        typedef T_ T;                                                                              \
        const T *x = x_;                                                                           \
        T *all = k_, *exps = e_, d_[MR_LEAF];                                                      \
        for (int64_t w = 0; w < count; w++) {                                                      \
            T m = (T)max[w];                                                                       \
            for (int64_t i = 0; i < n; i++) d_[w * n + i] = x[w * apart + i] - m;                  \
        }                                                                                          \
        for (int64_t i = 0; i < count * n; i++) exps[i] = mr_exp(d_[i]);                           \
        for (int64_t w = 0; w < count; w++)                                                        \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T d = d_[w * n + i], e = exps[w * n + i];                                          \
                (void)d, (void)e;                                                                  \
                all[w * k_apart + i] = kept;                                                       \
            }                                                                                      \
    }                                                                                              \
    MR_CLONES static void name##_result_rows_##tag(void *k_, int64_t apart, int64_t length,        \
                                                   int64_t count, const double *norm) {            \
        typedef T_ T;                                                                              \
        T *all = k_;                                                                               \
        for (int64_t w = 0; w < count; w++) {                                                      \
            T n = (T)norm[w];                                                                      \
            for (int64_t i = 0; i < length; i++) {                                                 \
                T k = all[w * apart + i];                                                          \
                all[w * apart + i] = result_;                                                      \
            }                                                                                      \
        }                                                                                          \
    }
#define ENTRY(name, tag)                                                                           \
    {                                                                                              \
        name##_weigh_##tag, name##_norm_##tag, name##_result_##tag, name##_weigh_rows_##tag,       \
            name##_result_rows_##tag                                                               \
    }
#define X(name, flops, kept, norm, result)                                                         \
    LOOPS(name, f32, float, kept, norm, result)                                                    \
    LOOPS(name, f64, double, kept, norm, result)                                                   \
    const mr_softmax mr_softmax_##name = {                                                         \
        .loops = {[MR_F32] = ENTRY(name, f32), [MR_F64] = ENTRY(name, f64)}};
// cppcheck-suppress uninitvar ; of e_, all that is read was written
MR_SOFTMAX_TABLE(X)
#undef X

/* ------------------------------------------------------------------------- the plan */

typedef struct {
    const mr_tensor *in, *out;
    const mr_softmax_loops *loops;
    mr_dtype dtype; /* computed in */
    size_t size;    /* of that */
    int64_t rows, length;
    int64_t chunks, chunk; /* 1, or how many a row has, and the elements of one */
    int64_t in_stride, out_stride;
    mr_walk walk;               /* over the rows; operand 0: the output, 1: the input */
    bool in_direct, out_direct; /* rows lie densely, and are of `dtype` */
    bool tiles;                 /* neighbours in memory belong to neighbouring rows */
    bool short_rows;            /* several are weighed at a time */
} plan;

static void count(const mr_command *command, plan *p) {
    p->out = command->operands[0].tensor;
    p->in = command->operands[command->operand_count - 1].tensor;
    int dim = mr_params_of(command).along.dim;
    p->length = p->in->ndim > 0 ? p->in->shape[dim] : 1;
    p->rows = p->length > 0 ? p->in->numel / p->length : 0;
    p->chunks = 1;
    p->chunk = CHUNK;
    if (p->rows == 0 || p->rows >= FEW_ROWS || p->length < 2 * CHUNK) return;
    while (p->length / p->chunk > MOST_PARTIALS / p->rows) p->chunk *= 2;
    p->chunks = (p->length - 1) / p->chunk + 1;
}

/* Shape and strides without a dim; returns the dim's own stride. */
static int64_t take_dim(const mr_tensor *t, int dim, mr_tensor *out_rest) {
    int n = 0;
    for (int d = 0; d < t->ndim; d++) {
        if (d == dim) continue;
        out_rest->shape[n] = t->shape[d];
        out_rest->stride[n++] = t->stride[d];
    }
    out_rest->ndim = (uint8_t)n;
    return t->ndim > 0 ? t->stride[dim] : 1;
}

static void make_plan(const mr_command *command, plan *p) {
    count(command, p);
    const mr_softmax *row = command->u.op.row->body;
    p->dtype = p->in->dtype == MR_F64 ? MR_F64 : MR_F32;
    p->size = mr_dtype_size(p->dtype);
    p->loops = &row->loops[p->dtype];
    int dim = mr_params_of(command).along.dim;
    mr_tensor out, in;
    p->out_stride = take_dim(p->out, dim, &out);
    p->in_stride = take_dim(p->in, dim, &in);
    mr_walk_init(&p->walk, in.ndim, in.shape, 2, (const mr_tensor *const[]){&out, &in});
    p->in_direct = p->in->dtype == p->dtype && (p->in_stride == 1 || p->length == 1);
    p->out_direct = p->out->dtype == p->dtype && (p->out_stride == 1 || p->length == 1);
    int last = p->walk.ndim - 1;
    p->tiles =
        !p->in_direct && p->walk.stride[1][last] == 1 && p->walk.shape[last] >= MIN_NEIGHBOURS;
    p->short_rows = p->length <= MR_SHORT_ROW;
}

int64_t mr_softmax_items(const mr_command *command) {
    plan p;
    count(command, &p);
    return p.rows * p.chunks;
}

/* ------------------------------------------------------------------------- tiles */

typedef union {
    char bytes[MR_LEAF * 8 + 64]; /* blocks side by side must not share cache sets */
    double aligned_;
} leaf_block;

/* The elements `from` to `to` - 1 of `width` rows from `row` on, and the values so far of each row. */
typedef struct {
    int64_t row, from, to;
    int width;
    double max[TILE], sum[TILE], norm[TILE];
    const void *x[TILE]; /* the leaf at hand */
    leaf_block block[TILE], other;
} tile;

/* Items of one chunk of neighbouring rows are neighbours too. */
static void begin_tile(const plan *p, int64_t item, int64_t end, tile *t) {
    int64_t chunk = item / p->rows, width = 1;
    t->row = item % p->rows;
    t->from = chunk * p->chunk;
    t->to = chunk == p->chunks - 1 ? p->length : t->from + p->chunk;
    if (p->tiles || p->short_rows) {
        int64_t run = p->walk.shape[p->walk.ndim - 1];
        width = run - t->row % run;
        if (width > TILE) width = TILE;
        if (width > end - item) width = end - item;
    }
    t->width = (int)width;
}

/* Where a tensor's rows and elements are, from element i of the tile's first row on. */
typedef struct {
    char *first;
    size_t size;
    int64_t along, across; /* strides in elements: in a row, and from row to row */
} grid;

static grid grid_of(const plan *p, const tile *t, bool output, int64_t i) {
    const mr_tensor *tensor = output ? p->out : p->in;
    int operand = output ? 0 : 1;
    grid g = {.size = mr_dtype_size((mr_dtype)tensor->dtype),
              .along = output ? p->out_stride : p->in_stride,
              .across = p->walk.stride[operand][p->walk.ndim - 1]};
    int64_t at = mr_walk_offset(&p->walk, operand, t->row) + i * g.along;
    g.first = (char *)mr_tensor_data(tensor) + at * (int64_t)g.size;
    return g;
}

#define EACH_ELEMENT(T, ...)                                                                       \
    do {                                                                                           \
        T *all = (T *)g->first;                                                                    \
        for (int64_t r = 0; r < n; r++)                                                            \
            for (int w = 0; w < t->width; w++) {                                                   \
                T *element = &all[r * g->along + w * g->across],                                   \
                  *own = (T *)t->block[w].bytes + r;                                               \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
    } while (0)
#define BY_SIZE(...)                                                                               \
    switch (g->size) {                                                                             \
    case 1: EACH_ELEMENT(uint8_t, __VA_ARGS__); break;                                             \
    case 2: EACH_ELEMENT(uint16_t, __VA_ARGS__); break;                                            \
    case 4: EACH_ELEMENT(uint32_t, __VA_ARGS__); break;                                            \
    default: EACH_ELEMENT(uint64_t, __VA_ARGS__); break;                                           \
    }

/* Neighbouring rows are columns of a matrix. */
static void gather(tile *t, const grid *g, int64_t n) {
    if (g->across == 1)
        mr_transpose(t->block, (int64_t)(sizeof *t->block / g->size), g->first, g->along, g->size,
                     t->width, n);
    else BY_SIZE(*own = *element);
}
static void scatter(tile *t, const grid *g, int64_t n) {
    if (g->across == 1)
        mr_transpose(g->first, g->along, t->block, (int64_t)(sizeof *t->block / g->size), g->size,
                     n, t->width);
    else BY_SIZE(*element = *own);
}

/* The blocks' elements become ones of another dtype. */
static void convert(tile *t, mr_dtype to, mr_dtype from, int64_t n) {
    if (to == from) return;
    for (int w = 0; w < t->width; w++) {
        memcpy(&t->other, &t->block[w], (size_t)n * mr_dtype_size(from));
        mr_convert(to, &t->block[w], from, &t->other, n);
    }
}

/* Where the elements of the tile's row number w are. */
static char *row_of(const grid *g, int w) {
    return g->first + w * g->across * (int64_t)g->size;
}

/* Points x to n elements of each row from i on. */
static void load(const plan *p, tile *t, int64_t i, int64_t n) {
    grid g = grid_of(p, t, false, i);
    mr_dtype own = (mr_dtype)p->in->dtype;
    for (int w = 0; w < t->width; w++) t->x[w] = p->in_direct ? row_of(&g, w) : t->block[w].bytes;
    if (p->in_direct) return;
    if (g.along == 1) {
        for (int w = 0; w < t->width; w++)
            mr_convert(p->dtype, &t->block[w], own, row_of(&g, w), n);
        return;
    }
    gather(t, &g, n);
    convert(t, p->dtype, own, n);
}

/* From the blocks to the output. */
static void unload(const plan *p, tile *t, int64_t i, int64_t n) {
    grid g = grid_of(p, t, true, i);
    mr_dtype own = (mr_dtype)p->out->dtype;
    if (g.along == 1) {
        for (int w = 0; w < t->width; w++)
            mr_convert(own, row_of(&g, w), p->dtype, &t->block[w], n);
        return;
    }
    convert(t, own, p->dtype, n);
    scatter(t, &g, n);
}

/* Where k goes: straight to the output, or to the block. */
static void *place_of(const plan *p, tile *t, int w, int64_t i, bool direct) {
    if (!direct) return t->block[w].bytes;
    grid g = grid_of(p, t, true, i);
    return row_of(&g, w);
}

static void weigh_leaf(const plan *p, tile *t, int64_t i, int64_t n, bool direct) {
    for (int w = 0; w < t->width; w++) {
        /* The sum of a part of nothing but -inf is 0; where that is all of a row, 0 / 0 follows. */
        double base = t->max[w] == -(double)INFINITY ? 0 : t->max[w];
        t->sum[w] += p->loops->weigh(t->x[w], n, base, place_of(p, t, w, i, direct));
    }
}

static int64_t leaf_length(const tile *t, int64_t i) {
    return t->to - i < MR_LEAF ? t->to - i : MR_LEAF;
}

/* How many elements lie between neighbouring rows where `load` points to them, and where their k goes. */
static int64_t loaded_apart(const plan *p, bool direct, int operand) {
    return direct ? p->walk.stride[operand][p->walk.ndim - 1]
                  : (int64_t)(sizeof(leaf_block) / p->size);
}

/* Short rows, all at once: `weigh_tile`, then `norm` and `write_tile`. A row of nothing but -inf is NaN here at once,
 * as its 0 / 0 is there. */
static void run_short_rows(const plan *p, tile *t) {
    int64_t n = p->length, in_apart = loaded_apart(p, p->in_direct, 1),
            out_apart = loaded_apart(p, p->out_direct, 0);
    load(p, t, 0, n);
    mr_reduction_max.fold[p->dtype]->rows(t->x[0], in_apart, n, t->width, 0, t->max);
    void *k = place_of(p, t, 0, 0, p->out_direct);
    p->loops->weigh_rows(t->x[0], in_apart, n, t->width, t->max, k, out_apart, &t->other);
    mr_reduction_sum.fold[p->dtype]->rows(&t->other, n, n, t->width, 0, t->sum);
    for (int w = 0; w < t->width; w++) t->norm[w] = p->loops->norm(t->sum[w]);
    p->loops->result_rows(k, out_apart, n, t->width, t->norm);
    if (!p->out_direct) unload(p, t, 0, n);
}

/* Maximum and sum; k of a whole row that lies directly, or is one leaf, is then where write_tile takes it. */
static void weigh_tile(const plan *p, tile *t) {
    const mr_fold *max = mr_reduction_max.fold[p->dtype];
    bool several = t->to - t->from > MR_LEAF;
    for (int w = 0; w < t->width; w++) t->max[w] = -(double)INFINITY, t->sum[w] = 0;
    for (int64_t i = t->from; i < t->to; i += MR_LEAF) {
        load(p, t, i, leaf_length(t, i));
        for (int w = 0; w < t->width; w++) {
            mr_cell cell;
            max->leaf(t->x[w], leaf_length(t, i), i, &cell);
            double greatest = max->final(&cell, p->length, 0).f;
            t->max[w] = mr_maximum(t->max[w], greatest);
        }
    }
    for (int64_t i = t->from; i < t->to; i += MR_LEAF) {
        if (several) load(p, t, i, leaf_length(t, i));
        weigh_leaf(p, t, i, leaf_length(t, i), p->out_direct && p->chunks == 1);
    }
}

/* `again`: k is not at its place yet. */
static void write_tile(const plan *p, tile *t, bool again) {
    for (int64_t i = t->from; i < t->to; i += MR_LEAF) {
        int64_t n = leaf_length(t, i);
        if (again) {
            load(p, t, i, n);
            weigh_leaf(p, t, i, n, p->out_direct);
        }
        for (int w = 0; w < t->width; w++)
            p->loops->result(place_of(p, t, w, i, p->out_direct), n, t->norm[w]);
        if (!p->out_direct) unload(p, t, i, n);
    }
}

/* ------------------------------------------------------------------------- the command */

int64_t mr_softmax_state_bytes(const mr_command *command) {
    plan p;
    count(command, &p);
    return p.chunks == 1 ? 0 : p.rows * p.chunks * (int64_t)sizeof(mr_cell);
}

mr_status mr_softmax_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    if (first >= end) return MR_OK;
    plan p;
    make_plan(command, &p);
    mr_cell *partial = state;
    tile t;
    for (int64_t item = first; item < end; item += t.width) {
        begin_tile(&p, item, end, &t);
        if (p.short_rows) {
            run_short_rows(&p, &t);
            continue;
        }
        weigh_tile(&p, &t);
        for (int w = 0; w < t.width; w++) {
            if (partial) partial[item + w] = (mr_cell){.f = t.max[w], .g = t.sum[w]};
            else t.norm[w] = p.loops->norm(t.sum[w]);
        }
        if (!partial) write_tile(&p, &t, !p.out_direct && p.length > MR_LEAF);
    }
    return MR_OK;
}

/* The chunks of a row joined, into the cell of its first. */
static void join_chunks(const plan *p, mr_cell *partial, int64_t row) {
    double max = -(double)INFINITY, sum = 0;
    for (int64_t chunk = 0; chunk < p->chunks; chunk++)
        max = mr_maximum(max, partial[chunk * p->rows + row].f);
    double base = max == -(double)INFINITY ? 0 : max;
    for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
        const mr_cell *cell = &partial[chunk * p->rows + row];
        sum += cell->g * mr_exp(cell->f - base);
    }
    partial[row] = (mr_cell){.f = max, .g = sum};
}

typedef struct {
    const plan *plan;
    const mr_cell *rows;
} results;

static void write_items(void *context, int64_t first, int64_t end) {
    const results *r = context;
    tile t;
    for (int64_t item = first; item < end; item += t.width) {
        begin_tile(r->plan, item, end, &t);
        for (int w = 0; w < t.width; w++) {
            t.max[w] = r->rows[t.row + w].f;
            t.norm[w] = r->plan->loops->norm(r->rows[t.row + w].g);
            t.sum[w] = 0;
        }
        write_tile(r->plan, &t, true);
    }
}

void mr_softmax_finish(const mr_command *command, void *state) {
    if (!state) return;
    plan p;
    make_plan(command, &p);
    for (int64_t row = 0; row < p.rows; row++) join_chunks(&p, state, row);
    results r = {&p, state};
    mr_parallel_for(p.rows * p.chunks, 1, write_items, &r);
}
