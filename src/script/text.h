/* Internal to src/script: a script's text as its words, statements, blocks and declarations. */
#ifndef MR_SCRIPT_TEXT_H
#define MR_SCRIPT_TEXT_H

#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "script/script.h"

typedef enum { NAME, KEYWORD, VALUE, SYMBOL, END_OF_TEXT } word_kind;

typedef struct {
    word_kind kind;
    const char *text;
    int length;
    int line, last_line; /* a long string may span several */
    bool is_first;  /* nothing else is on its line in front of it, nor the end of a long comment */
    int block;      /* that it stands in; a word that closes a block stands in that one */
    int statement;  /* the word that begins the statement that it is part of */
    bool begins;    /* a statement */
    bool is_missed; /* the statement before it is a return, break or goto */
} word;

typedef struct {
    int outer;          /* block; -1: this is the main chunk */
    int statement;      /* of the outer block, that it is part of */
    int opened, closed; /* words */
    int brackets;       /* open ones outside of it */
    bool is_function, is_loop;
    bool is_defined; /* the function is kept rather than handed to a call */
} block;

typedef struct {
    int name;  /* word */
    int from;  /* in force behind this word */
    int block; /* and to the end of this block */
} declaration;

/* A name on the left of an assignment: `t`, and `count` in `x.count, t = 1, {}`. */
typedef struct {
    int name;      /* word */
    int statement; /* the word that begins it */
    bool is_field;
} target;

struct mr_script {
    int refs;
    char *path, *text;
    struct stat status;
    MR_VEC(word) words;
    MR_VEC(block) blocks;
    MR_VEC(declaration) declarations;
    MR_VEC(target) targets; /* by their statements */
    bool is_file;           /* a first line that begins with # is no Lua */
    bool failed;
};

static inline bool says(const word *w, const char *text) {
    return w->kind != VALUE && (size_t)w->length == strlen(text) &&
           memcmp(w->text, text, (size_t)w->length) == 0;
}

static inline bool says_any(const word *w, const char *const *texts) {
    for (; *texts; texts++)
        if (says(w, *texts)) return true;
    return false;
}

/* Fill in the words, then the blocks and what they declare, then the targets; they set `failed` where the text is not
 * Lua, and without memory. */
void mr_script_split(mr_script *s);
void mr_script_outline(mr_script *s);
void mr_script_find_targets(mr_script *s);

/* The first word at or behind the beginning of the line. */
int mr_script_word_at(const mr_script *s, int line);
/* The word after the bracket that closes the one at word `open`; the end of the text if none does. */
int mr_script_behind_bracket(const mr_script *s, int open);
/* The block that the place is in, and the block of the function that a block is in. */
int mr_script_block_of(const mr_script *s, int front);
int mr_script_function_of(const mr_script *s, int in);
bool mr_script_encloses(const mr_script *s, int outer, int inner); /* or is the same block */
/* A run enters at most one of the two blocks. They are in different branches of an `if`, and no loop inside block
 * `limit` is around that. */
bool mr_script_exclude(const mr_script *s, int a, int b, int limit);
/* A call of that name on the line; -1: there is none, or more than one. */
int mr_script_only_call(const mr_script *s, int line, const char *name);
/* The word after the statement that begins at word `at`, and after those that begin on the line where it ends. */
int mr_script_group_end(const mr_script *s, int at);

#endif
