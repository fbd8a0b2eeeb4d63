/* A graph in the formats of files: for Graphviz, as JSON, and as a picture. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "graph/state.h"

static void put_place(mr_buffer *out, mr_site where) {
    if (!where.file) return;
    mr_text_put(out, where.file);
    mr_buffer_printf(out, ":%d", where.line);
}

/* ---- Graphviz */

/* DOT's own escapes are those of \ and ". */
static void put_label(mr_buffer *out, const char *text) {
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    out->failed |= shown.failed;
    for (size_t i = 0; i < shown.size; i++) {
        if (shown.data[i] == '"' || shown.data[i] == '\\') mr_buffer_puts(out, "\\");
        mr_buffer_add(out, &shown.data[i], 1);
    }
    mr_buffer_free(&shown);
}

void mr_graph_write_dot(const mr_executable *x, mr_buffer *out) {
    const mr_graph *graph = x->graph;
    mr_buffer place = {0};
    mr_buffer_printf(out,
                     "digraph graph_%" PRIu64 " {\n    node [shape=box, fontname=monospace];\n",
                     mr_graph_number(graph));
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const mr_command *command = x->commands[i];
        mr_buffer_printf(out, "    n%u [label=\"%u %s: ", i + 1, i + 1,
                         mr_graph_kind_text(command));
        put_label(out, command->name);
        mr_buffer_puts(out, "\\n");
        place.size = 0;
        put_place(&place, command->where);
        if (place.size) put_label(out, place.data);
        mr_buffer_puts(out, x->enabled[i] ? "\"];\n" : "\", style=dashed];\n");
    }
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        mr_graph_node n = mr_graph_node_at(graph, i);
        for (uint32_t k = 0; k < n.after_count; k++)
            mr_buffer_printf(out, "    n%u -> n%u;\n", n.after[k] + 1, i + 1);
    }
    mr_buffer_puts(out, "}\n");
    out->failed |= place.failed;
    mr_buffer_free(&place);
}

/* ---- JSON */

static void put_json_operands(const mr_command *command, mr_buffer *out) {
    mr_buffer_puts(out, ", \"operands\": [");
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *o = &command->operands[k];
        const char *access = (o->access & MR_ACCESSES) == MR_ACCESSES ? "rw"
                             : o->access & MR_WRITE                   ? "w"
                                                                      : "r";
        mr_buffer_printf(out, "%s{\"access\": \"%s\", \"storage\": %" PRIu64, k ? ", " : "", access,
                         o->tensor->storage->id);
        if (o->tensor->name) {
            mr_buffer_puts(out, ", \"name\": ");
            mr_text_put_json(out, mr_name_text(o->tensor->name));
        }
        mr_buffer_puts(out, "}");
    }
    mr_buffer_puts(out, "]");
}

static void put_json_node(const mr_executable *x, uint32_t i, mr_buffer *out) {
    mr_graph_node n = mr_executable_node_at(x, i);
    mr_buffer place = {0};
    mr_buffer_printf(out, "    {\"node\": %u, \"kind\": \"%s\", \"name\": ", i + 1,
                     mr_graph_kind_text(n.command));
    mr_text_put_json(out, n.command->name);
    if (n.command->where.file) {
        mr_buffer_puts(out, ", \"where\": ");
        mr_buffer_printf(&place, "%s:%d", n.command->where.file, n.command->where.line);
        mr_text_put_json(out, place.data ? place.data : "");
        out->failed |= place.failed;
        mr_buffer_free(&place);
    }
    mr_buffer_printf(out, ", \"enabled\": %s, \"after\": [", x->enabled[i] ? "true" : "false");
    for (uint32_t k = 0; k < n.after_count; k++)
        mr_buffer_printf(out, "%s%u", k ? ", " : "", n.after[k] + 1);
    mr_buffer_puts(out, "]");
    put_json_operands(n.command, out);
    mr_buffer_puts(out, "}");
}

void mr_graph_write_json(const mr_executable *x, mr_buffer *out) {
    const mr_graph *graph = x->graph;
    mr_buffer_printf(out, "{\n  \"graph\": %" PRIu64 ",\n  \"nodes\": [\n", mr_graph_number(graph));
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        put_json_node(x, i, out);
        mr_buffer_puts(out, i + 1 < graph->nodes.count ? ",\n" : "\n");
    }
    mr_buffer_puts(out, "  ]\n}\n");
}

/* ---- a picture: a row for each length of the longest way to a node */

enum { BOX_WIDTH = 170, BOX_HEIGHT = 40, GAP_X = 24, GAP_Y = 36, MARGIN = 16 };

typedef struct {
    uint32_t row, column;
} box;

static uint32_t x_of(box b) {
    return MARGIN + b.column * (BOX_WIDTH + GAP_X);
}

static uint32_t y_of(box b) {
    return MARGIN + b.row * (BOX_HEIGHT + GAP_Y);
}

/* `used`: by row, how many boxes it has. */
static box place_boxes(const mr_graph *graph, box *boxes, uint32_t *used) {
    box most = {0};
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        mr_graph_node n = mr_graph_node_at(graph, i);
        boxes[i].row = 0;
        for (uint32_t k = 0; k < n.after_count; k++)
            if (boxes[n.after[k]].row >= boxes[i].row) boxes[i].row = boxes[n.after[k]].row + 1;
        boxes[i].column = used[boxes[i].row]++;
        if (boxes[i].row > most.row) most.row = boxes[i].row;
        if (boxes[i].column > most.column) most.column = boxes[i].column;
    }
    return most;
}

static void put_xml(mr_buffer *out, const char *text) {
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    out->failed |= shown.failed;
    for (size_t i = 0; i < shown.size; i++) {
        char c = shown.data[i];
        if (c == '<') mr_buffer_puts(out, "&lt;");
        else if (c == '&') mr_buffer_puts(out, "&amp;");
        else mr_buffer_add(out, &c, 1);
    }
    mr_buffer_free(&shown);
}

static void put_box(const mr_command *command, uint32_t i, box b, bool on, mr_buffer *out) {
    char name[40];
    mr_buffer place = {0};
    put_place(&place, command->where);
    mr_text_copy(name, 24, command->name);
    mr_buffer_printf(out,
                     "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
                     "stroke=\"#555\"%s/>\n<text x=\"%u\" y=\"%u\">%u ",
                     x_of(b), y_of(b), BOX_WIDTH, BOX_HEIGHT,
                     command->kind == MR_COMMAND_OP ? "#dce9f7" : "#f3ead9",
                     on ? "" : " stroke-dasharray=\"4\"", x_of(b) + 8, y_of(b) + 17, i + 1);
    put_xml(out, name);
    mr_text_copy_end(name, 28, place.data ? place.data : "");
    mr_buffer_printf(out, "</text>\n<text x=\"%u\" y=\"%u\" fill=\"#666\">", x_of(b) + 8,
                     y_of(b) + 32);
    put_xml(out, name);
    mr_buffer_puts(out, "</text>\n");
    out->failed |= place.failed;
    mr_buffer_free(&place);
}

static void put_edge(box from, box to, mr_buffer *out) {
    mr_buffer_printf(out,
                     "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" stroke=\"#555\" "
                     "marker-end=\"url(#arrow)\"/>\n",
                     x_of(from) + BOX_WIDTH / 2, y_of(from) + BOX_HEIGHT, x_of(to) + BOX_WIDTH / 2,
                     y_of(to));
}

void mr_graph_write_svg(const mr_executable *x, mr_buffer *out) {
    const mr_graph *graph = x->graph;
    size_t count = graph->nodes.count;
    box *boxes = calloc(count + 1, sizeof *boxes);
    uint32_t *used = calloc(count + 1, sizeof *used);
    if (!boxes || !used) {
        out->failed = true;
        free(boxes);
        free(used);
        return;
    }
    box most = place_boxes(graph, boxes, used);
    mr_buffer_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                     "font-family=\"monospace\" font-size=\"12\">\n<defs><marker id=\"arrow\" "
                     "markerWidth=\"8\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\">"
                     "<path d=\"M0,0 L8,4 L0,8 z\" fill=\"#555\"/></marker></defs>\n"
                     "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                     2 * MARGIN + (most.column + 1) * (BOX_WIDTH + GAP_X),
                     2 * MARGIN + (most.row + 1) * (BOX_HEIGHT + GAP_Y));
    for (uint32_t i = 0; i < count; i++) {
        mr_graph_node n = mr_graph_node_at(graph, i);
        for (uint32_t k = 0; k < n.after_count; k++) put_edge(boxes[n.after[k]], boxes[i], out);
    }
    for (uint32_t i = 0; i < count; i++) put_box(x->commands[i], i, boxes[i], x->enabled[i], out);
    mr_buffer_puts(out, "</svg>\n");
    free(boxes);
    free(used);
}
