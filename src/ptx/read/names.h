/* The names of a text during reading: each spelling has one record, found by a hash table, with all facts that the
 * reader needs. A token is looked up once. */
#ifndef MR_PTX_READ_NAMES_H
#define MR_PTX_READ_NAMES_H

#include "base/map.h"
#include "base/region.h"
#include "base/vec.h"
#include "ptx/read/tree.h"

typedef uint32_t ptx_name;
#define PTX_NO_NAME UINT32_MAX

/* The meaning of a declared name. */
typedef enum {
    PTX_NAMES_REGISTER, /* index: of the function's registers */
    PTX_NAMES_VECTOR,   /* index: of its first register; `count` of them */
    PTX_NAMES_RANGE,    /* the `%r` of `%r<9>`; index: of ptx_names.ranges */
    PTX_NAMES_VARIABLE, /* index as in ptx_operand, likewise below */
    PTX_NAMES_LOCAL_VARIABLE,
    PTX_NAMES_PARAMETER,
    PTX_NAMES_FUNCTION,
    PTX_NAMES_LABEL,
    PTX_NAMES_TARGETS,
    PTX_NAMES_PROTOTYPE,
} ptx_named;

typedef struct {
    ptx_named kind;
    uint32_t index, count;
} ptx_symbol;

/* A declaration that is in force. The one that it hides comes back when its scope ends. */
typedef struct {
    ptx_symbol symbol;
    ptx_name name;
    uint32_t depth;
    int32_t hidden;
} ptx_binding;

typedef struct {
    const char *text; /* in the arena, terminated */
    uint32_t size;
    uint8_t opcode, modifier, type; /* of the same spelling, 0: none */
    int16_t special;                /* -1: none */
    int32_t binding;                /* the innermost one, -1: none */
    uint32_t range,
        register_index; /* where it was found last time; range is one more than the index */
} ptx_name_record;

/* .reg .b32 %r<9>: its registers come into being where they are used, so that the declaration costs nothing. */
typedef struct {
    ptx_name prefix;
    uint32_t count;
    ptx_type type;
} ptx_range;

typedef MR_MAP(uint32_t) ptx_map;

typedef struct {
    mr_region *arena;
    MR_VEC(ptx_name_record) records;
    MR_MAP(ptx_name) by_text; /* by its hash */
    MR_VEC(ptx_binding) bindings;
    MR_VEC(ptx_range) ranges;
    ptx_map range_registers; /* range and number -> register */
} ptx_names;

/* With the words of words.h. Names that the tree keeps lie in the arena. */
bool ptx_names_init(ptx_names *names, mr_region *arena);
void ptx_names_free(ptx_names *names);

/* The record of a spelling, made if there is none. PTX_NO_NAME: no memory. */
ptx_name ptx_names_intern(ptx_names *names, const char *text, size_t size);
/* PTX_NO_NAME: there is none. */
ptx_name ptx_names_find(const ptx_names *names, const char *text, size_t size);

#endif
