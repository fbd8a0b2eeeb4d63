/* Error objects: see status.h. */
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const struct {
    const char *text;
    int number;
    bool sticky;
} codes[] = {
#define X(name, text, number, sticky) {text, number, sticky},
    MR_CODE_LIST(X)
#undef X
};

/* Handed out when not even an error object can be had; never freed, never written (mr_error_details). */
static union {
    mr_error error;
    char room[sizeof(mr_error) + 64];
} no_memory = {.error = {.code = MR_CODE_OUT_OF_MEMORY}};

const char *mr_code_text(mr_code code) {
    return codes[code].text;
}

int mr_code_number(mr_code code) {
    return codes[code].number;
}

bool mr_code_sticky(mr_code code) {
    return codes[code].sticky;
}

bool mr_code_is_interruption(mr_code code) {
    return code == MR_CODE_INTERRUPTED || code == MR_CODE_STOPPED;
}

bool mr_code_find(const char *text, mr_code *out_code) {
    for (int i = 0; i < MR_CODE_COUNT; i++) {
        if (strcmp(codes[i].text, text) == 0) {
            *out_code = (mr_code)i;
            return true;
        }
    }
    return false;
}

static mr_status make(mr_code code, const char *prefix, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = mr_number_formatv(NULL, 0, format, again);
    va_end(again);
    size_t before = strlen(prefix), size = (length < 0 ? 0 : (size_t)length) + 1;
    mr_error *error = calloc(1, sizeof *error + before + size);
    if (!error) return &no_memory.error;
    error->code = code;
    memcpy(error->message, prefix, before);
    mr_number_formatv(error->message + before, size, format, args);
    return error;
}

mr_status mr_failv(mr_code code, const char *format, va_list args) {
    return make(code, "", format, args);
}

mr_status mr_no_memory(const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_status status = make(MR_CODE_OUT_OF_MEMORY, "no memory ", format, args);
    va_end(args);
    return status;
}

mr_status mr_fail(mr_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_status status = mr_failv(code, format, args);
    va_end(args);
    return status;
}

static mr_status with_details_of(const mr_error *error, mr_status copy) {
    if (copy == &no_memory.error) return copy;
    copy->where = error->where;
    memcpy(copy->op, error->op, sizeof copy->op);
    memcpy(copy->stream, error->stream, sizeof copy->stream);
    return copy;
}

mr_status mr_error_copy(const mr_error *error) {
    return with_details_of(error, mr_fail(error->code, "%s", error->message));
}

mr_status mr_error_reword(mr_status error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    mr_status reworded = with_details_of(error, mr_failv(error->code, format, args));
    va_end(args);
    mr_error_destroy(error);
    return reworded;
}

void mr_error_destroy(mr_status status) {
    if (status != &no_memory.error) free(status);
}

mr_error *mr_error_details(mr_status status) {
    return status == &no_memory.error ? NULL : status;
}

mr_status mr_error_first(mr_status first, mr_status next) {
    if (!first) return next;
    mr_error_destroy(next);
    return first;
}
