/* A schedule in words: its steps, a line each, and what in it runs against the order of submission. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "explore/tell.h"

/* There are many of them. */
static void write_number(mr_buffer *out, unsigned number) {
    char digits[16], *end = digits + sizeof digits, *digit = end;
    do *--digit = (char)('0' + number % 10);
    while (number /= 10);
    mr_buffer_add(out, digit, (size_t)(end - digit));
}

static void write_place(const explorer *e, mr_site where, mr_buffer *out) {
    where = explore_shown(e, where);
    if (!where.file) return;
    mr_buffer_puts(out, where.file);
    mr_buffer_puts(out, ":");
    write_number(out, where.line > 0 ? (unsigned)where.line : 0);
}

/* ---- texts of items that were told before */

static bool put_told(char *const *told, mr_buffer *out) {
    if (told && *told) mr_buffer_puts(out, *told);
    return told && *told;
}

/* Keeps the text of `out` from `from` on. Without memory for it the text is made again each time. */
static void keep_told(char **told, const mr_buffer *out, size_t from) {
    size_t size = out->size - from;
    if (!told || out->failed || !(*told = malloc(size + 1))) return;
    memcpy(*told, out->data + from, size);
    (*told)[size] = '\0';
}

void tell_command(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    char **told = b->told ? &b->told[item].command : NULL;
    size_t from = out->size;
    if (put_told(told, out)) return;
    mr_program_item it = mr_program_item_at(b->program, item);
    const char *name = it.name ? it.name : mr_command_kinds[it.kind].name;
    if (it.kind == MR_COMMAND_ELAPSED) name = "elapsed_time";
    mr_buffer_printf(out, "`%.60s`", name);
    if (it.where.file) {
        mr_buffer_puts(out, " (");
        write_place(e, it.where, out);
        mr_buffer_puts(out, ")");
    }
    keep_told(told, out, from);
}

void tell_turn(const explorer *e, const branch *b, uint32_t number, uint32_t who, mr_buffer *out) {
    const mr_host_choice *choice = &b->turns.items[number].choice;
    if (who) mr_buffer_printf(out, "rank %u", choice->numbers[who]);
    else mr_buffer_puts(out, "another rank");
    mr_buffer_printf(out, " goes on before rank %u", choice->numbers[0]);
    if (!choice->where.file) return;
    mr_buffer_puts(out, " (");
    write_place(e, choice->where, out);
    mr_buffer_puts(out, ")");
}

void tell_no(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    const mr_host_ask *ask = steer_ask_at(&b->queries, item);
    if (!ask) {
        tell_command(e, b, item, out);
        bool is_time = mr_program_kind_at(b->program, item) == MR_COMMAND_ELAPSED;
        mr_buffer_puts(out, is_time ? " has another answer" : " says no");
        return;
    }
    mr_buffer_printf(out, "task %u still waits at ", ask->task);
    write_place(e, mr_program_item_at(b->program, item).where, out);
}

/* ---- steps */

static bool has_place(const branch *b, uint32_t item) {
    return mr_program_item_at(b->program, item).where.file != NULL;
}

/* Whether the text shows this action of the host between the commands. */
static bool is_shown(const branch *b, uint32_t item) {
    mr_command_id kind = mr_program_kind_at(b->program, item);
    if (kind == MR_COMMAND_DRAIN) return false;
    if (!b->classes) /* proved: no call failed, and nothing asks how far the device is */
        return (kind == MR_COMMAND_HOST_ACCESS || mr_kind_waits(kind)) && has_place(b, item);
    switch ((item_class)b->classes[item]) {
    case ITEM_HOST:
    case ITEM_WAIT:
    case ITEM_QUERY: return has_place(b, item);
    case ITEM_ALLOC: /* the frees before it decide which memory it gets */
        return b->order.aliases && !b->clean && has_place(b, item);
    case ITEM_PLAIN:
    case ITEM_WORK:
    case ITEM_COPY:
    case ITEM_LOOK:
    case ITEM_REFUSED: break;
    }
    return false;
}

/* The free that released the memory which the allocation got; NULL: the program had not used this memory before. */
static const mr_program_item *find_freed(const branch *b, uint32_t alloc) {
    const mr_program_item *items = b->order.items;
    if (b->clean || !items || items[alloc].kind != MR_COMMAND_ALLOC || items[alloc].failed)
        return NULL;
    for (uint32_t k = alloc; k-- > 0;)
        if (items[k].kind == MR_COMMAND_FREE && !items[k].failed &&
            branch_share_memory(items[k].command->u.storage, items[alloc].command->u.storage))
            return &items[k];
    return NULL;
}

static const char *name_of(const branch *b, uint32_t storage) {
    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t k = 0; k < b->order.items[i].operand_count; k++) {
            mr_program_operand o = mr_program_operand_at(b->program, i, k);
            if (o.storage == storage && o.name) return o.name;
        }
    return NULL;
}

/* "reuses the memory of `x` (freed at a.lua:9)" */
static void write_reuse(const explorer *e, const branch *b, const mr_program_item *freed,
                        mr_buffer *out) {
    const char *name = name_of(b, freed->storage);
    mr_buffer_puts(out, "reuses the memory of ");
    if (name) {
        mr_buffer_puts(out, "`");
        mr_text_put(out, name);
        mr_buffer_puts(out, "`");
    } else {
        mr_buffer_puts(out, "the tensor of ");
        write_place(e, freed->command->u.storage->made, out);
    }
    mr_buffer_puts(out, freed->where.file ? " (freed at " : " (freed by the collector");
    write_place(e, freed->where, out);
    mr_buffer_puts(out, ")");
}

/* Spaces up to a column, which began at `from`. */
static void end_column(mr_buffer *out, size_t from, size_t column) {
    static const char spaces[] = "                         ";
    size_t size = out->size - from;
    mr_buffer_add(out, spaces, size < column ? column - size + 1 : 1);
}

static void write_column(mr_buffer *out, const char *name, size_t column) {
    size_t from = out->size;
    mr_buffer_add(out, name, strnlen(name, 100));
    end_column(out, from, column);
}

#define NAME_COLUMN   24
#define STREAM_COLUMN 12

static void write_host_step(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    mr_program_item it = mr_program_item_at(b->program, item);
    const mr_program_item *freed = find_freed(b, item);
    if (freed) {
        write_reuse(e, b, freed, out);
        mr_buffer_puts(out, " ");
    } else {
        write_column(out, it.name ? it.name : "?", NAME_COLUMN);
    }
    write_column(out, "host", STREAM_COLUMN);
    write_place(e, it.where, out);
    mr_buffer_puts(out, "\n");
}

/* Each run creates streams of its own; the text has one number for the same stream of all runs. */
static void write_stream(const explorer *e, const branch *b, uint32_t stream, mr_buffer *out) {
    mr_program_stream s = mr_program_stream_at(b->program, stream);
    bool is_own = !e->first || stream >= mr_program_stream_count(e->first);
    if (s.name) {
        mr_buffer_add(out, s.name, strnlen(s.name, 60));
    } else if (s.kind == MR_STREAM_LEGACY) {
        mr_buffer_puts(out, "default");
    } else {
        mr_buffer_puts(out, "stream #");
        write_number(out, is_own ? s.id : mr_program_stream_at(e->first, stream).id);
    }
}

static bool is_part(const branch *b, uint32_t item) {
    return b->order.first_node && b->order.nodes.items[b->order.first_node[item + 1] - 1].parts > 1;
}

/* Lines of steps that `out` has already. A loop has the same lines again and again. */
enum { STEP_TEXTS = 64 };
typedef struct {
    const char *name;
    mr_site where;
    uint32_t stream;
    size_t at, size; /* in `out`; size 0: none */
} step_text;

static step_text *text_for(step_text *texts, const mr_program_item *it) {
    return &texts[((uint32_t)it->where.line * 8 + it->stream) % STEP_TEXTS];
}

static bool put_text(const step_text *text, const mr_program_item *it, mr_buffer *out) {
    if (!text->size || text->name != it->name || text->stream != it->stream ||
        text->where.file != it->where.file || text->where.line != it->where.line)
        return false;
    mr_buffer_reserve(out, text->size); /* it may move */
    if (!out->failed) mr_buffer_add(out, out->data + text->at, text->size);
    return true;
}

static void write_step(const explorer *e, const branch *b, const plan_step *step, step_text *texts,
                       mr_buffer *out) {
    char name[120], **told = b->told ? &b->told[step->command].step : NULL;
    size_t from = out->size;
    if (put_told(told, out)) return;
    mr_program_item it = mr_program_item_at(b->program, step->command);
    step_text *text = text_for(texts, &it);
    if (!told && put_text(text, &it, out)) return;
    const char *shown = it.name ? it.name : "?";
    if (is_part(b, step->command)) {
        snprintf(name, sizeof name, "%.100s, a part", shown);
        shown = name;
    }
    write_column(out, shown, NAME_COLUMN);
    size_t begin = out->size;
    write_stream(e, b, it.stream, out);
    end_column(out, begin, STREAM_COLUMN);
    write_place(e, it.where, out);
    mr_buffer_puts(out, "\n");
    keep_told(told, out, from);
    *text = (step_text){it.name, it.where, it.stream, from, out->size - from};
}

void tell_steps(const explorer *e, const branch *b, const plan *p, mr_buffer *out) {
    step_text texts[STEP_TEXTS] = {{0}};
    size_t next = 0;
    for (uint32_t item = 0; item <= b->count; item++) {
        for (; next < p->steps.count && p->steps.items[next].at <= item; next++)
            write_step(e, b, &p->steps.items[next], texts, out);
        if (item < b->count && is_shown(b, item)) write_host_step(e, b, item, out);
    }
}

/* ---- what differs from the order of submission */

#define MOST_LINES 16

typedef struct {
    size_t text; /* where it begins in `texts` */
    /* nodes; the line has more words if another line would have the same text; both 0: none */
    uint32_t late, early;
    size_t count;
} difference_line;

typedef struct {
    MR_VEC(difference_line) lines; /* each once */
    mr_buffer texts;               /* theirs, each with its end, and behind them the line at hand */
    size_t at_hand;                /* where it begins */
    size_t more;                   /* different ones that are not kept */
    bool failed;
} differences;

static mr_buffer *begin_line(differences *d) {
    d->at_hand = d->texts.size;
    return &d->texts;
}

static bool is_known(differences *d) {
    for (size_t i = 0; i < d->lines.count; i++) {
        difference_line *known = &d->lines.items[i];
        if (strcmp(d->texts.data + known->text, d->texts.data + d->at_hand) != 0) continue;
        known->count++;
        return true;
    }
    return false;
}

/* The line at hand has been written. */
static void add_line(differences *d, uint32_t late, uint32_t early) {
    mr_buffer_add(&d->texts, "", 1);
    d->failed |= d->texts.failed;
    if (d->failed) return;
    bool known = is_known(d), is_kept = !known && d->lines.count < MOST_LINES;
    d->more += !known && !is_kept;
    if (!is_kept) d->texts.size = d->at_hand;
    else d->failed |= !mr_vec_push(&d->lines, ((difference_line){d->at_hand, late, early, 1}));
}

/* When each node runs: the number of its step. Numbers of the host's nodes lie between those of steps. */
static uint64_t *find_moments(const branch *b, const plan *p, uint32_t until) {
    const order *o = &b->order;
    uint64_t *moments = calloc(o->nodes.count + 1, sizeof *moments);
    uint32_t *parts = calloc(b->count + 1, sizeof *parts);
    size_t before = 0;
    for (uint32_t item = 0; item < until && moments && parts; item++) {
        while (before < p->steps.count && p->steps.items[before].at <= item) before++;
        for (uint32_t n = o->first_node[item]; n < o->first_node[item + 1]; n++)
            moments[n] = 2 * before;
    }
    for (size_t i = 0; i < p->steps.count && moments && parts; i++) {
        uint32_t item = p->steps.items[i].command;
        if (item >= until) continue;
        uint32_t n = o->first_node[item];
        while (n < o->first_node[item + 1] && !o->nodes.items[n].parts) n++; /* the host's own */
        n += parts[item]++;
        if (n < o->first_node[item + 1]) moments[n] = 2 * i + 1;
    }
    free(parts);
    return moments;
}

/* The number of this call among this rank's calls of the operation at the line, from 1; 0: it is the only one. */
static uint32_t find_time(const branch *b, uint32_t item) {
    mr_program_item it = mr_program_item_at(b->program, item);
    uint32_t time = 0, count = 0;
    for (uint32_t i = 0; i < b->count && it.where.file; i++) {
        mr_program_item other = mr_program_item_at(b->program, i);
        bool is_same =
            other.kind == it.kind && other.where.line == it.where.line && other.where.file &&
            other.rank == it.rank && !strcmp(other.where.file, it.where.file) &&
            (other.name == it.name || (other.name && it.name && !strcmp(other.name, it.name)));
        count += is_same;
        if (i == item) time = count;
    }
    return count > 1 ? time : 0;
}

/* "`fill_` (a.lua:7, rank 1, the 2nd time)": of ranks and in a loop the line alone does not tell which one is meant. */
static void write_time(const branch *b, uint32_t item, mr_buffer *out) {
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    uint32_t time = find_time(b, item);
    unsigned rank = mr_program_item_at(b->program, item).rank;
    if ((!time && !rank) || !out->size || out->data[out->size - 1] != ')') return;
    bool is_teen = time % 100 > 10 && time % 100 < 14;
    out->size--;
    if (rank) mr_buffer_printf(out, ", rank %u", rank - 1);
    if (time)
        mr_buffer_printf(out, ", the %u%s time", time,
                         endings[!is_teen && time % 10 < 4 ? time % 10 : 0]);
    mr_buffer_puts(out, ")");
}

/* tell_command, and write_time. */
static void tell_time(const explorer *e, const branch *b, uint32_t item, mr_buffer *out) {
    char **told = b->told ? &b->told[item].timed : NULL;
    size_t from = out->size;
    if (put_told(told, out)) return;
    tell_command(e, b, item, out);
    write_time(b, item, out);
    keep_told(told, out, from);
}

typedef struct {
    bool stream, time;
} side_words;

static void write_side(const explorer *e, const branch *b, const order_node *n, side_words words,
                       mr_buffer *out) {
    mr_buffer stream = {0};
    if (n->parts > 1) mr_buffer_printf(out, "part %u of ", n->part + 1);
    if (words.time) tell_time(e, b, n->item, out);
    else tell_command(e, b, n->item, out);
    if (!words.stream) return;
    mr_buffer_puts(out, n->parts ? " on " : " on the host");
    if (!n->parts) return;
    write_stream(e, b, b->order.items[n->item].stream, &stream);
    if (stream.data) mr_text_put(out, stream.data);
    out->failed |= stream.failed;
    mr_buffer_free(&stream);
}

/* "`sum` (a.lua:7) before `fill_` (a.lua:5)" */
void tell_pair(const explorer *e, const branch *b, uint32_t late, uint32_t early, bool with_time,
               mr_buffer *out) {
    const order_node *x = &b->order.nodes.items[late], *y = &b->order.nodes.items[early];
    mr_site here = b->order.items[x->item].where, there = b->order.items[y->item].where;
    side_words words = {.stream = here.file && there.file && here.line == there.line &&
                                  !strcmp(here.file, there.file),
                        .time = with_time};
    write_side(e, b, x, words, out);
    mr_buffer_puts(out, " before ");
    write_side(e, b, y, words, out);
}

/* branch_takes_part, with the plan's answer. */
static bool takes_part(const branch *b, const plan *p, uint32_t node) {
    const order_node *n = &b->order.nodes.items[node];
    bool asked = false;
    if (n->parts) return true;
    order_is_open(&b->order, n->item, &asked);
    for (size_t i = 0; i < p->answers.count; i++)
        if (p->answers.items[i].at == n->item) asked = p->answers.items[i].yes;
    return branch_takes_part(b, node, asked);
}

/* If memory is reused, the addresses in this schedule decide which bytes are the same. */
static bool knows_row(const branch *b, uint32_t node) {
    return !b->order.aliases && b->known && b->known[node];
}

/* The first node from `early` on in the row of `late`; none: `late`. */
static uint32_t next_in_row(const branch *b, uint32_t early, uint32_t late) {
    const uint64_t *row = b->conflicts + (size_t)late * b->order.words_in_set;
    for (uint32_t i = early / 64; i <= late / 64; i++) {
        uint64_t rest = i == early / 64 ? row[i] & ~(uint64_t)0 << early % 64 : row[i];
        if (rest) return i * 64 + (uint32_t)__builtin_ctzll(rest);
    }
    return late;
}

static void find_pairs(const explorer *e, const branch *b, const plan *p, uint32_t until,
                       const uint64_t *moments, differences *d) {
    const order_node *nodes = b->order.nodes.items;
    for (uint32_t late = 0; late < b->order.first_node[until]; late++) {
        if (nodes[late].marker || !takes_part(b, p, late)) continue;
        bool known = knows_row(b, late);
        for (uint32_t early = 0; early < late && nodes[early].item < nodes[late].item; early++) {
            if (known) early = next_in_row(b, early, late);
            if (early == late || moments[late] >= moments[early]) continue;
            if (!known && !branch_conflict(b, early, late)) continue;
            tell_pair(e, b, late, early, false, begin_line(d));
            add_line(d, late, early);
        }
    }
}

/* Adds queries answered no, and reused memory. `other_end`: the last item had the other answer. */
static void find_answers(const explorer *e, const branch *b, uint32_t until, bool other_end,
                         differences *d) {
    for (uint32_t item = 0; item < until; item++) {
        if (b->classes[item] != ITEM_QUERY && b->classes[item] != ITEM_ALLOC) continue;
        bool no =
            b->classes[item] == ITEM_QUERY &&
            mr_program_item_at(b->program, item).came_true == (other_end && item + 1 == until);
        const mr_program_item *freed = is_shown(b, item) ? find_freed(b, item) : NULL;
        if (!no && !freed) continue;
        mr_buffer *line = begin_line(d);
        if (no) tell_no(e, b, item, line);
        if (freed) {
            tell_command(e, b, item, line);
            mr_buffer_puts(line, " ");
            write_reuse(e, b, freed, line);
        }
        add_line(d, 0, 0);
    }
}

static void find_turns(const explorer *e, const branch *b, const plan *p, differences *d) {
    for (size_t i = 0; i < p->turns.count; i++) {
        tell_turn(e, b, p->turns.items[i].number, p->turns.items[i].who, begin_line(d));
        add_line(d, 0, 0);
    }
}

static void write_lines(const explorer *e, const branch *b, const differences *d, mr_buffer *out) {
    for (size_t i = 0; i < d->lines.count; i++) {
        const difference_line *line = &d->lines.items[i];
        if (line->count == 1 && line->late) tell_pair(e, b, line->late, line->early, true, out);
        else mr_buffer_puts(out, d->texts.data + line->text);
        if (line->count > 1) mr_buffer_printf(out, "  (%zu times)", line->count);
        mr_buffer_puts(out, "\n");
    }
    if (d->more) mr_buffer_printf(out, "and %zu more\n", d->more);
}

static void find_differences(const explorer *e, const branch *b, const plan *p, uint32_t until,
                             bool other_end, differences *d) {
    uint64_t *moments = find_moments(b, p, until);
    d->failed |= !moments;
    if (moments && b->player) find_pairs(e, b, p, until, moments, d);
    if (moments) find_answers(e, b, until, other_end, d);
    free(moments);
}

/* `turns`: of these hosts. */
static void tell(const explorer *e, const branch *turns, const branch *b, const plan *p,
                 uint32_t until, bool other_end, mr_buffer *out) {
    differences d = {0};
    find_turns(e, turns, p, &d);
    if (b->order.first_node)
        /* otherwise a proof replaced the search, and the order is that of submission */
        find_differences(e, b, p, until, other_end, &d);
    write_lines(e, b, &d, out);
    out->failed |= d.failed;
    mr_vec_free(&d.lines);
    mr_buffer_free(&d.texts);
}

void tell_difference(const explorer *e, const branch *b, const plan *p, mr_buffer *out) {
    uint32_t until = b->leaf ? b->key.item + 1 : b->count;
    tell(e, b, b->leaf ? b->before : b, p, until, b->leaf, out);
}

void tell_beginning(const explorer *e, const branch *b, const plan *p, uint32_t until,
                    mr_buffer *out) {
    tell(e, b, b, p, until, true, out);
}
