/* The values of a tensor as text, in PyTorch's layout: one format for all elements, so that columns line up. Beyond
 * 1000 elements only the three at each end of a dimension. */
#include "base/number.h"
#include "tensor/tensor.h"

#include "model/backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SUMMARY_THRESHOLD = 1000, EDGE = 3, PRECISION = 4 };

typedef enum { STYLE_INTEGER, STYLE_WHOLE, STYLE_FIXED, STYLE_SCIENTIFIC, STYLE_BOOL } style;

typedef struct {
    const mr_tensor *t;
    mr_buffer *out;
    style style;
    int width; /* of the widest element shown, and at least 1 */
    int line;  /* columns of a row */
    bool summarised;
} printer;

static mr_scalar value_of(const mr_tensor *t, int64_t at) {
    return mr_dtype_load(t->dtype,
                         (const char *)t->storage->host + at * (int64_t)mr_dtype_size(t->dtype));
}

static const char *element_text(const printer *p, int64_t at, char *out, size_t size) {
    mr_scalar v = value_of(p->t, at);
    if (p->style == STYLE_BOOL) snprintf(out, size, "%s", v.i ? "true" : "false");
    else if (p->style == STYLE_INTEGER) snprintf(out, size, "%" PRId64, v.i);
    else if (isnan(v.f)) snprintf(out, size, "nan");
    else if (isinf(v.f)) snprintf(out, size, v.f < 0 ? "-inf" : "inf");
    else if (p->style == STYLE_WHOLE) mr_number_format(out, size, "%.0f.", v.f);
    else mr_number_format(out, size, p->style == STYLE_FIXED ? "%.*f" : "%.*e", PRECISION, v.f);
    return out;
}

/* Calls `see` for the place of every element that will be shown. */
static void visit(printer *p, int dim, int64_t at, void (*see)(void *context, int64_t at),
                  void *context) {
    const mr_tensor *t = p->t;
    if (dim == t->ndim) {
        see(context, at);
        return;
    }
    int64_t n = t->shape[dim];
    bool cut = p->summarised && n > 2 * EDGE;
    for (int64_t i = 0; i < n; i++) {
        if (cut && i == EDGE) i = n - EDGE;
        visit(p, dim + 1, at + i * t->stride[dim], see, context);
    }
}

typedef struct {
    printer *p;
    double least, greatest; /* of the finite non-zero magnitudes */
    bool any, whole;
} survey;

static void survey_element(void *context, int64_t at) {
    survey *s = context;
    double v = value_of(s->p->t, at).f;
    if (!isfinite(v)) return;
    if (v != floor(v)) s->whole = false;
    v = fabs(v);
    if (v == 0) return;
    if (!s->any || v < s->least) s->least = v;
    if (!s->any || v > s->greatest) s->greatest = v;
    s->any = true;
}

/* PyTorch counts only floats that are finite and not 0: `nan`, `-inf` and `-0.` may stand out. */
static void measure_element(void *context, int64_t at) {
    printer *p = context;
    char text[400];
    if (p->style != STYLE_BOOL && p->style != STYLE_INTEGER) {
        double v = value_of(p->t, at).f;
        if (!isfinite(v) || v == 0) return;
    }
    int width = (int)strlen(element_text(p, at, text, sizeof text));
    if (width > p->width) p->width = width;
}

/* PyTorch's rule: scientific if the magnitudes differ by more than 1000, or are outside the range in which four
 * decimals are useful. */
static void choose_style(printer *p) {
    int category = mr_dtype_category(p->t->dtype);
    if (category == 0) {
        p->style = STYLE_BOOL;
        return;
    }
    if (category == 1) {
        p->style = STYLE_INTEGER;
        return;
    }
    survey s = {.p = p, .whole = true};
    visit(p, 0, p->t->offset, survey_element, &s);
    if (!s.any) p->style = STYLE_WHOLE;
    else if (s.whole)
        p->style = s.greatest / s.least > 1000 || s.greatest > 1e8 ? STYLE_SCIENTIFIC : STYLE_WHOLE;
    else
        p->style = s.greatest / s.least > 1000 || s.greatest > 1e8 || s.least < 1e-4
                       ? STYLE_SCIENTIFIC
                       : STYLE_FIXED;
}

static void pad(mr_buffer *out, int n) {
    for (int i = 0; i < n; i++) mr_buffer_add(out, " ", 1);
}

/* Before the entry number `count` of a row: a comma, and a new line if the last one is full. */
static void separate(printer *p, int indent, int count, int per_line) {
    if (count == 0) return;
    mr_buffer_puts(p->out, ",");
    if (count % per_line) mr_buffer_puts(p->out, " ");
    else {
        mr_buffer_puts(p->out, "\n");
        pad(p->out, indent + 1);
    }
}

/* The "..." of a row that is cut is an entry, too, with a blank of its own. */
static void print_row(printer *p, int64_t at, int indent) {
    int dim = p->t->ndim - 1;
    int64_t n = p->t->shape[dim];
    bool cut = p->summarised && n > 2 * EDGE;
    int per_line = (p->line - indent) / (p->width + 2), count = 0;
    if (per_line < 1) per_line = 1;
    mr_buffer_puts(p->out, "[");
    for (int64_t i = 0; i < n; i++) {
        separate(p, indent, count++, per_line);
        if (cut && i == EDGE) {
            mr_buffer_puts(p->out, " ...");
            i = n - EDGE;
            separate(p, indent, count++, per_line);
        }
        char text[400];
        element_text(p, at + i * p->t->stride[dim], text, sizeof text);
        pad(p->out, p->width - (int)strlen(text));
        mr_buffer_puts(p->out, text);
    }
    mr_buffer_puts(p->out, "]");
}

static void print_dim(printer *p, int dim, int64_t at, int indent) {
    const mr_tensor *t = p->t;
    if (dim == t->ndim - 1) {
        print_row(p, at, indent);
        return;
    }
    int64_t n = t->shape[dim];
    bool cut = p->summarised && n > 2 * EDGE;
    mr_buffer_puts(p->out, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0) {
            mr_buffer_puts(p->out, ",");
            for (int d = dim; d < t->ndim - 1; d++)
                mr_buffer_puts(p->out, "\n"); /* a blank line a dim */
            pad(p->out, indent + 1);
        }
        if (cut && i == EDGE) {
            mr_buffer_puts(p->out, "...,");
            for (int d = dim; d < t->ndim - 1; d++) mr_buffer_puts(p->out, "\n");
            pad(p->out, indent + 1);
            i = n - EDGE;
        }
        print_dim(p, dim + 1, at + i * t->stride[dim], indent + 1);
    }
    mr_buffer_puts(p->out, "]");
}

static void print_place(const mr_tensor *t, mr_buffer *out) {
    char text[256];
    mr_buffer_puts(out, mr_tensor_signature(t, text, sizeof text));
    const mr_device *device = t->storage->device;
    if (!mr_tensor_on_host(t) && device) mr_buffer_printf(out, " on device %d", device->index);
    else mr_buffer_puts(out, t->storage->kind == MR_MEMORY_PINNED ? " on cpu, pinned" : " on cpu");
}

void mr_tensor_print(const mr_tensor *t, const mr_tensor *origin, int width, mr_buffer *out) {
    printer p = {
        .t = t, .out = out, .width = 1, .line = width, .summarised = t->numel > SUMMARY_THRESHOLD};
    if (t->numel == 0) {
        mr_buffer_puts(out, "[]");
    } else {
        choose_style(&p);
        visit(&p, 0, t->offset, measure_element, &p);
        if (t->ndim == 0) {
            char text[400];
            mr_buffer_puts(out, element_text(&p, t->offset, text, sizeof text));
        } else {
            print_dim(&p, 0, t->offset, 0);
        }
    }
    mr_buffer_puts(out, "\n");
    print_place(origin, out);
}
