/* See number.h. A thread's own locale overrides the process's. So each function sets the thread's locale and restores
 * it, which takes about ten nanoseconds and does not affect other threads. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t plain; /* the C locale; it lives as long as the process */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void) {
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The locale of the thread until now. The C locale needs no memory, so it is always there. */
static locale_t enter(void) {
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int mr_number_formatv(char *out, size_t size, const char *format, va_list args) {
    locale_t before = enter();
    int length = vsnprintf(out, size, format, args);
    uselocale(before);
    return length;
}

int mr_number_format(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = mr_number_formatv(out, size, format, args);
    va_end(args);
    return length;
}

const char *mr_number_text(double value, char out[MR_NUMBER_TEXT]) {
    mr_number_format(out, MR_NUMBER_TEXT, "%.14g", isnan(value) ? fabs(value) : value);
    return out;
}

double mr_number_parse(const char *text, char **out_end) {
    pthread_once(&once, make_plain);
    return strtod_l(text, out_end, plain);
}
