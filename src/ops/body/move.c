/* The bodies of flip, roll, tril and triu: elements of the input at other places, or 0. An item is an element. */
#include "ops/move.h"
#include "ops/body.h"

#include <string.h>

const mr_move_body mr_move_flip = {MR_MOVE_FLIP}, mr_move_roll = {MR_MOVE_ROLL},
                   mr_move_tril = {MR_MOVE_LOWER}, mr_move_triu = {MR_MOVE_UPPER};

void mr_moving_of(const mr_command *command, mr_moving *out) {
    const mr_move_body *body = command->u.op.row->body;
    mr_move_params move = mr_params_of(command).move;
    const mr_tensor *in = command->operands[1].tensor;
    *out = (mr_moving){.out = command->operands[0].tensor, .in = in, .rolled = -1};
    for (int d = 0; d < in->ndim; d++) {
        bool flips = body->kind == MR_MOVE_FLIP && (move.flipped >> d & 1);
        out->stride[d] = flips ? -in->stride[d] : in->stride[d];
        if (flips) out->offset += (in->shape[d] - 1) * in->stride[d];
    }
    if (body->kind == MR_MOVE_ROLL) {
        int64_t size = in->shape[move.dim], shift = move.shift % size;
        out->rolled = move.dim;
        out->shift = shift < 0 ? shift + size : shift;
    } else if (body->kind != MR_MOVE_FLIP) {
        out->band = body->kind == MR_MOVE_LOWER ? -1 : 1;
        int64_t k = move.diagonal, most = (int64_t)1 << 62; /* so that no sum overflows */
        out->diagonal = k > most ? most : k < -most ? -most : k;
    }
}

/* ------------------------------------------------------------------------- a row */

#define COPY(T)                                                                                    \
    for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[i * step]
static void copy(char *to, const char *from, int64_t step, size_t size, int64_t n) {
    if (step == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY(uint8_t); break;
    case 2: COPY(uint16_t); break;
    case 4: COPY(uint32_t); break;
    default: COPY(uint64_t); break;
    }
}

/* The columns first to end - 1 of a row that are not 0: from *out_first to *out_end - 1. */
static void band_of(const mr_moving *m, int64_t row, int64_t first, int64_t end, int64_t *out_first,
                    int64_t *out_end) {
    int64_t edge = row + m->diagonal; /* the column on the diagonal */
    *out_first = first;
    *out_end = end;
    if (m->band < 0) *out_end = edge + 1 < end ? edge + 1 : end;
    if (m->band > 0) *out_first = edge > first ? edge : first;
    if (*out_first > end) *out_first = end;
    if (*out_end < *out_first) *out_end = *out_first;
}

/* The columns first to end - 1 of the row that begins at `offset` of the input, to a dense block. */
static void fill_row(const mr_moving *m, int64_t offset, int64_t row, int64_t first, int64_t end,
                     char *to) {
    int last = m->in->ndim - 1;
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)m->in->dtype), step = m->stride[last];
    const char *from = (const char *)mr_tensor_data(m->in) + offset * size;
    if (m->rolled == last) {
        int64_t columns = m->in->shape[last];
        for (int64_t i = first; i < end;) {
            int64_t at = i < m->shift ? i - m->shift + columns : i - m->shift;
            int64_t n = (i < m->shift ? m->shift : columns) - i;
            if (n > end - i) n = end - i;
            copy(to + (i - first) * size, from + at * step * size, step, (size_t)size, n);
            i += n;
        }
        return;
    }
    int64_t begin, stop;
    band_of(m, row, first, end, &begin, &stop);
    memset(to, 0, (size_t)((begin - first) * size));
    copy(to + (begin - first) * size, from + begin * step * size, step, (size_t)size, stop - begin);
    memset(to + (stop - first) * size, 0, (size_t)((end - stop) * size));
}

/* Where in the input the row of a position begins, and its index in the last dim but one. */
static int64_t row_offset(const mr_moving *m, int64_t row, int64_t *out_index) {
    int64_t offset = m->offset;
    *out_index = 0;
    for (int d = m->in->ndim - 1; d-- > 0;) {
        int64_t size = m->in->shape[d], index = row % size;
        row /= size;
        if (d == m->in->ndim - 2) *out_index = index;
        if (d == m->rolled) index = index < m->shift ? index - m->shift + size : index - m->shift;
        offset += index * m->stride[d];
    }
    return offset;
}

mr_status mr_move_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    mr_moving m;
    mr_output out;
    mr_moving_of(command, &m);
    mr_output_init(&out, m.out, (mr_dtype)m.out->dtype);
    int64_t columns = m.in->shape[m.in->ndim - 1];
    for (int64_t i = first; i < end;) {
        int64_t column = i % columns, n = columns - column, index;
        if (n > end - i) n = end - i;
        if (!out.direct && n > MR_BLOCK) n = MR_BLOCK;
        int64_t offset = row_offset(&m, i / columns, &index);
        fill_row(&m, offset, index, column, column + n, mr_output_begin(&out, i));
        mr_output_end(&out, i, n);
        i += n;
    }
    return MR_OK;
}

/* Elements of a matrix that tril or triu keeps: in row i, those up to column i + diagonal, or from there on. */
static double kept_by(const mr_moving *m) {
    double rows = (double)m->in->shape[m->in->ndim - 2],
           columns = (double)m->in->shape[m->in->ndim - 1];
    /* For triu the others, which are below the diagonal before. */
    double k = (double)m->diagonal + (m->band < 0 ? 1 : 0);
    double first = k < 0 ? -k : 0,
           full = columns - k; /* rows from which on there are some, and all */
    if (first > rows) first = rows;
    if (full < first) full = first;
    if (full > rows) full = rows;
    double below = (full - first) * (first + full - 1 + 2 * k) / 2 + (rows - full) * columns;
    return m->band < 0 ? below : rows * columns - below;
}

void mr_move_cost(const mr_command *command, mr_cost *out_cost) {
    mr_moving m;
    mr_elementwise_cost(command, out_cost);
    mr_moving_of(command, &m);
    if (m.band == 0) return;
    double matrix = (double)(m.in->shape[m.in->ndim - 2] * m.in->shape[m.in->ndim - 1]);
    double size = (double)mr_dtype_size((mr_dtype)m.in->dtype), all = (double)m.in->numel;
    out_cost->bytes = size * all * (1 + kept_by(&m) / matrix);
}
