/* Tokens of PTX text. */
#ifndef MR_PTX_READ_LEX_H
#define MR_PTX_READ_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    PTX_TOKEN_END,     /* of the text */
    PTX_TOKEN_WORD,    /* add, %r1, $L__BB0_2 */
    PTX_TOKEN_DOT,     /* .global, .L2::128B: `text` is what follows the dot */
    PTX_TOKEN_INTEGER, /* bits; is_unsigned if it ends with U or needs all 64 bits */
    PTX_TOKEN_REAL,    /* bits of the f64, or of the f32 if `single` */
    PTX_TOKEN_STRING,  /* text without the quotes, escapes as they are */
    PTX_TOKEN_MARK,    /* one character, or == != <= >= << >> && || */
    PTX_TOKEN_BAD,     /* problem says why */
} ptx_token_kind;

/* Marks of two characters. */
#define PTX_MARK2(a, b) ((uint16_t)((a) << 8 | (b)))

typedef struct {
    ptx_token_kind kind;
    uint16_t mark;
    bool is_unsigned, single;
    uint32_t line; /* from 1 */
    uint32_t size;
    const char *text; /* in the text that is read, not terminated */
    uint64_t bits;
    const char *problem;
} ptx_token;

typedef struct {
    const char *at, *end;
    uint32_t line;
} ptx_lexer;

/* Texts up to this size; so all counts of what a text holds fit into 32 bits. */
#define PTX_LONGEST_TEXT ((size_t)1 << 30)

void ptx_lex(ptx_lexer *lexer, ptx_token *out_token);

#endif
