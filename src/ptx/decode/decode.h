/* Decoding: from the tree's instructions to codes. Inside of src/ptx only.
 *
 * An instruction becomes one code or several; an unsupported one is refused by name. The steps of an instruction of
 * several codes pass values through scratch registers, so that a result may be one of its operands. */
#ifndef MR_PTX_DECODE_DECODE_H
#define MR_PTX_DECODE_DECODE_H

#include "base/map.h"
#include "base/vec.h"
#include "ptx/run/lanes.h"
#include "ptx/module.h"
#include "ptx/run/runs.h"

/* Constant vectors by value and width, while a module is decoded. */
typedef struct {
    uint64_t bits;
    ptx_place_of place;
    uint8_t bytes; /* 1: a predicate; 2, 4, 8; 3: its lanes differ */
} ptx_constant;
typedef struct {
    MR_MAP(ptx_constant) known; /* by a hash of bits and bytes */
    MR_VEC(char) data;
} ptx_constants;

typedef enum { PTX_FIX_TARGET, PTX_FIX_JOIN, PTX_FIX_TABLE } ptx_fix_kind;
typedef struct {
    uint32_t code;
    ptx_fix_kind kind;
    uint32_t instruction; /* to which the code refers; of PTX_FIX_TABLE: the list of targets */
    bool is_code;         /* `instruction` is the index of a code */
} ptx_fix;

enum { PTX_SCRATCHES = 6 };

typedef struct {
    mr_ptx_module *module;
    ptx_constants *constants;
    const ptx_function *function;
    ptx_routine *routine;
    ptx_run *const *lanes;
    const ptx_instruction *instruction;
    uint32_t index; /* of the instruction */
    uint32_t taken; /* modifiers that were understood, by position */

    ptx_place_of *slot;  /* of each register: in the frame, or what it is the same as (same.c) */
    uint8_t *is_dropped; /* by instruction: it only gave a vector another name */
    uint32_t scratch[4]; /* where those of 16, 32, 64 bits and the predicates begin */
    uint32_t used[4];    /* by the instruction */

    ptx_place_of guard;
    uint32_t guard_flip;
    MR_VEC(ptx_code) codes;
    MR_VEC(ptx_fix) fixes;
    mr_status failure;
} ptx_decoder;

/* ---- emit.c: what each part below uses. Any of them may fail; then d->failure is set, and what they return is of no
 * use. */
ptx_code *ptx_emit(ptx_decoder *d, ptx_run *run, ptx_place_of to, ptx_place_of a, ptx_place_of b,
                   ptx_place_of c);
static inline ptx_code *ptx_emit_lane(ptx_decoder *d, ptx_lane lane, ptx_place_of to,
                                      ptx_place_of a, ptx_place_of b, ptx_place_of c) {
    return ptx_emit(d, d->lanes[lane], to, a, b, c);
}
void ptx_fix_later(ptx_decoder *d, ptx_fix_kind kind, uint32_t instruction);
/* NOT_SUPPORTED: the text says what is not covered. */
void ptx_refuse(ptx_decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* No PTX at all: its operands do not fit. */
void ptx_reject(ptx_decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- operand.c */
bool ptx_needs(ptx_decoder *d, unsigned operands, unsigned types);
bool ptx_take(ptx_decoder *d, ptx_modifier modifier); /* does the instruction have it? */
ptx_type ptx_type_at(const ptx_decoder *d, unsigned i);

/* Operand i as a source or result of `bytes` bytes; 0: a predicate. */
ptx_place_of ptx_source(ptx_decoder *d, unsigned i, unsigned bytes);
ptx_place_of ptx_source_of(ptx_decoder *d, const ptx_operand *o, unsigned bytes);
ptx_place_of ptx_result(ptx_decoder *d, unsigned i, unsigned bytes);
ptx_place_of ptx_result_of(ptx_decoder *d, const ptx_operand *o, unsigned bytes);
/* An operand whose register may be wider than `least` bytes: `*out_bytes` says how wide. Immediates are `least` wide,
 * but not less than 2 bytes. */
ptx_place_of ptx_wide_source(ptx_decoder *d, const ptx_operand *o, unsigned least,
                             unsigned *out_bytes);
ptx_place_of ptx_wide_result(ptx_decoder *d, const ptx_operand *o, unsigned least,
                             unsigned *out_bytes);
ptx_place_of ptx_constant_of(ptx_decoder *d, uint64_t bits, unsigned bytes);
ptx_place_of ptx_scratch(ptx_decoder *d, unsigned bytes);
/* The address of a variable, plus `addend`, as a vector of the launch. */
ptx_place_of ptx_address_of(ptx_decoder *d, int32_t function, uint32_t variable, int64_t addend,
                            unsigned bytes, bool generic);
const ptx_variable *ptx_parameter_of(const ptx_function *f, uint32_t index);
/* A parameter of the kernel that is launched, as a vector of the launch. */
ptx_place_of ptx_param_vector(ptx_decoder *d, uint32_t offset, unsigned bytes);
bool ptx_is_constant(const ptx_operand *o, uint64_t *out_bits);

/* ---- one file for each kind of instruction; each decodes d->instruction, or refuses it. False: it is not of this
 * kind. */
bool ptx_decode_integer(ptx_decoder *d);
bool ptx_decode_float(ptx_decoder *d);
bool ptx_decode_compare(ptx_decoder *d);
bool ptx_decode_convert(ptx_decoder *d);
bool ptx_decode_move(ptx_decoder *d);
bool ptx_decode_memory(ptx_decoder *d);
bool ptx_decode_control(ptx_decoder *d);
bool ptx_decode_warp(ptx_decoder *d);

/* ---- slots.c: which registers share a place of the frame */
typedef struct {
    uint32_t *slot;       /* by register; malloc */
    uint32_t bytes;       /* of all slots, without scratch registers */
    uint32_t scratch[4];  /* as in the decoder */
    uint32_t frame_bytes; /* with them */
    uint32_t live_words;  /* 32-bit registers that are live at once at most */
} ptx_slots;
mr_status ptx_slots_assign(const ptx_function *function, ptx_slots *out);

/* The registers that an instruction writes, whole or in part. */
typedef void ptx_visit(void *context, uint32_t index);
void ptx_visit_results(const ptx_instruction *i, ptx_visit *each, void *context);

/* same.c: registers that hold nothing of their own */
mr_status ptx_find_same(ptx_decoder *d, void (*decode)(ptx_decoder *d, uint32_t index));

/* decode.c: fills in routine->codes and frame; its offsets of variables are known. */
mr_status ptx_decode(mr_ptx_module *module, ptx_constants *constants, ptx_run *const *lanes,
                     uint32_t function);

#endif
