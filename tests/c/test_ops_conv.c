/* Convolutions and their gradients against the seven loops of the definition, in double: random shapes with every
 * option, strided and empty inputs. On the device they run in random slices, which must give the host's bits. */
#include "fake_backend.h"

/* One problem: the sizes and the window. */
typedef struct {
    int64_t images, channels, outputs, size[2];
    mr_window window;
} problem;

static int64_t positions(const problem *p, int d) {
    const mr_window *w = &p->window;
    return (p->size[d] + 2 * w->padding[d] - w->dilation[d] * (w->size[d] - 1) - 1) / w->stride[d] +
           1;
}

/* Dense values in double, row-major. */
typedef struct {
    int64_t shape[4];
    double *value;
} array;

static array zeros(int64_t a, int64_t b, int64_t c, int64_t d) {
    array x = {{a, b, c, d}, calloc((size_t)(a * b * c * d) + 1, sizeof(double))};
    assert_non_null(x.value);
    return x;
}

static double *at(const array *x, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t *s = x->shape;
    return &x->value[((a * s[1] + b) * s[2] + c) * s[3] + d];
}

static array values_of(const mr_tensor *t) {
    array x = zeros(t->shape[0], t->shape[1], t->shape[2], t->shape[3]);
    for (int64_t i = 0; i < t->numel; i++) x.value[i] = f64_at(t, i);
    return x;
}

/* Calls `visit` for each product of the definition: places in x, w and the result. */
typedef struct {
    array x, w, y;
    array magnitude; /* of the sum's terms, for the tolerance */
} sums;

typedef void (*visitor)(sums *s, double *x, double *w, double *y, double *magnitude);

static void each_product(const problem *p, sums *s, const array *like, visitor visit) {
    const mr_window *k = &p->window;
    int64_t per = p->channels / k->groups, made = p->outputs / k->groups;
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t o = 0; o < p->outputs; o++)
            for (int64_t y = 0; y < positions(p, 0); y++)
                for (int64_t x = 0; x < positions(p, 1); x++)
                    for (int64_t c = 0; c < per; c++)
                        for (int64_t a = 0; a < k->size[0]; a++)
                            for (int64_t b = 0; b < k->size[1]; b++) {
                                int64_t v = y * k->stride[0] + a * k->dilation[0] - k->padding[0];
                                int64_t u = x * k->stride[1] + b * k->dilation[1] - k->padding[1];
                                if (v < 0 || v >= p->size[0] || u < 0 || u >= p->size[1]) continue;
                                int64_t in = o / made * per + c;
                                double *px = at(&s->x, n, in, v, u), *pw = at(&s->w, o, c, a, b),
                                       *py = at(&s->y, n, o, y, x);
                                double *own = like == &s->y ? py : like == &s->x ? px : pw;
                                visit(s, px, pw, py, s->magnitude.value + (own - like->value));
                            }
}

static void add_forward(sums *s, double *x, double *w, double *y, double *magnitude) {
    (void)s;
    *y += *x * *w;
    *magnitude += fabs(*x * *w);
}
static void add_input(sums *s, double *x, double *w, double *y, double *magnitude) {
    (void)s;
    *x += *y * *w;
    *magnitude += fabs(*y * *w);
}
static void add_weight(sums *s, double *x, double *w, double *y, double *magnitude) {
    (void)s;
    *w += *y * *x;
    *magnitude += fabs(*y * *x);
}

static void drop_sums(sums *s) {
    free(s->x.value), free(s->w.value), free(s->y.value), free(s->magnitude.value);
}

static void check_against(const mr_tensor *got, const array *expected, const array *magnitude) {
    double tolerance = got->dtype == MR_F32 ? 2e-6 : 1e-14;
    for (int d = 0; d < 4; d++) assert_int_equal(got->shape[d], expected->shape[d]);
    for (int64_t i = 0; i < got->numel; i++)
        if (fabs(f64_at(got, i) - expected->value[i]) > tolerance * (magnitude->value[i] + 1e-3))
            fail_msg("element %lld is %.9g, not %.9g", (long long)i, f64_at(got, i),
                     expected->value[i]);
}

/* The same call on device tensors, in slices: the same bits. */
static void check_slices(const char *row, const mr_call *call, const mr_tensor *host) {
    mr_call device = *call;
    for (int i = 0; i < call->in_count; i++)
        device.in[i].tensor = copy_in(call->in[i].tensor, MR_MEMORY_DEVICE);
    mr_tensor *out = run_call(row, &device);
    if (!same_bits(host, out)) fail_msg("%s: slices change the result", row);
    drop(out);
    for (int i = 0; i < call->in_count; i++) drop(device.in[i].tensor);
}

static void fill_tame(mr_tensor *t) {
    for (int64_t i = 0; i < t->numel; i++) set(t, i, real((double)random_below(2001) / 1000 - 1));
}

static mr_tensor *make_filled(mr_dtype dtype, layout how, int64_t a, int64_t b, int64_t c,
                              int64_t d) {
    const int64_t shape[4] = {a, b, c, d};
    mr_tensor *t = make_laid_out(MR_MEMORY_PAGEABLE, dtype, 4, shape, how);
    fill_tame(t);
    return t;
}

static layout any_layout(void) {
    return (layout)random_below(LAYOUTS);
}

static array shape_of_w(const problem *p) {
    const mr_window *k = &p->window;
    return zeros(p->outputs, p->channels / k->groups, k->size[0], k->size[1]);
}

static void check_forward(const problem *p, mr_dtype dtype, bool has_bias) {
    const mr_window *k = &p->window;
    mr_tensor *x = make_filled(dtype, any_layout(), p->images, p->channels, p->size[0], p->size[1]);
    mr_tensor *w = make_filled(dtype, any_layout(), p->outputs, p->channels / k->groups, k->size[0],
                               k->size[1]);
    mr_tensor *bias = make_laid_out(MR_MEMORY_PAGEABLE, dtype, SHAPE(p->outputs), any_layout());
    fill_tame(bias);
    mr_call call = {.in = {{.tensor = x}, {.tensor = w}, {.tensor = bias}},
                    .in_count = 2 + has_bias,
                    .params.conv.window = *k};
    mr_tensor *out = run_call("conv2d", &call);
    sums s = {values_of(x), values_of(w),
              zeros(p->images, p->outputs, positions(p, 0), positions(p, 1)),
              zeros(p->images, p->outputs, positions(p, 0), positions(p, 1))};
    each_product(p, &s, &s.y, add_forward);
    int64_t plane = positions(p, 0) * positions(p, 1);
    for (int64_t i = 0; has_bias && i < out->numel; i++)
        s.y.value[i] += f64_at(bias, i / plane % p->outputs);
    for (int64_t i = 0; i < out->numel; i++) s.magnitude.value[i] += 1;
    check_against(out, &s.y, &s.magnitude);
    check_slices("conv2d", &call, out);
    drop_sums(&s);
    drop(out), drop(x), drop(w), drop(bias);
}

static void check_gradients(const problem *p, mr_dtype dtype) {
    const mr_window *k = &p->window;
    mr_tensor *x = make_filled(dtype, any_layout(), p->images, p->channels, p->size[0], p->size[1]);
    mr_tensor *w = make_filled(dtype, any_layout(), p->outputs, p->channels / k->groups, k->size[0],
                               k->size[1]);
    mr_tensor *g =
        make_filled(dtype, any_layout(), p->images, p->outputs, positions(p, 0), positions(p, 1));
    mr_call call = {.in = {{.tensor = g}, {.tensor = w}},
                    .in_count = 2,
                    .params.conv.window = *k,
                    .dim_count = 4};
    for (int d = 0; d < 4; d++) call.dims[d] = (int)x->shape[d];
    mr_tensor *of_x = run_call("conv2d_input", &call);
    sums s = {zeros(p->images, p->channels, p->size[0], p->size[1]), values_of(w), values_of(g),
              zeros(p->images, p->channels, p->size[0], p->size[1])};
    each_product(p, &s, &s.x, add_input);
    check_against(of_x, &s.x, &s.magnitude);
    check_slices("conv2d_input", &call, of_x);
    drop_sums(&s);

    call.in[1].tensor = x;
    for (int d = 0; d < 4; d++) call.dims[d] = (int)w->shape[d];
    mr_tensor *of_w = run_call("conv2d_weight", &call);
    s = (sums){values_of(x), shape_of_w(p), values_of(g), shape_of_w(p)};
    each_product(p, &s, &s.w, add_weight);
    check_against(of_w, &s.w, &s.magnitude);
    check_slices("conv2d_weight", &call, of_w);
    drop_sums(&s);
    drop(of_x), drop(of_w), drop(x), drop(w), drop(g);
}

static const problem chosen[] = {
    {64, 3, 8, {6, 6}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},    /* tiles across images */
    {2, 40, 17, {16, 16}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}}, /* several panels of taps */
    {1, 1, 1, {1, 1}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
    {0, 3, 4, {5, 5}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}}, /* no images */
    {2, 0, 4, {5, 5}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}}, /* no channels: the bias alone */
    {3, 6, 9, {11, 7}, {{3, 2}, {2, 3}, {1, 2}, {2, 1}, 3}},
    {2, 4, 4, {9, 9}, {{2, 2}, {5, 4}, {0, 1}, {1, 1}, 4}},   /* some pixels touch no tap */
    {1, 2, 2, {4, 300}, {{1, 5}, {1, 1}, {0, 2}, {1, 1}, 1}}, /* rows longer than a block */
    {1,
     2,
     3,
     {7, 7},
     {{3, 3}, {2, 2}, {1, 1}, {2, 2}, 1}}, /* stride and dilation share a divisor */
    {1, 2, 3, {8, 8}, {{3, 3}, {4, 4}, {7, 6}, {6, 6}, 1}},
    {5, 2, 3, {20, 30}, {{2, 2}, {1, 1}, {0, 0}, {1, 1}, 1}}, /* several chunks of positions */
    /* Depthwise: more groups than a vector has elements, several chunks, strides and dilations, long rows, outputs that
     * share a channel, images that are smaller than the window. */
    {2, 20, 20, {13, 17}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 20}},
    {5, 2, 2, {20, 30}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}},
    {3, 18, 18, {9, 40}, {{5, 3}, {2, 3}, {2, 1}, {1, 2}, 18}},
    {1, 17, 17, {3, 700}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 17}},
    {2, 3, 12, {40, 11}, {{3, 3}, {1, 2}, {0, 1}, {2, 1}, 3}},
    {2, 6, 6, {2, 1}, {{4, 5}, {1, 2}, {3, 4}, {1, 1}, 6}},
    {1, 1, 1, {200, 90}, {{7, 7}, {1, 1}, {3, 3}, {1, 1}, 1}},
};

static void check_problem(const problem *p) {
    for (int d = 0; d < 2; d++) {
        mr_dtype dtype = d ? MR_F64 : MR_F32;
        check_forward(p, dtype, true);
        check_forward(p, dtype, false);
        check_gradients(p, dtype);
    }
}

static void chosen_shapes_agree_with_the_definition(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) check_problem(&chosen[i]);
}

static void random_shapes_agree_with_the_definition(void **state) {
    (void)state;
    for (int i = 0; i < 150;) {
        problem p = {.images = random_below(4), .window.groups = 1 + (int32_t)random_below(3)};
        p.channels = p.window.groups * (1 + random_below(4));
        p.outputs = p.window.groups * (1 + random_below(5));
        for (int d = 0; d < 2; d++) {
            p.size[d] = 1 + random_below(12);
            p.window.size[d] = 1 + (int32_t)random_below(4);
            p.window.stride[d] = 1 + (int32_t)random_below(4);
            p.window.padding[d] = (int32_t)random_below(4);
            p.window.dilation[d] = 1 + (int32_t)random_below(3);
        }
        bool fits = true;
        for (int d = 0; d < 2; d++)
            fits = fits && p.size[d] + 2 * p.window.padding[d] >
                               p.window.dilation[d] * (p.window.size[d] - 1);
        if (!fits) continue;
        check_problem(&p);
        i++;
    }
}

/* ------------------------------------------------------------------------- order */

/* Element [a][b][c][d] of a dense tensor of f32; 0 outside of its rows and columns. */
static float cell(const mr_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
    if (c < 0 || c >= t->shape[2] || d < 0 || d >= t->shape[3]) return 0;
    const float *all = mr_tensor_data(t);
    return all[((a * t->shape[1] + b) * t->shape[2] + c) * t->shape[3] + d];
}

/* One element of each result, its terms fused one after the other in the order that network.h states. */
static float forward_in_order(const problem *p, const mr_tensor *x, const mr_tensor *w,
                              const int64_t at[4]) {
    const mr_window *k = &p->window;
    int64_t per = p->channels / k->groups, group = at[1] / (p->outputs / k->groups);
    float sum = 0;
    for (int64_t c = 0; c < per; c++)
        for (int64_t a = 0; a < k->size[0]; a++)
            for (int64_t b = 0; b < k->size[1]; b++)
                sum = fmaf(cell(w, at[1], c, a, b),
                           cell(x, at[0], group * per + c,
                                at[2] * k->stride[0] + a * k->dilation[0] - k->padding[0],
                                at[3] * k->stride[1] + b * k->dilation[1] - k->padding[1]),
                           sum);
    return sum;
}

static float input_in_order(const problem *p, const mr_tensor *g, const mr_tensor *w,
                            const int64_t at[4]) {
    const mr_window *k = &p->window;
    int64_t per = p->channels / k->groups, made = p->outputs / k->groups, group = at[1] / per;
    float sum = 0;
    for (int64_t o = group * made; o < (group + 1) * made; o++)
        for (int64_t a = 0; a < k->size[0]; a++)
            for (int64_t b = 0; b < k->size[1]; b++) {
                int64_t y = at[2] + k->padding[0] - a * k->dilation[0],
                        x = at[3] + k->padding[1] - b * k->dilation[1];
                if (y % k->stride[0] || x % k->stride[1]) continue;
                sum = fmaf(cell(w, o, at[1] % per, a, b),
                           cell(g, at[0], o, y / k->stride[0], x / k->stride[1]), sum);
            }
    return sum;
}

static float weight_in_order(const problem *p, const mr_tensor *g, const mr_tensor *x,
                             const int64_t at[4]) {
    const mr_window *k = &p->window;
    int64_t per = p->channels / k->groups, group = at[0] / (p->outputs / k->groups);
    float sum = 0;
    for (int64_t n = 0; n < p->images; n++)
        for (int64_t v = 0; v < positions(p, 0); v++)
            for (int64_t u = 0; u < positions(p, 1); u++)
                sum = fmaf(cell(g, n, at[0], v, u),
                           cell(x, n, group * per + at[1],
                                v * k->stride[0] + at[2] * k->dilation[0] - k->padding[0],
                                u * k->stride[1] + at[3] * k->dilation[1] - k->padding[1]),
                           sum);
    return sum;
}

static void check_order(const char *row, const problem *p, const mr_tensor *got, const mr_tensor *a,
                        const mr_tensor *b,
                        float (*expected)(const problem *, const mr_tensor *, const mr_tensor *,
                                          const int64_t[4])) {
    const int64_t *shape = got->shape;
    const float *all = mr_tensor_data(got);
    for (int64_t i = 0; i < got->numel; i++) {
        int64_t at[4] = {i / shape[3] / shape[2] / shape[1], i / shape[3] / shape[2] % shape[1],
                         i / shape[3] % shape[2], i % shape[3]};
        float own = expected(p, a, b, at);
        if (memcmp(&all[i], &own, sizeof own) != 0)
            fail_msg("%s: element %lld is %a, not %a", row, (long long)i, (double)all[i],
                     (double)own);
    }
}

/* Direct and by a matrix product, the bits are those of the same order, so that a kernel of a GPU can have them, too.
 * For conv2d_weight only where there are too few positions for several chunks. */
static void terms_are_added_in_order(void **state) {
    (void)state;
    static const problem problems[] = {
        {2, 20, 20, {9, 17}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 20}},
        {1, 3, 3, {30, 8}, {{5, 4}, {1, 1}, {2, 2}, {1, 1}, 3}},
        {2, 18, 18, {9, 12}, {{3, 5}, {2, 3}, {1, 2}, {2, 1}, 18}},
        {1, 2, 8, {6, 70}, {{3, 3}, {1, 2}, {1, 1}, {1, 1}, 2}},
        {1, 6, 2, {7, 9}, {{2, 3}, {3, 1}, {1, 0}, {1, 2}, 2}},
        {1, 4, 5, {8, 8}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
        {1, 22, 3, {5, 6}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const problem *p = &problems[i];
        const mr_window *k = &p->window;
        mr_tensor *x = make_filled(MR_F32, DENSE, p->images, p->channels, p->size[0], p->size[1]);
        mr_tensor *w =
            make_filled(MR_F32, DENSE, p->outputs, p->channels / k->groups, k->size[0], k->size[1]);
        mr_tensor *g =
            make_filled(MR_F32, DENSE, p->images, p->outputs, positions(p, 0), positions(p, 1));
        mr_call call = {
            .in = {{.tensor = x}, {.tensor = w}}, .in_count = 2, .params.conv.window = *k};
        mr_tensor *out = run_call("conv2d", &call);
        check_order("conv2d", p, out, x, w, forward_in_order);
        drop(out);
        call.in[0].tensor = g;
        call.dim_count = 4;
        for (int d = 0; d < 4; d++) call.dims[d] = (int)x->shape[d];
        out = run_call("conv2d_input", &call);
        check_order("conv2d_input", p, out, g, w, input_in_order);
        drop(out);
        call.in[1].tensor = x;
        for (int d = 0; d < 4; d++) call.dims[d] = (int)w->shape[d];
        out = run_call("conv2d_weight", &call);
        check_order("conv2d_weight", p, out, g, x, weight_in_order);
        drop(out), drop(x), drop(w), drop(g);
    }
}

static mr_status try_conv(mr_tensor *x, mr_tensor *w, mr_tensor *bias, mr_window window) {
    mr_call call = {.in = {{.tensor = x}, {.tensor = w}, {.tensor = bias}},
                    .in_count = bias ? 3 : 2,
                    .params.conv.window = window};
    return try_call("conv2d", &call);
}

static void wrong_calls_say_why(void **state) {
    (void)state;
    const mr_window plain = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    mr_window odd = plain;
    mr_tensor *x = make(MR_F32, SHAPE(2, 3, 5, 5)), *w = make(MR_F32, SHAPE(4, 3, 3, 3)),
              *flat = make(MR_F32, SHAPE(4, 3)), *wide = make(MR_F64, SHAPE(4, 3, 3, 3)),
              *whole = make(MR_I32, SHAPE(4, 3, 3, 3)), *large = make(MR_F32, SHAPE(4, 3, 7, 3)),
              *bias = make(MR_F32, SHAPE(3)), *device = make_device(MR_F32, SHAPE(4, 3, 3, 3));
    expect_error(try_conv(x, flat, NULL, plain), MR_CODE_INVALID_ARGUMENT,
                 "must have the shape (outputs");
    expect_error(try_conv(flat, w, NULL, plain), MR_CODE_INVALID_ARGUMENT,
                 "must have the shape (images");
    expect_error(try_conv(x, wide, NULL, plain), MR_CODE_INVALID_ARGUMENT, "convert one of them");
    expect_error(try_conv(x, whole, NULL, plain), MR_CODE_INVALID_ARGUMENT, "takes floats");
    expect_error(try_conv(x, large, NULL, plain), MR_CODE_INVALID_ARGUMENT,
                 "a window of 7x3 (dilation 1x1) does not fit into an input of shape 2x3x5x5");
    expect_error(try_conv(x, w, bias, plain), MR_CODE_INVALID_ARGUMENT,
                 "the bias must have the shape 4");
    expect_error(try_conv(x, device, NULL, plain), MR_CODE_INVALID_ARGUMENT, "move one of them");
    odd.groups = 3;
    expect_error(try_conv(x, w, NULL, odd), MR_CODE_INVALID_ARGUMENT,
                 "groups=3 does not divide the 4");
    odd.groups = 2;
    expect_error(try_conv(x, w, NULL, odd), MR_CODE_INVALID_ARGUMENT,
                 "expect 6 input channels with groups=2, but the input of shape 2x3x5x5 has 3");
    odd = plain;
    odd.stride[1] = 0;
    expect_error(try_conv(x, w, NULL, odd), MR_CODE_INVALID_ARGUMENT, "a stride of at least 1");
    odd = plain;
    odd.padding[0] = -1;
    expect_error(try_conv(x, w, NULL, odd), MR_CODE_INVALID_ARGUMENT, "a padding of at least 0");
    mr_call call = {.in = {{.tensor = x}, {.tensor = w}},
                    .in_count = 2,
                    .params.conv.window = plain,
                    .dims = {2, 3, 9, 9},
                    .dim_count = 4};
    expect_error(try_call("conv2d_input", &call), MR_CODE_INVALID_ARGUMENT,
                 "the gradient of shape 2x3x5x5 must have that of the result, 2x4x7x7");
    drop(x), drop(w), drop(flat), drop(wide), drop(whole), drop(large), drop(bias), drop(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_shapes_agree_with_the_definition),
        cmocka_unit_test(random_shapes_agree_with_the_definition),
        cmocka_unit_test(terms_are_added_in_order),
        cmocka_unit_test(wrong_calls_say_why),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
