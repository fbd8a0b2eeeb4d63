/* Functions that the device provides, by the names that compilers call: vprintf, and __assertfail of a failed assert().
 *
 * A program may give printf any format with any values. Its reads are checked like each access of
 * memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "ptx/run/arith.h"
#include "ptx/run/fault.h"
#include "ptx/run/memory.h"
#include "ptx/run/runs.h"

/* The longest string of %s, and the largest width and precision. */
#define LONGEST 4096

static uint64_t argument(const ptx_warp *warp, const ptx_code *code, uint32_t i, unsigned lane) {
    const ptx_call_code *call = code->call;
    uint64_t value = 0;
    uint32_t bytes = call->argument_bytes[i] < 8 ? call->argument_bytes[i] : 8;
    memcpy(&value, ptx_local_at(warp, warp->frame->local_base + call->arguments[i], lane), bytes);
    return value;
}

static void set_result(ptx_warp *warp, const ptx_code *code, unsigned lane, uint32_t value) {
    const ptx_call_code *call = code->call;
    if (call->result_count != 1 || call->result_bytes[0] != 4) return;
    uint32_t at = warp->frame->local_base + call->results[0];
    memcpy(ptx_local_at(warp, at, lane), &value, sizeof value);
    for (uint32_t i = 0; warp->local_set && i < 4; i++) warp->local_set[at + i] |= 1u << lane;
}

/* Copies a string of the device; false: it failed. A long one is cut. */
static bool read_string(ptx_warp *warp, const ptx_code *code, unsigned lane, uint64_t address,
                        mr_buffer *out) {
    for (unsigned i = 0; i < LONGEST; i++) {
        const char *at = ptx_reach_bytes(warp, code, lane, address + i, 1);
        if (!at) return false;
        if (*at == 0) break;
        mr_buffer_add(out, at, 1);
    }
    mr_buffer_add(out, "", 0);
    return true;
}

/* ---- printf */

typedef struct {
    ptx_warp *warp;
    const ptx_code *code;
    unsigned lane;
    uint64_t next; /* address of the next value */
    mr_buffer text;
    uint32_t count;
} printing;

static bool next_value(printing *p, unsigned bytes, uint64_t *out) {
    p->next = (p->next + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i += 4) {
        const char *at = ptx_reach_bytes(p->warp, p->code, p->lane, p->next + i, 4);
        if (!at) return false;
        uint32_t part;
        memcpy(&part, at, 4);
        value |= (uint64_t)part << (8 * i);
    }
    p->next += bytes;
    p->count++;
    *out = value;
    return true;
}

typedef struct {
    char flags[8];
    int width, precision; /* -1: not given */
    bool is_long;
    int size; /* -2 hh, -1 h, 1 l and above */
    char conversion;
} specification;

static bool read_number(printing *p, const char **at, int *out) {
    if (**at == '*') {
        uint64_t value;
        if (!next_value(p, 4, &value)) return false;
        *out = (int32_t)value;
        ++*at;
    } else {
        int64_t number = 0;
        while (**at >= '0' && **at <= '9') {
            if (number < LONGEST) number = 10 * number + (**at - '0');
            ++*at;
        }
        *out = (int)number;
    }
    if (*out > LONGEST) *out = LONGEST;
    return true;
}

/* What follows a `%`; moves *at after it. False: it failed. */
static bool read_specification(printing *p, const char **at, specification *s) {
    *s = (specification){.width = -1, .precision = -1};
    size_t flags = 0;
    while (**at && strchr("-+ #0", **at)) {
        if (!strchr(s->flags, **at) && flags + 2 < sizeof s->flags) s->flags[flags++] = **at;
        ++*at;
    }
    if (**at == '*' || (**at >= '1' && **at <= '9')) {
        if (!read_number(p, at, &s->width)) return false;
        if (s->width < 0) { /* of a `*`: left-justified */
            s->width = s->width < -LONGEST ? LONGEST : -s->width;
            if (!strchr(s->flags, '-')) s->flags[flags++] = '-';
        }
    }
    if (**at == '.') {
        ++*at;
        if (!read_number(p, at, &s->precision)) return false;
        if (s->precision < 0) s->precision = -1;
    }
    while (**at && strchr("hlLqjzt", **at)) {
        s->size += **at == 'h' ? -1 : 1;
        ++*at;
    }
    s->conversion = **at;
    if (**at) ++*at;
    return true;
}

#define FORMAT_SIZE 48 /* flags, width, precision, length, conversion */

static void format_of(const specification *s, const char *length, char out[FORMAT_SIZE]) {
    char precision[16] = "";
    if (s->precision >= 0) snprintf(precision, sizeof precision, ".%d", s->precision);
    if (s->width >= 0) {
        snprintf(out, FORMAT_SIZE, "%%%s%d%s%s%c", s->flags, s->width, precision, length,
                 s->conversion);
    } else {
        snprintf(out, FORMAT_SIZE, "%%%s%s%s%c", s->flags, precision, length, s->conversion);
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool print_one(printing *p, const specification *s) {
    char format[FORMAT_SIZE];
    uint64_t value;
    switch (s->conversion) {
    case 'd':
    case 'i':
        if (!next_value(p, s->size > 0 ? 8 : 4, &value)) return false;
        format_of(s, "ll", format);
        mr_buffer_printf(&p->text, format,
                         s->size > 0     ? (long long)value
                         : s->size == 0  ? (long long)(int32_t)value
                         : s->size == -1 ? (long long)(int16_t)value
                                         : (long long)(int8_t)value);
        return true;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!next_value(p, s->size > 0 ? 8 : 4, &value)) return false;
        format_of(s, "ll", format);
        mr_buffer_printf(&p->text, format,
                         (unsigned long long)(s->size == -1  ? value & 65535
                                              : s->size < -1 ? value & 255
                                                             : value));
        return true;
    case 'c':
        if (!next_value(p, 4, &value)) return false;
        format_of(s, "", format);
        mr_buffer_printf(&p->text, format, (int)(unsigned char)value);
        return true;
    case 'p':
        if (!next_value(p, 8, &value)) return false;
        mr_buffer_printf(&p->text, "0x%" PRIx64, value);
        return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        if (!next_value(p, 8, &value)) return false;
        format_of(s, "", format);
        mr_buffer_printf(&p->text, format, mr_from_bits_f64(value));
        return true;
    case 's': {
        mr_buffer text = {0};
        bool good = next_value(p, 8, &value);
        if (good && !value) mr_buffer_puts(&text, "(null)"); /* as CUDA prints it */
        else good = good && read_string(p->warp, p->code, p->lane, value, &text);
        format_of(s, "", format);
        if (good) mr_buffer_printf(&p->text, format, text.data ? text.data : "");
        mr_buffer_free(&text);
        return good;
    }
    case '%': mr_buffer_add(&p->text, "%", 1); return true;
    default: /* no conversion of C: it is printed as it is */
        mr_buffer_add(&p->text, "%", 1);
        if (s->conversion) mr_buffer_add(&p->text, &s->conversion, 1);
        return true;
    }
}
#pragma GCC diagnostic pop

static bool print_all(printing *p, const char *format) {
    while (*format) {
        const char *percent = strchr(format, '%');
        size_t plain = percent ? (size_t)(percent - format) : strlen(format);
        mr_buffer_add(&p->text, format, plain);
        if (!percent) break;
        format = percent + 1;
        specification s;
        if (!read_specification(p, &format, &s) || !print_one(p, &s)) return false;
    }
    return true;
}

static void print(ptx_warp *warp, const mr_buffer *text) {
    const mr_ptx_launch *launch = warp->run->launch;
    if (!launch->print || !text->size) return;
    pthread_mutex_lock(warp->run->module->printing);
    launch->print(launch->context, text->data, text->size);
    pthread_mutex_unlock(warp->run->module->printing);
}

static const ptx_code *run_vprintf(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        mr_buffer format = {0};
        printing p = {
            .warp = warp, .code = code, .lane = lane, .next = argument(warp, code, 1, lane)};
        bool good = read_string(warp, code, lane, argument(warp, code, 0, lane), &format) &&
                    print_all(&p, format.data ? format.data : "");
        if (good) print(warp, &p.text);
        bool full = p.text.failed || format.failed;
        mr_buffer_free(&p.text);
        mr_buffer_free(&format);
        if (!good) return NULL;
        if (full) return ptx_fault_memory(warp);
        set_result(warp, code, lane, p.count);
    }
    return code + 1;
}

/* ---- assert */

static const ptx_code *run_assertfail(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_run_state *run = warp->run;
    unsigned lane = ptx_first_lane(mask);
    mr_buffer message = {0}, file = {0}, function = {0};
    if (read_string(warp, code, lane, argument(warp, code, 0, lane), &message) &&
        read_string(warp, code, lane, argument(warp, code, 1, lane), &file) &&
        read_string(warp, code, lane, argument(warp, code, 3, lane), &function)) {
        uint32_t thread = warp->number * PTX_LANES + lane;
        const uint32_t *size = run->launch->block, *block = run->block.index;
        warp->state = PTX_WARP_FAILED;
        if (!run->failure) {
            run->failure =
                mr_fail(MR_CODE_ASSERT,
                        "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.",
                        file.data ? file.data : "", (uint32_t)argument(warp, code, 2, lane),
                        function.data ? function.data : "", block[0], block[1], block[2],
                        thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1],
                        message.data ? message.data : "");
        }
    }
    mr_buffer_free(&message);
    mr_buffer_free(&file);
    mr_buffer_free(&function);
    return NULL;
}

static const struct {
    const char *name;
    unsigned arguments;
    ptx_run *run;
} functions[] = {{"vprintf", 2, run_vprintf}, {"__assertfail", 5, run_assertfail}};

ptx_run *ptx_find_system(const char *name, uint32_t arguments) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0 && functions[i].arguments == arguments) {
            return functions[i].run;
        }
    }
    return NULL;
}
