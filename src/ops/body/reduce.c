/* Runs a reduction. Its items are the outputs. Where few outputs are made from many elements, the elements of each
 * output are cut into chunks of fixed size, and these are the items. Each item has one cell in the state, and `finish`
 * joins the cells in the order of their numbers. Elements that the fold takes as another dtype are converted leaf by
 * leaf. */
#include "ops/body/fold.h"

#include <string.h>

enum {
    CHUNK = 16 * MR_LEAF,    /* elements; a power of two of leaves, so that the tree is the same */
    MOST_PARTIALS = 1 << 20, /* of all outputs together: beyond, the chunks become longer */
    FEW_OUTPUTS = 256,
    TREE_DEPTH = 64,
    MIN_COLUMNS = 4,
    TILE = 16, /* outputs whose elements are gathered together */
};

typedef struct {
    const mr_tensor *in, *out;
    const mr_fold *fold;
    const char *data;
    size_t size;     /* of an input element */
    mr_dtype folded; /* the dtype that the fold gets */
    bool widens;     /* it is another one than the input's */
    int64_t outputs;
    int64_t length;        /* elements reduced into each output */
    int64_t chunks;        /* 1: the items are the outputs */
    int64_t chunk;         /* elements of one */
    mr_walk kept, reduced; /* dims of the input */
    bool dense;            /* the elements of one output are neighbours */
    bool columns; /* no, but the elements of neighbouring outputs are, and the fold can use that */
    bool tiles;   /* they are, but it cannot: they are gathered, several outputs at a time */
    /* outputs of one leaf of dense elements each; several are folded at a time */
    bool rows;
} plan;

static void count(const mr_command *command, plan *p) {
    p->out = command->operands[0].tensor;
    p->in = command->operands[1].tensor;
    int reduced = mr_params_of(command).reduce.dims, kept = p->in->ndim - reduced;
    p->outputs = p->length = 1;
    for (int d = 0; d < p->in->ndim; d++) *(d < kept ? &p->outputs : &p->length) *= p->in->shape[d];
    p->chunks = 1;
    p->chunk = CHUNK;
    if (p->outputs == 0 || p->outputs >= FEW_OUTPUTS || p->length < 2 * CHUNK) return;
    while (p->length / p->chunk > MOST_PARTIALS / p->outputs) p->chunk *= 2;
    p->chunks = (p->length - 1) / p->chunk + 1;
}

/* The strides of a part of the input's dims, merged. */
static void walk_part(mr_walk *walk, const mr_tensor *in, int first, int ndim) {
    mr_tensor part = {.ndim = (uint8_t)ndim};
    memcpy(part.shape, in->shape + first, (size_t)ndim * sizeof *part.shape);
    memcpy(part.stride, in->stride + first, (size_t)ndim * sizeof *part.stride);
    mr_walk_init(walk, ndim, part.shape, 1, &(const mr_tensor *){&part});
}

static void make_plan(const mr_command *command, plan *p) {
    count(command, p);
    const mr_reduction *reduction = command->u.op.row->body;
    p->folded = reduction->folded[p->in->dtype];
    p->widens = p->folded != p->in->dtype;
    p->fold = reduction->fold[p->folded];
    p->size = mr_dtype_size(p->in->dtype);
    p->data = mr_tensor_data(p->in);
    int reduced = mr_params_of(command).reduce.dims, kept = p->in->ndim - reduced;
    walk_part(&p->kept, p->in, 0, kept);
    walk_part(&p->reduced, p->in, kept, reduced);
    p->dense = p->reduced.ndim == 1 && p->reduced.stride[0][0] == 1;
    int last = p->kept.ndim - 1;
    bool neighbours =
        !p->dense && p->kept.stride[0][last] == 1 && p->kept.shape[last] >= MIN_COLUMNS;
    p->columns = neighbours && p->fold->loops;
    p->tiles = neighbours && !p->fold->loops;
    p->rows = p->dense && p->fold->rows && p->length <= MR_LEAF && p->length > 0 && p->outputs > 1;
}

int64_t mr_reduce_items(const mr_command *command) {
    plan p;
    count(command, &p);
    return p.outputs * p.chunks;
}

/* ------------------------------------------------------------------------- the tree */

/* Cells that wait for a partner: one for each bit that is set in the count of leaves so far. */
typedef struct {
    uint64_t leaves;
    int depth;
    mr_cell cells[TREE_DEPTH];
} tree;

static void tree_push(tree *t, const mr_fold *fold, mr_cell cell) {
    for (uint64_t k = t->leaves++; k & 1; k >>= 1) {
        mr_cell left = t->cells[--t->depth];
        fold->join(&left, &cell);
        cell = left;
    }
    t->cells[t->depth++] = cell;
}

static mr_cell tree_result(tree *t, const mr_fold *fold) {
    mr_cell cell = t->cells[--t->depth];
    while (t->depth > 0) {
        mr_cell left = t->cells[--t->depth];
        fold->join(&left, &cell);
        cell = left;
    }
    return cell;
}

/* ------------------------------------------------------------------------- one output */

typedef union {
    char bytes[MR_LEAF * 8 +
               64]; /* not a power of two: blocks side by side must not share cache sets */
    double aligned_;
} leaf_block;

/* n elements of the input as the fold takes them: where they are, or in `widened`. */
static const void *folded(const plan *p, const void *x, int64_t n, leaf_block *widened) {
    if (!p->widens) return x;
    mr_convert(p->folded, widened, (mr_dtype)p->in->dtype, x, n);
    return widened;
}

/* The leaf of one output's elements [first, first + n). */
static const void *leaf_at(const plan *p, const char *base, int64_t first, int64_t n,
                           leaf_block *block, leaf_block *widened) {
    const void *x = base + first * (int64_t)p->size;
    if (!p->dense && n > 0) {
        mr_gather(base, p->size, p->reduced.ndim, p->reduced.shape, p->reduced.stride[0], first, n,
                  block);
        x = block;
    }
    return folded(p, x, n, widened);
}

static mr_cell fold_range(const plan *p, int64_t output, int64_t first, int64_t end) {
    const char *base = p->data + mr_walk_offset(&p->kept, 0, output) * (int64_t)p->size;
    leaf_block block, widened;
    const void *x = NULL;
    tree t = {.leaves = 0};
    for (int64_t i = first; i < end || t.leaves == 0; i += MR_LEAF) {
        int64_t n = end - i < MR_LEAF ? end - i : MR_LEAF;
        x = leaf_at(p, base, i, n, &block, &widened);
        mr_cell cell;
        p->fold->leaf(x, n, i, &cell);
        tree_push(&t, p->fold, cell);
    }
    bool several = t.leaves > 1;
    mr_cell cell = tree_result(&t, p->fold);
    if (p->fold->locate) {
        int64_t n = end - cell.i < MR_LEAF ? end - cell.i : MR_LEAF;
        if (several) x = leaf_at(p, base, cell.i, n, &block, &widened);
        p->fold->locate(x, n, &cell);
    }
    return cell;
}

static void store(const plan *p, const mr_command *command, int64_t output, const mr_cell *cell) {
    const mr_tensor *out = p->out;
    int64_t at = output;
    if (!out->contiguous) {
        at = 0;
        for (int d = out->ndim; d-- > 0;) {
            at += output % out->shape[d] * out->stride[d];
            output /= out->shape[d];
        }
    }
    mr_scalar value = p->fold->final(cell, p->length, mr_params_of(command).reduce.correction);
    mr_dtype_store(out->dtype,
                   (char *)mr_tensor_data(out) + at * (int64_t)mr_dtype_size(out->dtype), value);
}

/* ------------------------------------------------------------------------- neighbouring outputs */

typedef struct {
    int64_t accumulators[MR_COLUMNS];
} column_block;

typedef union {
    char bytes[MR_LEAF_ROWS * MR_COLUMNS * 8];
    double aligned_;
} leaf_rows;

/* Rows of neighbours as `columns` takes them: their places, relative to where the result points to. */
static const void *folded_rows(const plan *p, const char *base, int64_t *row, int64_t rows,
                               int64_t width, leaf_rows *widened) {
    if (!p->widens) return base;
    int64_t size = (int64_t)mr_dtype_size(p->folded);
    for (int64_t r = 0; r < rows; r++) {
        mr_convert(p->folded, widened->bytes + r * width * size, (mr_dtype)p->in->dtype,
                   base + row[r] * (int64_t)p->size, width);
        row[r] = r * width;
    }
    return widened;
}

/* `width` outputs from `output` on, all in one run of neighbours; cells as fold_range would give them
 * but for the order of addition inside a leaf. */
static void fold_columns(const plan *p, int64_t output, int64_t width, int64_t first, int64_t end,
                         mr_cell *out_cells) {
    const char *base = p->data + mr_walk_offset(&p->kept, 0, output) * (int64_t)p->size;
    column_block stack[TREE_DEPTH - 24]; /* enough for 2^40 leaves */
    leaf_rows widened;
    int depth = 0;
    uint64_t leaves = 0;
    for (int64_t i = first; i < end || leaves == 0; i += MR_LEAF_ROWS) {
        int64_t rows = end - i < MR_LEAF_ROWS ? end - i : MR_LEAF_ROWS;
        int64_t row[MR_LEAF_ROWS];
        for (int64_t r = 0; r < rows; r++) row[r] = mr_walk_offset(&p->reduced, 0, i + r);
        const void *x = folded_rows(p, base, row, rows, width, &widened);
        p->fold->loops->columns(x, row, rows, width, &stack[depth++]);
        for (uint64_t k = leaves++; k & 1; k >>= 1, depth--)
            p->fold->loops->join_columns(&stack[depth - 2], &stack[depth - 1], width);
    }
    for (; depth > 1; depth--)
        p->fold->loops->join_columns(&stack[depth - 2], &stack[depth - 1], width);
    for (int64_t w = 0; w < width; w++) p->fold->cell(&stack[0], w, &out_cells[w]);
}

/* Elements [first, first + n) of `width` outputs that are neighbours, each output's as a block. */
static void gather_tile(const plan *p, const char *base, int64_t width, int64_t first, int64_t n,
                        leaf_block *blocks) {
    int64_t apart = (int64_t)(sizeof *blocks / p->size);
    for (int64_t r = 0; r < n;) {
        int last = p->reduced.ndim - 1;
        int64_t length = p->reduced.shape[last], rest = length - (first + r) % length;
        if (rest > n - r) rest = n - r;
        const char *from = base + mr_walk_offset(&p->reduced, 0, first + r) * (int64_t)p->size;
        mr_transpose(blocks->bytes + r * (int64_t)p->size, apart, from, p->reduced.stride[0][last],
                     p->size, width, rest);
        r += rest;
    }
}

/* The same by gathering: each output has the same leaves as in fold_range. */
static void fold_tile(const plan *p, int64_t output, int64_t width, int64_t first, int64_t end,
                      mr_cell *out_cells) {
    const char *base = p->data + mr_walk_offset(&p->kept, 0, output) * (int64_t)p->size;
    leaf_block block[TILE], widened;
    tree trees[TILE];
    for (int w = 0; w < TILE; w++) trees[w].leaves = 0, trees[w].depth = 0;
    for (int64_t i = first; i < end || trees[0].leaves == 0; i += MR_LEAF) {
        int64_t n = end - i < MR_LEAF ? end - i : MR_LEAF;
        gather_tile(p, base, width, i, n, block);
        for (int64_t w = 0; w < width; w++) {
            mr_cell cell;
            const void *x = folded(p, &block[w], n, &widened);
            p->fold->leaf(x, n, i, &cell);
            if (p->fold->locate) p->fold->locate(x, n, &cell);
            tree_push(&trees[w], p->fold, cell);
        }
    }
    for (int64_t w = 0; w < width; w++) out_cells[w] = tree_result(&trees[w], p->fold);
}

/* ------------------------------------------------------------------------- outputs of one leaf */

/* `count` rows as the fold takes them, and how far they are apart then. */
static const void *folded_outputs(const plan *p, const char *x, int64_t count, int64_t *apart,
                                  leaf_block *widened) {
    if (!p->widens) return x;
    int64_t size = (int64_t)mr_dtype_size(p->folded), length = p->length;
    if (*apart == length) return folded(p, x, count * length, widened);
    for (int64_t w = 0; w < count; w++)
        mr_convert(p->folded, widened->bytes + w * length * size, (mr_dtype)p->in->dtype,
                   x + w * *apart * (int64_t)p->size, length);
    *apart = length;
    return widened;
}

/* `width` outputs from `output` on, which are at equal distances. */
static void reduce_rows(const plan *p, const mr_command *command, int64_t output, int64_t width) {
    const char *from = p->data + mr_walk_offset(&p->kept, 0, output) * (int64_t)p->size;
    int64_t apart = p->kept.stride[0][p->kept.ndim - 1];
    leaf_block widened;
    union {
        double real[MR_SHORT_ROWS];
        int64_t whole[MR_SHORT_ROWS];
    } results;
    mr_output out;
    mr_dtype made = p->fold->rows_are_whole ? MR_I64 : MR_F64;
    mr_output_init(&out, p->out, made);
    double correction = mr_params_of(command).reduce.correction;
    int64_t most = p->widens ? MR_LEAF / p->length : MR_SHORT_ROWS;
    if (most > MR_SHORT_ROWS) most = MR_SHORT_ROWS;
    for (int64_t done = 0; done < width;) {
        int64_t count = width - done < most ? width - done : most;
        int64_t folded_apart = apart;
        const void *x = folded_outputs(p, from + done * apart * (int64_t)p->size, count,
                                       &folded_apart, &widened);
        p->fold->rows(x, folded_apart, p->length, count, correction, &results);
        memcpy(mr_output_begin(&out, output + done), &results, (size_t)count * sizeof(double));
        mr_output_end(&out, output + done, count);
        done += count;
    }
}

/* ------------------------------------------------------------------------- the command */

int64_t mr_reduce_state_bytes(const mr_command *command) {
    plan p;
    count(command, &p);
    return p.chunks == 1 ? 0 : p.outputs * p.chunks * (int64_t)sizeof(mr_cell);
}

mr_status mr_reduce_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    if (first >= end) return MR_OK;
    plan p;
    make_plan(command, &p);
    mr_cell *partial = state;
    int64_t run = p.kept.shape[p.kept.ndim - 1]; /* outputs whose elements may be neighbours */
    for (int64_t item = first; item < end;) {
        /* Items of one chunk of neighbouring outputs are neighbours too. */
        int64_t chunk = item / p.outputs, output = item % p.outputs, width = 1;
        if (p.rows) {
            width = run - output % run;
            if (width > end - item) width = end - item;
            reduce_rows(&p, command, output, width);
            item += width;
            continue;
        }
        bool last = chunk == p.chunks - 1;
        int64_t from = chunk * p.chunk, to = last ? p.length : from + p.chunk;
        mr_cell cells[MR_COLUMNS];
        if (p.columns || p.tiles) {
            width = run - output % run;
            if (width > (p.columns ? MR_COLUMNS : TILE)) width = p.columns ? MR_COLUMNS : TILE;
            if (width > end - item) width = end - item;
            (p.columns ? fold_columns : fold_tile)(&p, output, width, from, to, cells);
        } else {
            cells[0] = fold_range(&p, output, from, to);
        }
        for (int64_t w = 0; w < width; w++) {
            if (partial) partial[item + w] = cells[w];
            else store(&p, command, output + w, &cells[w]);
        }
        item += width;
    }
    return MR_OK;
}

void mr_reduce_finish(const mr_command *command, void *state) {
    if (!state) return;
    plan p;
    make_plan(command, &p);
    const mr_cell *partial = state;
    for (int64_t output = 0; output < p.outputs; output++) {
        tree t = {.leaves = 0};
        for (int64_t chunk = 0; chunk < p.chunks; chunk++)
            tree_push(&t, p.fold, partial[chunk * p.outputs + output]);
        mr_cell cell = tree_result(&t, p.fold);
        store(&p, command, output, &cell);
    }
}

void mr_reduce_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 8 };
    const mr_tensor *out = command->operands[0].tensor, *in = command->operands[1].tensor;
    double items = (double)in->numel, blocks = items / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = items * command->u.op.row->flops,
                          .bytes = items * (double)mr_dtype_size(in->dtype) +
                                   (double)out->numel * (double)mr_dtype_size(out->dtype),
                          .blocks = blocks < 65536 ? (uint32_t)blocks : 65536,
                          .threads = THREADS};
}
