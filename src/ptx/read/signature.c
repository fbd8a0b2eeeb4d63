/* Results and parameters of functions, entries and prototypes. */
#include "ptx/read/reader.h"

#define MOST_PARAMETERS 4096

static mr_status read_parameter(ptx_reader *r, ptx_variable *out) {
    ptx_declaration attributes, declaration;
    bool is_param;
    if (ptx_at_dot(r, "reg"))
        return ptx_fail(r, r->token.line, MR_CODE_NOT_SUPPORTED,
                        "a parameter in a register is not covered: declare it as `.param`");
    MR_TRY(ptx_accept_dot(r, "param", &is_param));
    if (!is_param) return ptx_expected(r, "`.param`");
    MR_TRY(ptx_read_attributes(r, PTX_PARAM, &attributes));
    MR_TRY(ptx_read_declarator(r, &attributes, &declaration));
    *out = declaration.variable;
    return MR_OK;
}

/* Nothing, or `(...)`. */
static mr_status read_list(ptx_reader *r, const ptx_variable **out_items, uint32_t *out_count) {
    MR_VEC(ptx_variable) list = {0};
    ptx_variable parameter;
    mr_status status;
    bool more;
    *out_count = 0;
    *out_items = NULL;
    MR_TRY(ptx_accept(r, '(', &more));
    if (!more) return MR_OK;
    status = ptx_accept(r, ')', &more);
    for (more = !more; !status && more;) {
        if (list.count == MOST_PARAMETERS)
            status = ptx_wrong(r, "there are more than %d parameters", MOST_PARAMETERS);
        if (!status) status = read_parameter(r, &parameter);
        if (!status && !mr_vec_push(&list, parameter)) status = ptx_no_memory(r);
        if (!status) status = ptx_accept(r, ',', &more);
        if (!status && !more) status = ptx_expect(r, ')', "after the parameters");
    }
    *out_count = (uint32_t)list.count;
    *out_items = ptx_copy(r, list.items, list.count, sizeof *list.items);
    if (!status && !*out_items) status = ptx_no_memory(r);
    mr_vec_free(&list);
    return status;
}

mr_status ptx_read_signature(ptx_reader *r, ptx_signature *out, ptx_name *out_name) {
    MR_TRY(read_list(r, &out->results, &out->result_count));
    MR_TRY(ptx_take_name(r, "the name of a function", out_name));
    return read_list(r, &out->parameters, &out->parameter_count);
}
