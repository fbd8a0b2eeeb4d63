/* The caller's result: frees it, and says why it is not complete. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "explore/state.h"

void mr_explore_value_free(mr_explore_value *value) {
    mr_buffer_free(&value->text);
    for (size_t i = 0; i < value->tensors.count; i++) mr_tensor_release(value->tensors.items[i]);
    mr_vec_free(&value->tensors);
    *value = (mr_explore_value){0};
}

void mr_explore_outcome_free(mr_explore_outcome *o) {
    char **const texts[] = {&o->value, &o->schedule, &o->steps, &o->difference};
    for (int i = 0; i < 4; i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}

void mr_explore_result_free(mr_explore_result *result) {
    for (size_t i = 0; i < result->outcomes.count; i++)
        mr_explore_outcome_free(&result->outcomes.items[i]);
    for (int i = 0; i < 2; i++) mr_explore_outcome_free(&result->witness[i]);
    mr_vec_free(&result->outcomes);
    mr_vec_free(&result->groups);
    mr_buffer_free(&result->untried);
    free(result->unended.difference);
    *result = (mr_explore_result){0};
}

void explore_incomplete(explorer *e, const char *format, ...) {
    va_list args;
    e->result->complete = false;
    if (e->result->incomplete[0]) return;
    va_start(args, format);
    mr_number_formatv(e->result->incomplete, sizeof e->result->incomplete, format, args);
    va_end(args);
}
