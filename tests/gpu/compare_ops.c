/* Every row of the operation table on a real GPU beside its CPU body, in each dtype. Operands are dense, unaligned,
 * transposed, stepped, broadcast, numbers, or of mixed dtypes; outputs have other layouts and dtypes, too.
 *
 *     build/compare_ops [ROW...]
 *
 * Prints a line a row: how many cases, which dtypes failed, the largest difference in units in the last place;
 * then what failed first. A new row of the table is compared without a line here. Exits with 1 if one failed. */
#include "cuda/cuda.h"
#include "cuda/kernels/order_args.h"
#include "ops/call.h"
#include "ops/ids.h"
#include "ops/optimise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_machine *machine;
static mr_caller caller; /* of the machine */

static void ok(mr_status status) {
    if (!status) return;
    fprintf(stderr, "compare_ops: %s\n", status->message);
    exit(2);
}

/* ------------------------------------------------------------------------- operands */

static uint64_t noise_state = 1;
static uint64_t noise(void) { /* SplitMix64 */
    uint64_t h = noise_state += 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* Values that rules are about: signs of zero, infinities, NaN, the ends of the integers, halves. `tame`: none
 * of these, so that sums can be compared. */
static mr_scalar value_of(mr_dtype dtype, bool tame) {
    static const double special[] = {0,    -0.0,  1,        -1,        0.5,   -0.5, 2.5,
                                     -2.5, 1e-40, -1e-40,   1e30,      -1e30, 300,  -300,
                                     3e9,  -3e9,  INFINITY, -INFINITY, NAN};
    static const int64_t ends[] = {0,         1,         -1,        2,         255, 256,
                                   INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 3,   -3};
    uint64_t n = noise();
    bool is_special = !tame && n % 8 == 0;
    n = noise();
    if (mr_dtype_category(dtype) == 2) {
        double v = ((double)(n >> 11) * 0x1p-53 - 0.5) * 8;
        return (mr_scalar){.f = is_special ? special[n % (sizeof special / sizeof *special)] : v};
    }
    int64_t i = is_special ? ends[n % (sizeof ends / sizeof *ends)] : (int64_t)(n % 19) - 9;
    return (mr_scalar){.is_integer = true, .i = i, .f = (double)i};
}

typedef enum { DENSE, UNALIGNED, TRANSPOSED, STEPPED, ROW, COLUMN, SINGLE, LAYOUTS } layout;
static const char *const layout_text[] = {"dense", "unaligned", "transposed", "stepped",
                                          "row",   "column",    "single"};

typedef struct {
    mr_tensor *host, *device;
} pair;

static void drop(mr_tensor *t) {
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

static void drop_pair(pair p) {
    drop(p.host);
    drop(p.device);
}

/* The same view of the same values on both sides: rows x columns, or what broadcasts to it. `rows` 0: one
 * dim of `columns`. */
static mr_tensor *view_of(mr_tensor *base, layout how, int64_t rows, int64_t columns) {
    mr_tensor *view = base, *next;
    int ndim = rows ? 2 : 1;
    const int64_t shape[] = {rows ? rows : columns, columns};
    switch (how) {
    case UNALIGNED:
        ok(mr_tensor_narrow(&caller, base, 0, 1, base->numel - 1, 1, &view));
        ok(mr_tensor_reshape(&caller, view, ndim, shape, &next));
        drop(view);
        view = next;
        break;
    case TRANSPOSED: ok(mr_tensor_transpose(&caller, base, 0, base->ndim - 1, &view)); break;
    case STEPPED: ok(mr_tensor_narrow(&caller, base, ndim - 1, 0, columns, 2, &view)); break;
    case ROW:
    case COLUMN: ok(mr_tensor_expand(&caller, base, ndim, shape, &view)); break;
    default: return base;
    }
    drop(base);
    return view;
}

static pair make(mr_dtype dtype, layout how, int64_t rows, int64_t columns, bool tame) {
    int64_t shape[2] = {rows ? rows : columns, columns};
    int ndim = rows ? 2 : 1;
    switch (how) {
    case UNALIGNED: shape[0] = (rows ? rows : 1) * columns + 1, ndim = 1; break;
    case TRANSPOSED:
        if (rows) shape[0] = columns, shape[1] = rows;
        break;
    case STEPPED: shape[ndim - 1] = 2 * columns; break;
    case ROW: shape[0] = rows ? 1 : columns; break;
    case COLUMN: shape[ndim - 1] = 1; break;
    case SINGLE: shape[0] = 1, ndim = 1; break;
    default: break;
    }
    const mr_placement host = {.kind = MR_MEMORY_PAGEABLE}, device = {.kind = MR_MEMORY_DEVICE};
    pair p;
    ok(mr_create_empty(&caller, &host, dtype, ndim, shape, &p.host));
    ok(mr_create_empty(&caller, &device, dtype, ndim, shape, &p.device));
    char *data = mr_tensor_data(p.host);
    for (int64_t i = 0; i < p.host->numel; i++)
        mr_dtype_store(dtype, data + (size_t)i * mr_dtype_size(dtype), value_of(dtype, tame));
    ok(mr_copy(&caller, p.device, p.host, NULL, false));
    p.host = view_of(p.host, how, rows, columns);
    p.device = view_of(p.device, how, rows, columns);
    return p;
}

/* ------------------------------------------------------------------------- differences */

typedef struct {
    int cases, failed;
    bool failed_dtype[MR_DTYPE_COUNT];
    double worst; /* units in the last place */
    char first[240];
} tally;

/* What a row promises: equal bits, or so many units in the last place, or so much of the result's norm. */
typedef struct {
    double ulps, norm;
    double terms;     /* the size of what was added up, where it may cancel out in the result */
    bool either_zero; /* of 0 and -0, which are equal, the order decides */
} promise;

static promise promise_of(const mr_op *row, mr_dtype dtype) {
    switch (row->id) {
    case MR_OP_sin:
    case MR_OP_cos:
    case MR_OP_pow: return (promise){.ulps = 4};
    /* In f64 by the two sides' libraries, which promise 2 units each. */
    case MR_OP_exp2:
    case MR_OP_expm1:
    case MR_OP_log2:
    case MR_OP_log10:
    case MR_OP_log1p:
    case MR_OP_asin:
    case MR_OP_acos:
    case MR_OP_atan:
    case MR_OP_atan2:
    case MR_OP_sinh:
    case MR_OP_cosh:
    case MR_OP_tan:
    case MR_OP_erf:
    case MR_OP_softplus:
    case MR_OP_elu: return (promise){.ulps = dtype == MR_F64 ? 4 : 0};
    case MR_OP_gelu: return (promise){.ulps = dtype == MR_F64 ? 8 : 0}; /* CUDA's erfc has 5 */
    case MR_OP_softmax: return (promise){.ulps = dtype == MR_F64 ? 16 : 4};
    case MR_OP_log_softmax: /* of a sum near 1 the logarithm is what its order makes it */
        return dtype == MR_F64 ? (promise){.norm = 1e-13} : (promise){.ulps = 4};
    case MR_OP_sum:
    case MR_OP_mean:
    case MR_OP_cumsum:
    case MR_OP_cumprod:
    case MR_OP_prod:
    case MR_OP_norm:
    case MR_OP_var:
    case MR_OP_std: return (promise){.norm = 1e-5};
    case MR_OP_max:
    case MR_OP_min: return (promise){.either_zero = true};
    default: break;
    }
    if (row->family->id == MR_FAMILY_MATMUL) return (promise){.norm = 1e-5};
    return (promise){0};
}

/* For a half: the distance of its bits' neighbours. */
static double half_ulp(mr_dtype dtype, double x) {
    uint16_t bits;
    mr_dtype_store(dtype, &bits, (mr_scalar){.f = fabs(x)});
    double here = mr_dtype_load(dtype, &bits).f;
    bits++;
    double next = mr_dtype_load(dtype, &bits).f;
    return isinf(next) ? INFINITY : next - here;
}

static double ulp_of(mr_dtype dtype, double x) {
    if (mr_dtype_is_half(dtype)) return half_ulp(dtype, x);
    if (dtype == MR_F32) return fabs((double)nextafterf((float)x, INFINITY) - (double)(float)x);
    return nextafter(fabs(x), INFINITY) - fabs(x);
}

static mr_scalar element(const mr_tensor *t, int64_t i) {
    return mr_dtype_load((mr_dtype)t->dtype, (const char *)mr_tensor_data(t) +
                                                 (size_t)i * mr_dtype_size((mr_dtype)t->dtype));
}

static bool compare(mr_tensor *host, mr_tensor *device, promise allowed, tally *sum, mr_dtype dtype,
                    const char *what) {
    mr_tensor *expected, *got;
    const mr_placement plain = {.kind = MR_MEMORY_PAGEABLE};
    ok(mr_create_empty(&caller, &plain, (mr_dtype)host->dtype, host->ndim, host->shape, &expected));
    ok(mr_copy(&caller, expected, host, NULL, false));
    ok(mr_to_host(&caller, device, &got));
    bool same_kind = expected->dtype == got->dtype && expected->numel == got->numel,
         fine = same_kind;
    double square = 0, difference = 0;
    bool is_float = mr_dtype_category((mr_dtype)expected->dtype) == 2,
         is_half = mr_dtype_is_half((mr_dtype)expected->dtype);
    mr_dtype unit = is_half ? (mr_dtype)expected->dtype : dtype == MR_F64 ? MR_F64 : MR_F32;
    /* Rounding to a half makes neighbours of what differs by less than that in f32. */
    if (is_half && allowed.ulps > 0) allowed.ulps = 1;
    char text[120] = "another dtype or size";
    for (int64_t i = 0; same_kind && i < expected->numel; i++) {
        mr_scalar e = element(expected, i), g = element(got, i);
        bool bad = false;
        if (!is_float) {
            bad = e.i != g.i;
        } else if (isnan(e.f) || isnan(g.f) || isinf(e.f) || isinf(g.f)) {
            bad = !((isnan(e.f) && isnan(g.f)) || e.f == g.f);
        } else if (e.f != g.f || (signbit(e.f) != signbit(g.f) && !allowed.either_zero)) {
            double size = fmax(fabs(e.f), fabs(g.f));
            double ulp = ulp_of(unit, size), apart = fabs(e.f - g.f);
            double ulps = apart == 0 ? 1 : apart / ulp;
            if (ulps > sum->worst && allowed.norm == 0) sum->worst = ulps;
            if (is_half) apart = fmax(apart - ulp, 0);
            difference += apart * apart;
            bad = allowed.norm == 0 && ulps > allowed.ulps;
        }
        if (is_float && isfinite(e.f)) square += e.f * e.f;
        if (bad && fine) {
            fine = false;
            snprintf(text, sizeof text, "element %lld is %.17g, not %.17g", (long long)i, g.f, e.f);
        }
    }
    /* The variance of equal numbers is 0 but for rounding. */
    double size = fmax(sqrt(square), allowed.terms);
    if (fine && allowed.norm > 0 && sqrt(difference) > allowed.norm * size + 1e-13) {
        fine = false;
        snprintf(text, sizeof text, "differs by %g of the norm", sqrt(difference / square));
    }
    sum->cases++;
    if (!fine) {
        if (!sum->failed++) snprintf(sum->first, sizeof sum->first, "%s: %s", what, text);
        sum->failed_dtype[dtype] = true;
    }
    drop(expected);
    drop(got);
    return fine;
}

/* Runs a call on both sides; the outputs, if given, are a pair too. A call that is refused is not a
 * case. */
static void run_both(const mr_op *row, mr_call host, mr_call device, promise allowed, tally *sum,
                     mr_dtype dtype, const char *what) {
    mr_tensor *on_host, *on_device;
    bool fresh;
    uint64_t draws = machine->random.draws;
    mr_status refused = mr_call_run(&caller, row, &host, &on_host, &fresh);
    if (refused) {
        mr_error_destroy(refused);
        return;
    }
    machine->random.draws = draws; /* the same random numbers */
    mr_status failed = mr_call_run(&caller, row, &device, &on_device, &fresh);
    if (failed) {
        sum->cases++;
        if (!sum->failed++)
            snprintf(sum->first, sizeof sum->first, "%s: %s", what, failed->message);
        sum->failed_dtype[dtype] = true;
        mr_error_destroy(failed);
    } else {
        compare(on_host, on_device, allowed, sum, dtype, what);
        if (fresh) drop(on_device);
        else mr_tensor_release(on_device);
    }
    if (fresh) drop(on_host);
    else mr_tensor_release(on_host);
}

/* ------------------------------------------------------------------------- families */

enum { ROWS = 37, COLUMNS = 53, LONG = 100003 };
enum { VECTOR_ROWS = 24, VECTOR_COLUMNS = 160 }; /* rows of whole vectors, of any dtype */

/* One case: how the inputs and the output lie. */
typedef struct {
    layout in[3];
    enum { FRESH, INTO, IN_PLACE } where;
    layout out;
    int number; /* which input is a number; -1: none */
    bool mixed; /* the second input is of another dtype, and the output f64 if given */
    enum { ODD, RUN, VECTORS } size; /* of rows x columns, long in one dim, rows of whole vectors */
} shape_case;

static const shape_case shape_cases[] = {
    {{DENSE, DENSE, DENSE}, FRESH, DENSE, -1, false, ODD},
    {{DENSE, DENSE, DENSE}, FRESH, DENSE, -1, false, RUN},
    {{UNALIGNED, DENSE, DENSE}, FRESH, DENSE, -1, false, RUN},
    {{TRANSPOSED, TRANSPOSED, TRANSPOSED}, FRESH, DENSE, -1, false, ODD},
    {{TRANSPOSED, TRANSPOSED, TRANSPOSED}, INTO, TRANSPOSED, -1, false, ODD},
    {{STEPPED, DENSE, TRANSPOSED}, FRESH, DENSE, -1, false, ODD},
    {{DENSE, ROW, COLUMN}, FRESH, DENSE, -1, false, ODD},
    {{COLUMN, ROW, DENSE}, FRESH, DENSE, -1, false, ODD},
    {{DENSE, SINGLE, SINGLE}, FRESH, DENSE, -1, false, ODD},
    {{DENSE, SINGLE, DENSE}, INTO, STEPPED, -1, false, ODD},
    {{DENSE, DENSE, DENSE}, FRESH, DENSE, 1, false, RUN},
    {{DENSE, DENSE, DENSE}, FRESH, DENSE, 2, false, ODD},
    {{STEPPED, DENSE, DENSE}, FRESH, DENSE, 1, false, ODD},
    {{DENSE, DENSE, DENSE}, INTO, UNALIGNED, -1, false, ODD},
    {{DENSE, DENSE, DENSE}, FRESH, DENSE, -1, true, ODD},
    {{DENSE, SINGLE, STEPPED}, INTO, TRANSPOSED, -1, true, ODD},
    {{DENSE, DENSE, DENSE}, IN_PLACE, DENSE, -1, false, RUN},
    {{TRANSPOSED, ROW, SINGLE}, IN_PLACE, DENSE, -1, false, ODD},
    {{STEPPED, DENSE, COLUMN}, IN_PLACE, DENSE, -1, false, ODD},
    {{DENSE, ROW, COLUMN}, FRESH, DENSE, -1, false, VECTORS},
    {{COLUMN, DENSE, ROW}, FRESH, DENSE, -1, false, VECTORS},
    {{ROW, COLUMN, DENSE}, FRESH, DENSE, 2, false, VECTORS},
    {{DENSE, ROW, SINGLE}, IN_PLACE, DENSE, -1, false, VECTORS},
};

static void compare_elementwise(const mr_op *row, tally *sum) {
    bool selects = row->id == MR_OP_where || row->id == MR_OP_masked_fill;
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (size_t c = 0; c < sizeof shape_cases / sizeof *shape_cases; c++) {
            const shape_case *s = &shape_cases[c];
            if (s->number >= row->inputs) continue;
            static const int64_t rows_of[] = {[ODD] = ROWS, [RUN] = 0, [VECTORS] = VECTOR_ROWS};
            static const int64_t columns_of[] = {
                [ODD] = COLUMNS, [RUN] = LONG, [VECTORS] = VECTOR_COLUMNS};
            int64_t rows = rows_of[s->size], columns = columns_of[s->size];
            pair in[3] = {{0}}, out = {0};
            mr_call host = {.in_count = row->inputs}, device = host;
            for (int k = 0; k < row->inputs; k++) {
                mr_dtype own = selects && k == 0    ? MR_BOOL
                               : s->mixed && k == 1 ? (mr_dtype)((d + 1) % MR_DTYPE_COUNT)
                                                    : (mr_dtype)d;
                if (k == s->number) {
                    host.in[k].scalar = device.in[k].scalar =
                        (mr_scalar){.is_integer = true, .i = 3, .f = 3};
                    continue;
                }
                in[k] = make(own, s->in[k], rows, columns, false);
                host.in[k].tensor = in[k].host;
                device.in[k].tensor = in[k].device;
            }
            if (s->where == INTO) {
                out = make(row->result == MR_RESULT_BOOL ? (s->mixed ? MR_I32 : MR_BOOL)
                           : s->mixed                    ? MR_F64
                                                         : (mr_dtype)d,
                           s->out, rows, columns, true);
                if (row->result == MR_RESULT_FLOAT && d < MR_F32) {
                    drop_pair(out);
                    out = make(MR_F32, s->out, rows, columns, true);
                }
            } else if (s->where == IN_PLACE) {
                out = in[0];
                host.in_place = device.in_place = true;
            }
            host.out = out.host;
            device.out = out.device;
            char what[160];
            snprintf(what, sizeof what, "%s case %zu (%s, %s, %s)", mr_dtype_text((mr_dtype)d), c,
                     layout_text[s->in[0]], layout_text[s->in[1]], layout_text[s->in[2]]);
            if (s->where == IN_PLACE && !(row->forms & MR_FORM_INPLACE))
                host.in_count = -1; /* refused */
            /* f32 with f64 is computed in f64. */
            promise allowed = promise_of(row, s->mixed ? MR_F64 : (mr_dtype)d);
            run_both(row, host, device, allowed, sum, (mr_dtype)d, what);
            for (int k = 0; k < row->inputs; k++)
                if (in[k].host) drop_pair(in[k]);
            if (s->where == INTO) drop_pair(out);
        }
    }
}

static mr_scalar whole(int64_t i) {
    return (mr_scalar){.is_integer = true, .i = i, .f = (double)i};
}

static void compare_generator(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int how = DENSE; how <= STEPPED; how++) {
            for (int is_long = 0; is_long < 2; is_long++) {
                pair out = make((mr_dtype)d, (layout)how, is_long ? 0 : ROWS,
                                is_long ? LONG : COLUMNS, true);
                mr_call host = {.out = out.host, .in_place = true};
                host.in[0].scalar = whole(row->id == MR_OP_randint ? -5 : 0);
                host.in[1].scalar = whole(row->id == MR_OP_randint  ? 1000
                                          : row->id == MR_OP_arange ? 3
                                                                    : 1);
                if (row->id == MR_OP_bernoulli) host.in[0].scalar = (mr_scalar){.f = 0.3};
                if (row->id == MR_OP_fill) host.in[0].scalar = (mr_scalar){.f = 2.75};
                mr_call device = host;
                device.out = out.device;
                char what[160];
                snprintf(what, sizeof what, "%s %s%s", mr_dtype_text((mr_dtype)d), layout_text[how],
                         is_long ? " long" : "");
                run_both(row, host, device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d, what);
                drop_pair(out);
            }
        }
    }
}

typedef struct {
    int64_t rows, columns;
    layout how;
    int dim; /* 0: everything, else -1 or -2 */
} reduce_case;

static const reduce_case reduce_cases[] = {
    {ROWS, COLUMNS, DENSE, 0},
    {ROWS, COLUMNS, DENSE, -1},
    {ROWS, COLUMNS, DENSE, -2},
    {ROWS, COLUMNS, TRANSPOSED, 0},
    {ROWS, COLUMNS, TRANSPOSED, -1},
    {ROWS, COLUMNS, TRANSPOSED, -2},
    {ROWS, COLUMNS, STEPPED, 0},
    {ROWS, COLUMNS, STEPPED, -1},
    {ROWS, COLUMNS, UNALIGNED, -1},
    {ROWS, COLUMNS, ROW, -1},
    {ROWS, COLUMNS, COLUMN, -1},
    {ROWS, 64, DENSE, -1},
    {0, LONG, DENSE, 0},
    {0, LONG, UNALIGNED, 0},
    {0, LONG, STEPPED, 0},
    {3, 60000, DENSE, -1},
    {20000, 12, DENSE, -2},
    {20000, 12, DENSE, -1},
    {5000, 4, TRANSPOSED, -1},
    {3000, 1, DENSE, -1},
    {0, 1, DENSE, 0},
    /* Rows: of every length that has a form of its own, whole vectors or not, few and many. */
    {3000, 2, DENSE, -1},
    {5000, 7, DENSE, -1},
    {5001, 32, DENSE, -1},
    {1001, 64, DENSE, -1},
    {2001, 49, DENSE, -1},
    {700, 130, DENSE, -1},
    {700, 132, UNALIGNED, -1},
    {700, 130, STEPPED, -1},
    {2500, 128, DENSE, -1},
    {301, 1021, DENSE, -1},
    {301, 1024, DENSE, -1},
    {41, 1000, UNALIGNED, -1},
    {301, 1021, UNALIGNED, -1},
    {30, 3000, ROW, -1},
    {30, 50, ROW, -1},
    {9, 4096, DENSE, -1},
    {3, 70001, UNALIGNED, -1},
    {2, 300001, DENSE, -1},
    {0, 1 << 20, DENSE, 0},
    {5, 0, DENSE, -1},
    {0, 0, DENSE, 0},
    /* Columns: whole vectors or not, few and many. */
    {4099, 64, DENSE, -2},
    {4099, 65, DENSE, -2},
    {513, 64, UNALIGNED, -2},
    {100000, 2, DENSE, -2},
    {100000, 3, DENSE, -2},
    {100000, 16, DENSE, -2},
    {3, 20000, DENSE, -2},
    {1, 5000, DENSE, -2},
    {65, 4098, STEPPED, -2},
    /* Both at once: the order of dims in memory is not theirs. */
    {700, 1100, TRANSPOSED, 0},
    {300, 700, STEPPED, 0},
};

/* Three dims, dense; one or two are reduced: outputs in several runs, elements in several runs. */
typedef struct {
    int64_t depth, rows, columns;
    int dim, other_dim; /* from the last; 0: none */
} reduce_cube;

static const reduce_cube reduce_cubes[] = {
    {40, 100, 36, -2, 0}, {300, 17, 5, -2, 0},    {9, 1000, 3, -2, 0},   {31, 50, 64, -3, -1},
    {70, 33, 13, -3, -1}, {2000, 20, 49, -3, -1}, {3, 2, 40000, -3, -1}, {3, 2, 4001, -3, -1},
    {31, 50, 64, -3, -2}, {31, 50, 64, -2, -1},   {1000, 1, 64, -3, 0},
};

/* One reduction, both ways. */
static void reduce_both(const mr_op *row, tally *sum, mr_dtype dtype, pair in, int dim,
                        int other_dim, const char *what) {
    mr_call host = {.in = {{.tensor = in.host}},
                    .in_count = 1,
                    .dims_given = dim != 0,
                    .dims = {dim, other_dim},
                    .dim_count = (dim != 0) + (other_dim != 0)};
    if (row->rules & MR_RULE_CORRECTION) host.params.reduce.correction = 1;
    mr_call device = host;
    device.in[0].tensor = in.device;
    run_both(row, host, device, promise_of(row, dtype), sum, dtype, what);
}

static void compare_reduce(const mr_op *row, tally *sum) {
    char what[160];
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        /* A sum of numbers that cancel to nothing is what its order makes it. */
        bool exact = promise_of(row, (mr_dtype)d).norm == 0;
        for (int wild = 0; wild < (exact ? 2 : 1); wild++) {
            for (size_t c = 0; c < sizeof reduce_cases / sizeof *reduce_cases; c++) {
                const reduce_case *r = &reduce_cases[c];
                pair in = make((mr_dtype)d, r->how, r->rows, r->columns, !wild);
                snprintf(what, sizeof what, "%s %lldx%lld %s dim %d%s", mr_dtype_text((mr_dtype)d),
                         (long long)r->rows, (long long)r->columns, layout_text[r->how], r->dim,
                         wild ? " wild" : "");
                reduce_both(row, sum, (mr_dtype)d, in, r->dim, 0, what);
                drop_pair(in);
            }
            for (size_t c = 0; c < sizeof reduce_cubes / sizeof *reduce_cubes; c++) {
                const reduce_cube *r = &reduce_cubes[c];
                const int64_t shape[] = {r->depth, r->rows, r->columns};
                pair in, flat = make((mr_dtype)d, DENSE, 0, shape[0] * shape[1] * shape[2], !wild);
                ok(mr_tensor_reshape(&caller, flat.host, 3, shape, &in.host));
                ok(mr_tensor_reshape(&caller, flat.device, 3, shape, &in.device));
                drop_pair(flat);
                snprintf(what, sizeof what, "%s %lldx%lldx%lld dims %d %d%s",
                         mr_dtype_text((mr_dtype)d), (long long)r->depth, (long long)r->rows,
                         (long long)r->columns, r->dim, r->other_dim, wild ? " wild" : "");
                reduce_both(row, sum, (mr_dtype)d, in, r->dim, r->other_dim, what);
                drop_pair(in);
            }
        }
    }
}

typedef struct {
    int64_t rows, columns;
    layout in;
    enum { NEW, KEPT, SAME } where; /* KEPT: in a tensor that lies as `out` says */
    layout out;
    bool mixed; /* that tensor is of the other of f32 and f64 */
    int dim;
} softmax_case;

static const softmax_case softmax_cases[] = {
    {ROWS, COLUMNS, DENSE, NEW, DENSE, false, -1},
    {ROWS, COLUMNS, DENSE, NEW, DENSE, false, -2},
    {ROWS, COLUMNS, DENSE, SAME, DENSE, false, -1},
    {ROWS, COLUMNS, DENSE, SAME, DENSE, false, -2},
    {ROWS, COLUMNS, UNALIGNED, NEW, DENSE, false, -1},
    {ROWS, COLUMNS, TRANSPOSED, NEW, DENSE, false, -1},
    {ROWS, COLUMNS, TRANSPOSED, NEW, DENSE, false, -2},
    {ROWS, COLUMNS, TRANSPOSED, SAME, DENSE, false, -1},
    {ROWS, COLUMNS, STEPPED, KEPT, STEPPED, false, -1},
    {ROWS, COLUMNS, STEPPED, KEPT, TRANSPOSED, true, -2},
    {ROWS, COLUMNS, DENSE, KEPT, TRANSPOSED, false, -1},
    {ROWS, COLUMNS, DENSE, KEPT, DENSE, true, -1},
    {ROWS, COLUMNS, ROW, NEW, DENSE, false, -1},
    {ROWS, COLUMNS, ROW, NEW, DENSE, false, -2},
    {ROWS, COLUMNS, COLUMN, NEW, DENSE, false, -1},
    {1000, 8, DENSE, NEW, DENSE, false, -1},
    {ROWS, 64, DENSE, NEW, DENSE, false, -1},
    {ROWS, 1024, DENSE, NEW, DENSE, false, -1},
    {ROWS, 1024, DENSE, SAME, DENSE, false, -1},
    {ROWS, 1025, DENSE, NEW, DENSE, false, -1},
    {ROWS, 8192, DENSE, NEW, DENSE, false, -1},
    {1500, 8196, DENSE, NEW, DENSE, false, -1}, /* not held, not cut */
    {3, 60000, DENSE, NEW, DENSE, false, -1},
    {3, 60001, DENSE, NEW, DENSE, false, -1},
    {3, 60001, STEPPED, SAME, DENSE, false, -1},
    {300, 40, DENSE, NEW, DENSE, false, -2},
    {20000, 12, DENSE, NEW, DENSE, false, -2},
    {20000, 12, DENSE, SAME, DENSE, false, -2},
    {3000, 1, DENSE, NEW, DENSE, false, -1},
    {0, LONG, DENSE, NEW, DENSE, false, -1},
    {0, LONG, STEPPED, KEPT, UNALIGNED, true, -1},
    {0, 1, DENSE, NEW, DENSE, false, -1},
};

static void compare_softmax(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int wild = 0; wild < 2; wild++) {
            for (size_t c = 0; c < sizeof softmax_cases / sizeof *softmax_cases; c++) {
                const softmax_case *s = &softmax_cases[c];
                pair in = make((mr_dtype)d, s->in, s->rows, s->columns, !wild), out = {0};
                mr_call host = {.in = {{.tensor = in.host}},
                                .in_count = 1,
                                .dims_given = true,
                                .dims = {s->dim},
                                .dim_count = 1};
                if (s->where == KEPT)
                    out = make((d == MR_F64) != s->mixed ? MR_F64 : MR_F32, s->out, s->rows,
                               s->columns, true);
                mr_call device = host;
                device.in[0].tensor = in.device;
                host.out = s->where == SAME ? in.host : out.host;
                device.out = s->where == SAME ? in.device : out.device;
                char what[160];
                snprintf(what, sizeof what, "%s case %zu: %lldx%lld %s dim %d%s",
                         mr_dtype_text((mr_dtype)d), c, (long long)s->rows, (long long)s->columns,
                         layout_text[s->in], s->dim, wild ? " wild" : "");
                run_both(row, host, device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d, what);
                drop_pair(in);
                if (s->where == KEPT) drop_pair(out);
            }
        }
    }
}

typedef struct {
    int a_dims, b_dims;
    int64_t batch_a, batch_b, m, k, n;
    layout a, b;
} product_case;

static const product_case product_cases[] = {
    {2, 2, 0, 0, 37, 53, 29, DENSE, DENSE},       {2, 2, 0, 0, 37, 53, 29, TRANSPOSED, DENSE},
    {2, 2, 0, 0, 37, 53, 29, DENSE, TRANSPOSED},  {2, 2, 0, 0, 37, 53, 29, TRANSPOSED, TRANSPOSED},
    {2, 2, 0, 0, 37, 53, 29, STEPPED, UNALIGNED}, {2, 2, 0, 0, 37, 53, 29, ROW, COLUMN},
    {2, 2, 0, 0, 128, 256, 64, DENSE, DENSE},     {2, 2, 0, 0, 1, 300, 70, DENSE, DENSE},
    {2, 2, 0, 0, 70, 300, 1, DENSE, DENSE},       {2, 2, 0, 0, 5, 1, 7, DENSE, DENSE},
    {2, 1, 0, 0, 37, 53, 1, DENSE, DENSE},        {2, 1, 0, 0, 37, 53, 1, TRANSPOSED, STEPPED},
    {1, 2, 0, 0, 1, 53, 29, DENSE, DENSE},        {1, 2, 0, 0, 1, 53, 29, STEPPED, TRANSPOSED},
    {1, 1, 0, 0, 1, 1000, 1, DENSE, STEPPED},     {3, 3, 4, 4, 17, 23, 19, DENSE, DENSE},
    {3, 2, 4, 0, 17, 23, 19, DENSE, DENSE},       {3, 2, 4, 0, 17, 23, 19, DENSE, TRANSPOSED},
    {2, 3, 0, 4, 17, 23, 19, DENSE, DENSE},       {3, 1, 4, 0, 17, 23, 1, DENSE, DENSE},
    {3, 3, 1, 4, 17, 23, 19, DENSE, DENSE},       {3, 3, 4, 4, 1, 23, 19, DENSE, DENSE},
};

/* As many dims as asked for; a batch is laid out densely. */
static pair make_matrix(mr_dtype dtype, int dims, int64_t batch, int64_t rows, int64_t columns,
                        layout how) {
    if (dims == 1) return make(dtype, how, 0, rows == 1 ? columns : rows, true);
    if (dims == 2) return make(dtype, how, rows, columns, true);
    pair flat = make(dtype, DENSE, 0, batch * rows * columns, true), p;
    const int64_t shape[] = {batch, rows, columns};
    ok(mr_tensor_reshape(&caller, flat.host, 3, shape, &p.host));
    ok(mr_tensor_reshape(&caller, flat.device, 3, shape, &p.device));
    drop_pair(flat);
    return p;
}

static int64_t times(int64_t size, int64_t factor) {
    return size > 1 ? size * factor : size;
}

/* The rounding of a single sum is in proportion to its terms, not to what is left of them. */
static double size_of_terms(const mr_tensor *a, const mr_tensor *b) {
    double size = 0;
    for (int64_t i = 0; a->ndim == 1 && b->ndim == 1 && i < a->numel && i < b->numel; i++)
        size += fabs(element(a, i * a->stride[0]).f * element(b, i * b->stride[0]).f);
    return size;
}

/* The cases as they are, for the kernel of small products, and larger, for cuBLAS. */
static void compare_matmul(const mr_op *row, tally *sum) {
    enum { CASES = sizeof product_cases / sizeof *product_cases, LARGER = 7 };
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (size_t c = 0; c < 2 * CASES; c++) {
            int64_t factor = c < CASES ? 1 : LARGER;
            product_case scaled = product_cases[c % CASES], *s = &scaled;
            s->m = times(s->m, factor), s->k = times(s->k, factor), s->n = times(s->n, factor);
            pair a = make_matrix((mr_dtype)d, s->a_dims, s->batch_a, s->m, s->k, s->a);
            pair b = make_matrix((mr_dtype)d, s->b_dims, s->batch_b, s->k, s->n, s->b);
            mr_call host = {.in = {{.tensor = a.host}, {.tensor = b.host}}, .in_count = 2};
            mr_call device = {.in = {{.tensor = a.device}, {.tensor = b.device}}, .in_count = 2};
            char what[160];
            snprintf(what, sizeof what, "%s case %zu (%s, %s)", mr_dtype_text((mr_dtype)d), c,
                     layout_text[s->a], layout_text[s->b]);
            promise allowed = promise_of(row, (mr_dtype)d);
            if (row->id == MR_OP_dot) allowed.terms = size_of_terms(a.host, b.host);
            run_both(row, host, device, allowed, sum, (mr_dtype)d, what);
            drop_pair(a);
            drop_pair(b);
        }
    }
}

static void compare_copy(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int to = 0; to < MR_DTYPE_COUNT; to++) {
            for (int from_how = DENSE; from_how < LAYOUTS; from_how++) {
                for (int to_how = DENSE; to_how <= STEPPED; to_how++) {
                    for (int is_long = 0; is_long < 3;
                         is_long++) { /* the last: tiles, whole and partial */
                        int64_t rows = is_long == 2 ? 200
                                       : is_long    ? 0
                                                    : ROWS,
                                columns = is_long == 2 ? 136
                                          : is_long    ? LONG
                                                       : COLUMNS;
                        if (is_long && from_how > STEPPED) continue;
                        if (is_long == 2 && d != to) continue;
                        pair in = make((mr_dtype)d, (layout)from_how, rows, columns, false);
                        pair out = make((mr_dtype)to, (layout)to_how, rows, columns, true);
                        ok(mr_copy(&caller, out.host, in.host, NULL, false));
                        char what[160];
                        snprintf(what, sizeof what, "%s %s to %s %s%s", mr_dtype_text((mr_dtype)d),
                                 layout_text[from_how], mr_dtype_text((mr_dtype)to),
                                 layout_text[to_how], is_long ? " long" : "");
                        mr_status failed = mr_copy(&caller, out.device, in.device, NULL, false);
                        if (failed) {
                            sum->cases++;
                            if (!sum->failed++)
                                snprintf(sum->first, sizeof sum->first, "%s: %s", what,
                                         failed->message);
                            mr_error_destroy(failed);
                        } else {
                            compare(out.host, out.device, promise_of(row, (mr_dtype)d), sum,
                                    (mr_dtype)d, what);
                        }
                        drop_pair(in);
                        drop_pair(out);
                    }
                }
            }
        }
    }
}

static void compare_memset(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        pair p = make((mr_dtype)d, DENSE, ROWS, COLUMNS, true);
        memset(mr_tensor_data(p.host), 1, (size_t)p.host->numel * mr_dtype_size((mr_dtype)d));
        ok(mr_memset(&caller, p.device, 1, NULL, false));
        compare(p.host, p.device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d,
                mr_dtype_text((mr_dtype)d));
        drop_pair(p);
    }
}

/* mr.op: the CPU body on host tensors as its operands, mr_abstract_op on device ones. */
static void compare_abstract(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int how = DENSE; how <= STEPPED; how++) {
            for (int blocks = 0; blocks < 4; blocks += 3) {
                pair w = make((mr_dtype)d, (layout)how, ROWS, COLUMNS, true),
                     w2 = make(MR_F32, DENSE, 0, 700, true);
                pair r = make(MR_I32, DENSE, 0, 5000, true);
                mr_command *command;
                ok(mr_command_create(&caller, MR_COMMAND_OP, NULL, "k", 3, &command));
                mr_command_set_operand(command, 0, w.host, MR_READ | MR_WRITE);
                mr_command_set_operand(command, 1, w2.host, MR_WRITE);
                mr_command_set_operand(command, 2, r.host, MR_READ);
                command->u.op.row = row;
                mr_params params = {0};
                params.abstract.mix =
                    (14695981039346656037u ^ 'k') * 1099511628211u; /* FNV-1a of "k" */
                mr_params_set(command, &params);
                ok(mr_op_run_now(command));
                mr_command_release(command);
                mr_tensor *reads[] = {w.device, r.device}, *writes[] = {w.device, w2.device};
                mr_abstract op = {.name = "k",
                                  .reads = reads,
                                  .writes = writes,
                                  .read_count = 2,
                                  .write_count = 2,
                                  .blocks = (uint32_t)blocks,
                                  .duration_ns = 20000};
                ok(mr_abstract_op(&caller, &op));
                char what[160];
                snprintf(what, sizeof what, "%s %s %d blocks", mr_dtype_text((mr_dtype)d),
                         layout_text[how], blocks);
                compare(w.host, w.device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d, what);
                compare(w2.host, w2.device, promise_of(row, (mr_dtype)d), sum, MR_F32, what);
                drop_pair(w);
                drop_pair(w2);
                drop_pair(r);
            }
        }
    }
}

/* ------------------------------------------------------------------------- indices, order */

/* Positions from 1 to `size`, on both sides. `rows` 0: one dim. */
static pair make_index(mr_dtype dtype, layout how, int64_t rows, int64_t columns, int64_t size) {
    pair p = make(MR_I64, DENSE, 0, (rows ? rows : 1) * columns * 2, true), other;
    int64_t *values = mr_tensor_data(p.host);
    for (int64_t i = 0; i < p.host->numel; i++) values[i] = 1 + (int64_t)(noise() % (uint64_t)size);
    other = make(dtype, how, rows, columns, true);
    const mr_placement plain = {.kind = MR_MEMORY_PAGEABLE};
    mr_tensor *dense, *few;
    ok(mr_create_empty(&caller, &plain, dtype, other.host->ndim, other.host->shape, &dense));
    ok(mr_tensor_narrow(&caller, p.host, 0, 0, dense->numel, 1, &few));
    mr_tensor *shaped;
    ok(mr_tensor_reshape(&caller, few, dense->ndim, dense->shape, &shaped));
    ok(mr_copy(&caller, other.host, shaped, NULL, false));
    ok(mr_copy(&caller, other.device, shaped, NULL, false));
    drop(shaped), drop(few), drop(dense);
    drop_pair(p);
    return other;
}

typedef struct {
    int64_t rows, columns; /* of x; rows 0: one dim */
    layout x, index, source;
    int64_t index_rows, index_columns;
    int dim; /* from the last */
} index_case;

/* Few and many lines, short and long, so that each way of the launcher is taken. */
static const index_case index_cases[] = {
    {ROWS, COLUMNS, DENSE, DENSE, DENSE, ROWS, COLUMNS, -1},
    {ROWS, COLUMNS, DENSE, DENSE, DENSE, ROWS, COLUMNS, -2},
    {ROWS, COLUMNS, TRANSPOSED, DENSE, STEPPED, ROWS, COLUMNS, -1},
    {ROWS, COLUMNS, STEPPED, TRANSPOSED, TRANSPOSED, ROWS, COLUMNS, -2},
    {ROWS, COLUMNS, UNALIGNED, STEPPED, UNALIGNED, 12, COLUMNS, -1},
    {ROWS, COLUMNS, DENSE, DENSE, DENSE, 700, COLUMNS, -2},
    {ROWS, COLUMNS, STEPPED, STEPPED, TRANSPOSED, ROWS, 900, -1},
    {40, 64, DENSE, DENSE, DENSE, 3000, 64, -2},
    {0, 100, DENSE, DENSE, DENSE, 0, 20000, -1},
    {0, 3, DENSE, DENSE, DENSE, 0, 9000, -1},
    {0, LONG, STEPPED, DENSE, DENSE, 0, 9000, -1},
    /* Many additions: into few and many elements, lines, elements that lie apart, more bins than one pass makes. */
    {0, 50000, STEPPED, DENSE, DENSE, 0, 40000, -1},
    {0, 5000, UNALIGNED, STEPPED, STEPPED, 0, 20000, -1},
    {60, 300, TRANSPOSED, DENSE, DENSE, 60, 500, -1},
    {0, 600001, DENSE, DENSE, DENSE, 0, 150100, -1},
    {0, 1, DENSE, DENSE, DENSE, 0, 17000, -1},
};

static void index_both(const mr_op *row, tally *sum, mr_dtype dtype, const index_case *c,
                       mr_dtype index_dtype, const char *what) {
    bool places = (row->forms & MR_FORM_INPLACE) != 0;
    bool flat = row->id == MR_OP_index_select || row->id == MR_OP_index_add;
    bool rows = row->id == MR_OP_embedding;
    int64_t size = c->dim == -1 ? c->columns : c->rows,
            length = c->dim == -1 ? c->index_columns : c->index_rows;
    pair x = make(dtype, c->x, c->rows, c->columns, false), source = {0};
    pair index = flat || rows
                     ? make_index(index_dtype, c->index, 0, length, size)
                     : make_index(index_dtype, c->index, c->index_rows, c->index_columns, size);
    if (places) {
        bool down = c->dim == -2;
        int64_t own_rows = !flat  ? c->index_rows
                           : down ? length
                                  : c->rows,
                own_columns = !flat  ? c->index_columns
                              : down ? c->columns
                                     : length;
        source = make(dtype, c->source, own_rows, own_columns, true);
    }
    mr_call host = {.in = {{.tensor = x.host}, {.tensor = index.host}, {.tensor = source.host}},
                    .in_count = row->inputs,
                    .dims = {c->dim},
                    .dim_count = 1,
                    .in_place = places};
    if (places) host.out = x.host;
    mr_call device = host;
    device.in[0].tensor = x.device;
    device.in[1].tensor = index.device;
    device.in[2].tensor = source.device;
    if (places) device.out = x.device;
    run_both(row, host, device, promise_of(row, dtype), sum, dtype, what);
    drop_pair(x), drop_pair(index);
    if (places) drop_pair(source);
}

static void compare_index(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (size_t c = 0; c < sizeof index_cases / sizeof *index_cases; c++) {
            char what[160];
            snprintf(what, sizeof what, "%s case %zu", mr_dtype_text((mr_dtype)d), c);
            if (row->id == MR_OP_embedding && (c > 7 || index_cases[c].dim != -2)) continue;
            index_both(row, sum, (mr_dtype)d, &index_cases[c], c % 2 ? MR_I32 : MR_I64, what);
        }
    }
}

typedef struct {
    int64_t rows, columns;
    layout how;
    int dim; /* from the last */
} line_case;

static const line_case line_cases[] = {
    {ROWS, COLUMNS, DENSE, -1},   {ROWS, COLUMNS, DENSE, -2},     {ROWS, COLUMNS, TRANSPOSED, -1},
    {ROWS, COLUMNS, STEPPED, -2}, {ROWS, COLUMNS, UNALIGNED, -1}, {ROWS, COLUMNS, ROW, -1},
    {ROWS, COLUMNS, COLUMN, -1},  {3, 9001, DENSE, -1},           {9, 9001, DENSE, -2},
    {3, 5000, STEPPED, -1},       {0, LONG, DENSE, -1},           {0, 1, DENSE, -1},
    {0, 140003, UNALIGNED, -1},
};
enum { LINE_CASES = sizeof line_cases / sizeof *line_cases };

/* Lines of so many tiles that a kernel of its own makes prefix sums of their totals (kernels/scan.cu). */
static void compare_long_scan(const mr_op *row, tally *sum) {
    static const mr_dtype dtypes[] = {MR_U8, MR_F32};
    int64_t columns = (MR_CUDA_ADDED_UP + 3) * (int64_t)MR_CUDA_SCAN_TILE - 5;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        if (row->id == MR_OP_cumprod && dtypes[k] == MR_F32) continue; /* it overflows */
        pair in = make(dtypes[k], DENSE, 2, columns, dtypes[k] == MR_F32);
        mr_call host = {.in = {{.tensor = in.host}},
                        .in_count = 1,
                        .dims_given = true,
                        .dims = {-1},
                        .dim_count = 1},
                device = host;
        device.in[0].tensor = in.device;
        run_both(row, host, device, promise_of(row, dtypes[k]), sum, dtypes[k], "long lines");
        drop_pair(in);
    }
}

/* cumsum, cumprod, flip, roll, tril, triu. */
static void compare_lines(const mr_op *row, tally *sum) {
    if (row->family->id == MR_FAMILY_SCAN) compare_long_scan(row, sum);
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int c = 0; c < LINE_CASES; c++) {
            const line_case *l = &line_cases[c];
            bool exact = promise_of(row, (mr_dtype)d).norm == 0;
            /* Where long products overflow, rounding decides at which element. */
            if (row->id == MR_OP_cumprod && d >= MR_F32 && l->columns > 1000) continue;
            pair in = make((mr_dtype)d, l->how, l->rows, l->columns, !exact);
            mr_call host = {.in = {{.tensor = in.host}},
                            .in_count = 1,
                            .dims_given = true,
                            .dims = {l->dim},
                            .dim_count = 1};
            bool band = row->id == MR_OP_tril || row->id == MR_OP_triu;
            if (band) host.params.move.diagonal = c % 5 - 2;
            if (row->id == MR_OP_roll) host.params.move.shift = c * 7 - 20;
            mr_call device = host;
            device.in[0].tensor = in.device;
            char what[160];
            snprintf(what, sizeof what, "%s case %d", mr_dtype_text((mr_dtype)d), c);
            run_both(row, host, device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d, what);
            drop_pair(in);
        }
    }
}

static void compare_sort(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int c = 0; c < 2 * LINE_CASES; c++) {
            const line_case *l = &line_cases[c / 2];
            pair in = make((mr_dtype)d, l->how, l->rows, l->columns, false);
            mr_sort_call host = {.in = in.host, .dim = l->dim, .taken = -1, .descending = c % 2};
            int64_t length = l->dim == -1 ? l->columns : l->rows;
            if (row->id == MR_OP_topk) host.taken = c % 3 ? length / (c % 3 * 7) : length / 2;
            mr_sort_call device = host;
            device.in = in.device;
            pair values = {0}, order = {0};
            bool both = row->id != MR_OP_argsort;
            char what[160];
            snprintf(what, sizeof what, "%s case %d", mr_dtype_text((mr_dtype)d), c);
            ok(mr_sort(&caller, row, &host, both ? &values.host : NULL, &order.host));
            ok(mr_sort(&caller, row, &device, both ? &values.device : NULL, &order.device));
            if (both)
                compare(values.host, values.device, promise_of(row, (mr_dtype)d), sum, (mr_dtype)d,
                        what);
            compare(order.host, order.device, (promise){0}, sum, (mr_dtype)d, what);
            if (both) drop_pair(values);
            drop_pair(order), drop_pair(in);
        }
    }
}

static void compare_compact(const mr_op *row, tally *sum) {
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int c = 0; c < LINE_CASES; c++) {
            const line_case *l = &line_cases[c];
            pair in = make((mr_dtype)d, l->how, l->rows, l->columns, false), out;
            pair mask = make(MR_BOOL, c % 2 ? ROW : DENSE, l->rows, l->columns, false);
            char what[160];
            snprintf(what, sizeof what, "%s case %d", mr_dtype_text((mr_dtype)d), c);
            if (row->id == MR_OP_nonzero) {
                ok(mr_nonzero(&caller, in.host, &out.host));
                ok(mr_nonzero(&caller, in.device, &out.device));
            } else {
                ok(mr_masked_select(&caller, in.host, mask.host, &out.host));
                ok(mr_masked_select(&caller, in.device, mask.device, &out.device));
            }
            compare(out.host, out.device, (promise){0}, sum, (mr_dtype)d, what);
            drop_pair(out), drop_pair(mask), drop_pair(in);
        }
    }
}

/* ------------------------------------------------------------------------- the table */

/* mr.op; the other abstract row, mr.spin, writes nothing. */
static void compare_op(const mr_op *row, tally *sum) {
    if (row->id == MR_OP_op) compare_abstract(row, sum);
}

/* More parameters than one launch takes, of sizes around that of a block, one of them without elements. */
static void compare_steps(const mr_op *row, mr_dtype dtype, uint32_t flags, tally *sum) {
    enum { PARAMETERS = 70, MOST = 4 };
    static const int64_t sizes[] = {1, 7, 2048, 2049, 5000, 0, 4096};
    static pair pairs[PARAMETERS * MOST];
    static mr_tensor *hosts[PARAMETERS * MOST], *devices[PARAMETERS * MOST];
    int each = 2 + mr_step_states(row);
    mr_step step = {.number = {0.01, 0.9, 0.875, 0.125, 0.75, 0.25, 0.5, 1e-8},
                    .flags = flags,
                    .parameters = PARAMETERS};
    for (int i = 0; i < PARAMETERS * each; i++) {
        int64_t size = sizes[i / each % (int)(sizeof sizes / sizeof *sizes)];
        pairs[i] = make(dtype, DENSE, 0, size, true);
        hosts[i] = pairs[i].host;
        devices[i] = pairs[i].device;
    }
    ok(mr_optimise(&caller, row, &step, hosts));
    ok(mr_optimise(&caller, row, &step, devices));
    for (int i = 0; i < PARAMETERS * each; i++) {
        char what[80];
        snprintf(what, sizeof what, "%s flags %u tensor %d", mr_dtype_text(dtype), flags, i);
        compare(pairs[i].host, pairs[i].device, promise_of(row, dtype), sum, dtype, what);
        drop_pair(pairs[i]);
    }
}

static void compare_optimise(const mr_op *row, tally *sum) {
    static const uint32_t flags[] = {0, MR_STEP_DECAYS, MR_STEP_DECAYS | MR_STEP_DECOUPLED,
                                     MR_STEP_NESTEROV | MR_STEP_DECAYS, MR_STEP_FIRST};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        compare_steps(row, MR_F32, flags[i], sum);
        compare_steps(row, MR_F64, flags[i], sum);
    }
}

/* The user's kernels are compared by tests/gpu/kernels.lua, operations of networks by tests/gpu/network.lua. */
static void compare_nothing(const mr_op *row, tally *sum) {
    (void)row, (void)sum;
}

static void (*const compare_row[])(const mr_op *row, tally *sum) = {
    [MR_FAMILY_UNARY] = compare_elementwise,   [MR_FAMILY_BINARY] = compare_elementwise,
    [MR_FAMILY_COMPARE] = compare_elementwise, [MR_FAMILY_TERNARY] = compare_elementwise,
    [MR_FAMILY_FILL] = compare_generator,      [MR_FAMILY_RANDOM] = compare_generator,
    [MR_FAMILY_REDUCE] = compare_reduce,       [MR_FAMILY_SOFTMAX] = compare_softmax,
    [MR_FAMILY_MATMUL] = compare_matmul,       [MR_FAMILY_COPY] = compare_copy,
    [MR_FAMILY_BYTES] = compare_memset,        [MR_FAMILY_ABSTRACT] = compare_op,
    [MR_FAMILY_POOL] = compare_nothing,        [MR_FAMILY_LOSS] = compare_nothing,
    [MR_FAMILY_OPTIMISE] = compare_optimise,   [MR_FAMILY_CONV] = compare_nothing,
    [MR_FAMILY_SCAN] = compare_lines,          [MR_FAMILY_SORT] = compare_sort,
    [MR_FAMILY_MOVE] = compare_lines,          [MR_FAMILY_COMPACT] = compare_compact,
    [MR_FAMILY_INDEX] = compare_index,         [MR_FAMILY_KERNEL] = compare_nothing,
    [MR_FAMILY_COLLECTIVE] = compare_nothing, /* of virtual GPUs only */
};
_Static_assert(sizeof compare_row / sizeof *compare_row == MR_FAMILY_COUNT,
               "a comparison a family");

int main(int argc, char **argv) {
    const mr_machine_options options = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    ok(mr_machine_open(&mr_cuda_backend, &options, &machine));
    caller = (mr_caller){.machine = machine};
    printf("%s\n%-12s %8s %8s  %-24s %8s\n", machine->devices[0]->properties.name, "row", "cases",
           "failed", "dtypes that failed", "ulps");
    int failed = 0, cases = 0;
    for (int i = MR_OP_FIRST; i < MR_OP_COUNT; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted = wanted || strcmp(argv[k], mr_ops[i].name) == 0;
        if (!wanted) continue;
        tally sum = {0};
        noise_state = (uint64_t)i;
        compare_row[mr_ops[i].family->id](&mr_ops[i], &sum);
        char dtypes[64] = "";
        for (int d = 0; d < MR_DTYPE_COUNT; d++)
            if (sum.failed_dtype[d])
                snprintf(dtypes + strlen(dtypes), sizeof dtypes - strlen(dtypes), "%s ",
                         mr_dtype_text((mr_dtype)d));
        printf("%-12s %8d %8d  %-24s %8.3g  %s\n", mr_ops[i].name, sum.cases, sum.failed, dtypes,
               sum.worst, sum.first);
        failed += sum.failed;
        cases += sum.cases;
    }
    printf("%d cases, %d failed\n", cases, failed);
    mr_machine_close(machine);
    return failed > 0;
}
