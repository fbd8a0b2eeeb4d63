/* Decodes branches, calls and ends. */
#include "ptx/decode/decode.h"

#include <stdio.h>
#include <string.h>

static void decode_bra(ptx_decoder *d) {
    ptx_take(d, PTX_MOD_uni);
    if (!ptx_needs(d, 1, 0)) return;
    const ptx_operand *o = &d->instruction->operands[0];
    if (o->kind != PTX_LABEL) {
        ptx_reject(d, "it must name a label");
        return;
    }
    ptx_emit(d, ptx_run_branch, PTX_NO_PART, 0, 0, 0);
    ptx_fix_later(d, PTX_FIX_TARGET, o->index);
}

static void decode_brx(ptx_decoder *d) {
    ptx_take(d, PTX_MOD_idx);
    ptx_take(d, PTX_MOD_uni);
    if (!ptx_needs(d, 2, 0)) return;
    const ptx_operand *o = &d->instruction->operands[1];
    if (o->kind != PTX_TARGETS) {
        ptx_reject(d, "it must name a list of targets");
        return;
    }
    ptx_place_of a = ptx_source(d, 0, 4);
    ptx_emit(d, ptx_run_branch_index, PTX_NO_PART, a, d->function->targets[o->index].count, 0);
    ptx_fix_later(d, PTX_FIX_TABLE, o->index);
}

/* ---- calls */

/* Where the .param variables of a list lie in local memory. */
static bool read_params(ptx_decoder *d, const ptx_operand *list, const ptx_variable *formal,
                        uint32_t formal_count, bool check, const uint32_t **out_at,
                        const uint32_t **out_bytes, uint32_t *out_count) {
    uint32_t count = list->kind == PTX_LIST ? list->count : 0;
    uint32_t *at = mr_region_alloc(&d->module->region, (2 * count + 1) * sizeof *at);
    if (!at) {
        if (!d->failure) d->failure = mr_no_memory("to decode PTX");
        return false;
    }
    if (check && count != formal_count) {
        ptx_reject(d, "it gives %u parameters, and the function has %u", count, formal_count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand *o = &list->list[i];
        bool is_param =
            o->kind == PTX_LOCAL_VARIABLE && d->function->variables[o->index].space == PTX_PARAM;
        if (!is_param && o->kind != PTX_PARAMETER) {
            ptx_refuse(d, "parameters of a call must be .param variables");
            return false;
        }
        if (o->kind == PTX_PARAMETER && d->function->is_entry) {
            ptx_refuse(d, "a parameter of the kernel cannot be passed on as it is");
            return false;
        }
        const ptx_variable *v =
            is_param ? &d->function->variables[o->index] : ptx_parameter_of(d->function, o->index);
        at[i] = is_param ? d->routine->variable_offset[o->index]
                         : d->routine->parameter_offset[o->index];
        at[count + i] = (uint32_t)v->bytes;
        if (check && v->bytes != formal[i].bytes) {
            ptx_reject(d, "parameter %u has %llu bytes, and the function's has %llu", i + 1,
                       (unsigned long long)v->bytes, (unsigned long long)formal[i].bytes);
            return false;
        }
    }
    *out_at = at, *out_bytes = at + count, *out_count = count;
    return true;
}

static void note_callee(ptx_decoder *d, uint32_t function) {
    for (uint32_t i = 0; i < d->routine->callee_count; i++) {
        if (d->routine->callees[i] == function) return;
    }
    uint32_t count = d->routine->callee_count;
    uint32_t *list = mr_region_alloc(&d->module->region, (count + 1) * sizeof *list);
    if (!list) {
        if (!d->failure) d->failure = mr_no_memory("to decode PTX");
        return;
    }
    if (count) memcpy(list, d->routine->callees, count * sizeof *list);
    list[count] = function;
    d->routine->callees = list;
    d->routine->callee_count = count + 1;
}

static const char *reason_of_missing(const char *name, char *out, size_t size) {
    if (strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0)
        return "the virtual GPU has no heap for kernels: allocate a tensor (mr.empty), and pass it "
               "to "
               "the kernel";
    snprintf(out, size,
             "the module does not define the function `%s`, and the device provides none of that "
             "name",
             name);
    return out;
}

static void decode_call(ptx_decoder *d) {
    const ptx_instruction *i = d->instruction;
    char why[300];
    ptx_take(d, PTX_MOD_uni);
    if (i->operand_count < 3 || i->operand_count > 4) {
        ptx_reject(d, "it must have results, a function and parameters");
        return;
    }
    const ptx_operand *callee = &i->operands[1];
    const ptx_tree *tree = &d->module->tree;
    const ptx_signature *signature = NULL;
    ptx_run *run = ptx_run_call;
    ptx_call_code *call = mr_region_alloc(&d->module->region, sizeof *call);
    if (!call) {
        if (!d->failure) d->failure = mr_no_memory("to decode PTX");
        return;
    }
    ptx_place_of address = 0;
    if (callee->kind == PTX_FUNCTION) {
        const ptx_function *f = &tree->functions[callee->index];
        signature = &f->signature;
        call->callee = &d->module->routines[callee->index];
        if (!f->is_defined) {
            run = ptx_find_system(f->name, f->signature.parameter_count);
            if (!run) {
                ptx_refuse(d, "%s", reason_of_missing(f->name, why, sizeof why));
                return;
            }
        } else if (f->is_entry) {
            ptx_reject(d, "`%s` is a kernel, which cannot be called", f->name);
            return;
        } else {
            note_callee(d, callee->index);
        }
    } else {
        run = ptx_run_call_indirect;
        d->routine->calls_indirectly = true;
        address = ptx_source(d, 1, 8);
        if (i->operand_count == 4 && i->operands[3].kind == PTX_PROTOTYPE) {
            signature = &d->function->prototypes[i->operands[3].index];
        }
    }
    bool check = signature != NULL;
    if (!read_params(d, &i->operands[2], check ? signature->parameters : NULL,
                     check ? signature->parameter_count : 0, check, &call->arguments,
                     &call->argument_bytes, &call->argument_count) ||
        !read_params(d, &i->operands[0], check ? signature->results : NULL,
                     check ? signature->result_count : 0, check, &call->results,
                     &call->result_bytes, &call->result_count)) {
        return;
    }
    ptx_code *code = ptx_emit(d, run, PTX_NO_PART, address, 0, 0);
    if (code) code->call = call;
    /* Lanes that call different functions meet again after the call. */
    if (run == ptx_run_call_indirect) {
        ptx_place_of guard = d->guard;
        uint32_t flip = d->guard_flip;
        ptx_emit(d, ptx_run_join, PTX_NO_PART, 0, 0, 0);
        d->guard = guard, d->guard_flip = flip;
    }
}

bool ptx_decode_control(ptx_decoder *d) {
    ptx_run *run;
    switch ((ptx_opcode)d->instruction->opcode) {
    case PTX_OP_bra: decode_bra(d); return true;
    case PTX_OP_brx: decode_brx(d); return true;
    case PTX_OP_call: decode_call(d); return true;
    case PTX_OP_ret: run = ptx_run_return; break;
    case PTX_OP_exit: run = ptx_run_exit; break;
    case PTX_OP_trap: run = ptx_run_trap; break;
    /* Without a debugger, and with one kernel at a time, these change nothing. */
    case PTX_OP_brkpt:
    case PTX_OP_pmevent:
    case PTX_OP_nanosleep:
    case PTX_OP_griddepcontrol: run = ptx_run_nothing; break;
    default: return false;
    }
    ptx_take(d, PTX_MOD_uni);
    ptx_take(d, PTX_MOD_launch_dependents);
    ptx_take(d, PTX_MOD_wait);
    ptx_emit(d, run, PTX_NO_PART, 0, 0, 0);
    return true;
}
