/* What the tests of the PTX reader share: texts around a few lines of PTX, and random numbers. */
#ifndef MR_TESTS_PTX_TEXTS_H
#define MR_TESTS_PTX_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "ptx/read/tree.h"

#define HEAD ".version 8.3\n.target sm_80\n.address_size 64\n"

static uint64_t random_state = 88172645463325252u;

static inline uint32_t random_below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 11) % n);
}

/* Reads what must be right. */
static inline ptx_tree read_text(const char *text) {
    ptx_tree tree;
    mr_status status = ptx_read(text, strlen(text), "k.ptx", &tree);
    if (status) fail_msg("%s\n%s", status->message, text);
    return tree;
}

static inline ptx_tree read_after_head(const char *rest) {
    mr_buffer text = {0};
    mr_buffer_printf(&text, "%s%s", HEAD, rest);
    ptx_tree tree = read_text(text.data);
    mr_buffer_free(&text);
    return tree;
}

#endif
