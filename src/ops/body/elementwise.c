/* Runs an elementwise command over a range of items: element i of the output, in row-major order.
 *
 * Four ways, the quick ones first. All operands dense, or a single number: one call of the loop. A
 * long last dim in which each operand advances by one element or stands still (a row with a matrix, a
 * column with a matrix): one call for each row. The same with inputs that are transposed: panels of
 * those are turned, some rows at a time. Everything else, strides and other dtypes: operands
 * are gathered and converted to dense blocks that stay in the first-level cache. */
#include "ops/body.h"

#include <string.h>

enum { LONG_ROW = 64, PANEL_ROWS = 32, PANEL_COLUMNS = 64, LEAST_PANEL = 4 };

int mr_command_inputs(const mr_command *command, mr_input *out_inputs) {
    mr_elementwise_params params = mr_params_of(command).elementwise;
    int count = command->u.op.row->inputs;
    uint32_t operand = 1;
    int number = 0;
    for (int k = 0; k < count; k++) {
        out_inputs[k].tensor = NULL;
        switch (params.inputs >> (MR_INPUT_BITS * k) & MR_INPUT_MASK) {
        case MR_INPUT_OPERAND: out_inputs[k].tensor = command->operands[operand++].tensor; break;
        case MR_INPUT_OUTPUT: out_inputs[k].tensor = command->operands[0].tensor; break;
        default: out_inputs[k].scalar = params.number[number++]; break;
        }
    }
    return count;
}

int64_t mr_elementwise_items(const mr_command *command) {
    return command->operands[0].tensor->numel;
}

/* Dense elements for a loop, aligned for the widest vectors. */
enum { LINE = 64 };
typedef union {
    _Alignas(LINE) char bytes[MR_BLOCK * 8];
    uint64_t words[MR_BLOCK];
} block;

/* How one input is given to the loop. */
typedef struct {
    const mr_tensor *tensor;
    const char *data;
    mr_dtype dtype; /* as the loop takes it */
    size_t size;    /* of that */
    bool fixed;     /* a single element for all items */
    bool dense;     /* item i is element i of `data`, and of `dtype` */
    int walk;       /* which strides of the walk are its own */
    block number;   /* if fixed: repeated for as many items as a loop takes of it at a time */
} source;

typedef struct {
    mr_kernel kernel;
    int count;
    unsigned fixed; /* bit k: in[k] is */
    int64_t held;   /* how many elements of any input a block holds */
    source in[MR_MAX_INPUTS];
    const mr_tensor *out;
    mr_dtype result; /* of the loop */
    size_t result_size;
    mr_walk walk; /* operand 0: the output */
} job;

/* Writes whole lines, and loops read them in the same order: processors do that fast. */
MR_CLONES static void repeat(block *to, const void *element, size_t size, int64_t n) {
    uint64_t *lines = to->words, pattern;
    uint32_t half;
    switch (size) {
    case 1: pattern = *(const unsigned char *)element * UINT64_C(0x0101010101010101); break;
    case 4:
        memcpy(&half, element, sizeof half);
        pattern = half | (uint64_t)half << 32;
        break;
    default: memcpy(&pattern, element, sizeof pattern);
    }
    size_t words = ((size_t)n * size + LINE - 1) / LINE * (LINE / sizeof pattern);
    for (size_t i = 0; i < words; i++) lines[i] = pattern;
}

/* For a run over `items` items. */
static void set_sources(job *j, const mr_command *command, int64_t items) {
    const mr_elementwise *loops = command->u.op.row->body;
    mr_dtype computed = (mr_dtype)mr_params_of(command).elementwise.dtype;
    mr_input inputs[MR_MAX_INPUTS];
    j->count = mr_command_inputs(command, inputs);
    j->kernel = loops->kernel[computed];
    j->out = command->operands[0].tensor;
    j->result = loops->bool_result ? MR_BOOL : computed;
    j->result_size = mr_dtype_size(j->result);
    j->fixed = 0;
    j->held = (int64_t)(sizeof(block) / mr_dtype_size(computed));
    for (int k = 0; k < j->count; k++) {
        source *s = &j->in[k];
        const mr_tensor *t = inputs[k].tensor;
        s->tensor = t;
        s->dtype = k == 0 && loops->first_is_bool ? MR_BOOL : computed;
        s->size = mr_dtype_size(s->dtype);
        s->dense = false;
        s->fixed = !t || t->numel == 1;
        if (s->fixed) {
            /* A tensor of one element is read anew in each slice: the device may write it meanwhile. */
            uint64_t number[1];
            mr_dtype_store(s->dtype, number,
                           t ? mr_dtype_load(t->dtype, mr_tensor_data(t)) : inputs[k].scalar);
            repeat(&s->number, number, s->size, items < j->held ? items : j->held);
            s->data = s->number.bytes;
            j->fixed |= 1u << k;
        } else {
            s->data = mr_tensor_data(t);
            s->dense = t->contiguous && t->dtype == s->dtype && t->numel == j->out->numel;
        }
    }
}

static void set_walk(job *j) {
    const mr_tensor *operands[MR_WALK_OPERANDS];
    int count = 0;
    operands[count++] = j->out;
    for (int k = 0; k < j->count; k++) {
        if (j->in[k].fixed) continue;
        j->in[k].walk = count;
        operands[count++] = j->in[k].tensor;
    }
    mr_walk_init(&j->walk, j->out->ndim, j->out->shape, count, operands);
}

/* The loop over n items, `held` at a time. Inputs of `fixed` are blocks of as many, which serve again for the next. */
static void run_again(const job *j, char *out, const void *const *in, unsigned fixed, int64_t n) {
    const void *run[MR_MAX_INPUTS];
    for (int k = 0; k < j->count; k++) run[k] = in[k];
    for (int64_t i = 0; i < n; i += j->held) {
        j->kernel(out, run, fixed, n - i < j->held ? n - i : j->held);
        out += j->held * (int64_t)j->result_size;
        for (int k = 0; k < j->count; k++)
            if (!(fixed >> k & 1)) run[k] = (const char *)run[k] + j->held * (int64_t)j->in[k].size;
    }
}

/* The same for inputs of `fixed` that are not such blocks: their elements are first repeated in one. That reads them
 * before anything is written. */
static void run_repeated(const job *j, char *out, const void *const *in, unsigned fixed,
                         int64_t n) {
    int64_t held = n < j->held ? n : j->held;
    const void *run[MR_MAX_INPUTS];
    block blocks[MR_MAX_INPUTS];
    /* all inputs are constant: computes one element, and repeats it */
    if (fixed == (1u << j->count) - 1) {
        uint64_t value;
        j->kernel(&value, in, fixed, 1);
        repeat(&blocks[0], &value, j->result_size, held);
        for (int64_t i = 0; i < n; i += held)
            memcpy(out + i * (int64_t)j->result_size, &blocks[0],
                   (size_t)(n - i < held ? n - i : held) * j->result_size);
        return;
    }
    for (int k = 0; k < j->count; k++) {
        run[k] = in[k];
        if (!((fixed & ~j->fixed) >> k & 1)) continue;
        repeat(&blocks[k], in[k], j->in[k].size, held);
        run[k] = &blocks[k];
    }
    if (held == n) j->kernel(out, run, fixed, n);
    else run_again(j, out, run, fixed, n);
}

/* Runs the loop over n items. Bit k of `fixed`: in[k] is a single element, which counts for all of them, or the block
 * of a number. Loops take dense blocks only, so that the compiler makes one of each expression. */
static void run_loop(const job *j, void *out, const void *const *in, unsigned fixed, int64_t n) {
    if (fixed & ~j->fixed || fixed == (1u << j->count) - 1) run_repeated(j, out, in, fixed, n);
    else if (n <= j->held || fixed == 0) j->kernel(out, in, fixed, n);
    else run_again(j, out, in, fixed, n);
}

/* Whether a row of the output crosses the rows of this input. */
static bool is_turned(const job *j, const source *s) {
    int last = j->walk.ndim - 1;
    const int64_t *stride = j->walk.stride[s->walk];
    return !s->fixed && last > 0 && stride[last - 1] == 1 && stride[last] != 1 && stride[last] != 0;
}

/* Whether rows of the last dim can be given to the loop: as they are, or those of turned inputs from panels. */
static bool has_long_rows(const job *j, bool *out_panels) {
    int last = j->walk.ndim - 1;
    *out_panels = false;
    if (j->walk.shape[last] < LONG_ROW || j->walk.stride[0][last] != 1 ||
        j->out->dtype != j->result)
        return false;
    for (int k = 0; k < j->count; k++) {
        const source *s = &j->in[k];
        if (s->fixed) continue;
        int64_t stride = j->walk.stride[s->walk][last];
        bool turned = is_turned(j, s);
        if (s->tensor->dtype != s->dtype || (stride != 1 && stride != 0 && !turned)) return false;
        *out_panels = *out_panels || turned;
    }
    return true;
}

static void run_rows(const job *j, int64_t first, int64_t end) {
    int last = j->walk.ndim - 1;
    int64_t length = j->walk.shape[last];
    size_t out_size = mr_dtype_size(j->result);
    for (int64_t i = first; i < end;) {
        int64_t n = length - i % length;
        if (n > end - i) n = end - i;
        const void *in[MR_MAX_INPUTS];
        unsigned fixed = j->fixed;
        for (int k = 0; k < j->count; k++) {
            const source *s = &j->in[k];
            in[k] = s->data;
            if (s->fixed) continue;
            in[k] = s->data + mr_walk_offset(&j->walk, s->walk, i) * (int64_t)s->size;
            if (j->walk.stride[s->walk][last] == 0) fixed |= 1u << k;
        }
        char *out = mr_tensor_data(j->out);
        run_loop(j, out + mr_walk_offset(&j->walk, 0, i) * (int64_t)out_size, in, fixed, n);
        i += n;
    }
}

/* `n` items of an input from `first` on as a dense block: `to`, or the tensor's own memory. */
static const void *fetch(const job *j, const source *s, int64_t first, int64_t n, block *to,
                         block *raw) {
    if (s->fixed) return s->data;
    if (s->dense) return s->data + first * (int64_t)s->size;
    mr_dtype own = (mr_dtype)s->tensor->dtype;
    size_t own_size = mr_dtype_size(own);
    if (s->tensor->contiguous && s->tensor->numel == j->out->numel) {
        mr_convert(s->dtype, to, own, s->data + first * (int64_t)own_size, n);
        return to;
    }
    block *gathered = own == s->dtype ? to : raw;
    mr_gather(s->data, own_size, j->walk.ndim, j->walk.shape, j->walk.stride[s->walk], first, n,
              gathered);
    if (gathered != to) mr_convert(s->dtype, to, own, gathered, n);
    return to;
}

static void run_blocks(const job *j, int64_t first, int64_t end) {
    block blocks[MR_MAX_INPUTS], raw;
    mr_output out;
    mr_output_init(&out, j->out, j->result);
    for (int64_t i = first; i < end; i += MR_BLOCK) {
        int64_t n = end - i < MR_BLOCK ? end - i : MR_BLOCK;
        const void *in[MR_MAX_INPUTS];
        for (int k = 0; k < j->count; k++) in[k] = fetch(j, &j->in[k], i, n, &blocks[k], &raw);
        run_loop(j, mr_output_begin(&out, i), in, j->fixed, n);
        mr_output_end(&out, i, n);
    }
}

typedef struct {
    _Alignas(LINE) char bytes[PANEL_ROWS * PANEL_COLUMNS * 8];
} panel;

/* `rows` whole rows from item `first` on, all of one matrix: columns [column, column + width). */
static void run_panel(const job *j, int64_t first, int64_t rows, int64_t column, int64_t width) {
    int last = j->walk.ndim - 1;
    size_t out_size = mr_dtype_size(j->result);
    panel panels[MR_MAX_INPUTS];
    const char *row[MR_MAX_INPUTS] = {NULL};
    int64_t step[MR_MAX_INPUTS] = {0}; /* bytes from row to row */
    unsigned fixed = j->fixed;
    for (int k = 0; k < j->count; k++) {
        const source *s = &j->in[k];
        row[k] = s->data;
        if (s->fixed) continue;
        const int64_t *stride = j->walk.stride[s->walk];
        int64_t at = mr_walk_offset(&j->walk, s->walk, first) + column * stride[last];
        row[k] += at * (int64_t)s->size;
        step[k] = (last > 0 ? stride[last - 1] : 0) * (int64_t)s->size;
        if (stride[last] == 0) fixed |= 1u << k;
        if (!is_turned(j, s)) continue;
        mr_transpose(&panels[k], PANEL_COLUMNS, row[k], stride[last], s->size, rows, width);
        row[k] = panels[k].bytes;
        step[k] = PANEL_COLUMNS * (int64_t)s->size;
    }
    char *out = mr_tensor_data(j->out);
    out += (mr_walk_offset(&j->walk, 0, first) + column) * (int64_t)out_size;
    for (int64_t r = 0; r < rows; r++) {
        const void *in[MR_MAX_INPUTS];
        for (int k = 0; k < j->count; k++) in[k] = row[k] + r * step[k];
        run_loop(j, out + r * j->walk.stride[0][last - 1] * (int64_t)out_size, in, fixed, width);
    }
}

static void run_panels(const job *j, int64_t first, int64_t end) {
    int last = j->walk.ndim - 1;
    int64_t length = j->walk.shape[last], height = j->walk.shape[last - 1];
    for (int64_t i = first; i < end;) {
        int64_t begun = i % length, rows = (end - i) / length, rest = height - i / length % height;
        if (rows > rest) rows = rest;
        if (rows > PANEL_ROWS) rows = PANEL_ROWS;
        if (begun > 0 || rows < LEAST_PANEL) {
            int64_t n = length - begun < end - i ? length - begun : end - i;
            run_blocks(j, i, i + n);
            i += n;
            continue;
        }
        for (int64_t c = 0; c < length; c += PANEL_COLUMNS)
            run_panel(j, i, rows, c, length - c < PANEL_COLUMNS ? length - c : PANEL_COLUMNS);
        i += rows * length;
    }
}

mr_status mr_elementwise_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    job j;
    set_sources(&j, command, end - first);
    bool dense = j.out->contiguous && j.out->dtype == j.result;
    for (int k = 0; k < j.count; k++) dense = dense && (j.in[k].dense || j.in[k].fixed);
    if (dense) {
        const void *in[MR_MAX_INPUTS];
        for (int k = 0; k < j.count; k++)
            in[k] = j.in[k].fixed ? j.in[k].data : j.in[k].data + first * (int64_t)j.in[k].size;
        run_loop(&j, (char *)mr_tensor_data(j.out) + first * (int64_t)mr_dtype_size(j.result), in,
                 j.fixed, end - first);
        return MR_OK;
    }
    set_walk(&j);
    bool panels;
    bool rows = has_long_rows(&j, &panels);
    if (rows && panels) run_panels(&j, first, end);
    else if (rows) run_rows(&j, first, end);
    else run_blocks(&j, first, end);
    return MR_OK;
}

void mr_elementwise_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 4 };
    double items = (double)command->operands[0].tensor->numel;
    double bytes = 0;
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *operand = &command->operands[k];
        double own = (double)operand->tensor->numel * (double)mr_dtype_size(operand->tensor->dtype);
        bytes += own * ((operand->access & MR_READ ? 1 : 0) + (operand->access & MR_WRITE ? 1 : 0));
    }
    double blocks = items / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = items * command->u.op.row->flops,
                          .bytes = bytes,
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}
