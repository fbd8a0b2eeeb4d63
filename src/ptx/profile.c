/* Which kind of work each instruction is: see profile.h. */
#include "ptx/profile.h"

const char *ptx_class_text(ptx_class which) {
    static const char *const texts[] = {
#define X(name, text) text,
        PTX_CLASSES(X)
#undef X
    };
    return texts[which];
}

static ptx_class class_of_memory(const ptx_instruction *i) {
    if (ptx_has(i, PTX_MOD_shared) || ptx_has(i, PTX_MOD_shared_cta)) return PTX_CLASS_SHARED;
    if (ptx_has(i, PTX_MOD_local)) return PTX_CLASS_LOCAL;
    if (ptx_has(i, PTX_MOD_const_) || ptx_has(i, PTX_MOD_param)) return PTX_CLASS_CONSTANT;
    return PTX_CLASS_GLOBAL; /* generic addresses, too: most of them are global */
}

static ptx_class class_of_type(const ptx_instruction *i) {
    switch (i->type_count ? (ptx_type)i->types[0] : PTX_NO_TYPE) {
    case PTX_f32: return PTX_CLASS_F32;
    case PTX_f64: return PTX_CLASS_F64;
    case PTX_f16:
    case PTX_bf16:
    case PTX_f16x2:
    case PTX_bf16x2: return PTX_CLASS_HALF;
    case PTX_pred: return PTX_CLASS_PREDICATE;
    default: return PTX_CLASS_INTEGER;
    }
}

ptx_class ptx_class_of(const ptx_instruction *i) {
    switch ((ptx_opcode)i->opcode) {
    case PTX_OP_ld:
    case PTX_OP_ldu:
    case PTX_OP_st:
    case PTX_OP_prefetch:
    case PTX_OP_prefetchu:
    case PTX_OP_discard: return class_of_memory(i);
    case PTX_OP_cp: return PTX_CLASS_GLOBAL;
    case PTX_OP_atom:
    case PTX_OP_red: return PTX_CLASS_ATOMIC;
    case PTX_OP_bra:
    case PTX_OP_brx:
    case PTX_OP_call:
    case PTX_OP_ret:
    case PTX_OP_exit:
    case PTX_OP_trap:
    case PTX_OP_brkpt:
    case PTX_OP_nanosleep:
    case PTX_OP_pmevent:
    case PTX_OP_griddepcontrol: return PTX_CLASS_CONTROL;
    case PTX_OP_bar:
    case PTX_OP_barrier:
    case PTX_OP_membar:
    case PTX_OP_fence: return PTX_CLASS_BARRIER;
    case PTX_OP_shfl:
    case PTX_OP_vote:
    case PTX_OP_match:
    case PTX_OP_redux:
    case PTX_OP_activemask: return PTX_CLASS_WARP;
    case PTX_OP_setp:
    case PTX_OP_set:
    case PTX_OP_testp:
    case PTX_OP_isspacep: return PTX_CLASS_PREDICATE;
    case PTX_OP_mov:
    case PTX_OP_selp:
    case PTX_OP_slct:
    case PTX_OP_cvta: return PTX_CLASS_MOVE;
    case PTX_OP_cvt: return PTX_CLASS_CONVERSION;
    case PTX_OP_sin:
    case PTX_OP_cos:
    case PTX_OP_ex2:
    case PTX_OP_lg2:
    case PTX_OP_tanh:
    case PTX_OP_rsqrt: return PTX_CLASS_SPECIAL;
    case PTX_OP_sqrt:
    case PTX_OP_rcp: return ptx_has(i, PTX_MOD_approx) ? PTX_CLASS_SPECIAL : class_of_type(i);
    default: return class_of_type(i);
    }
}
