/* Plans: a schedule as numbers, and as the text that a user keeps. See steer.h. */
#include <stdlib.h>
#include <string.h>

#include "explore/steer.h"

void plan_free(plan *p) {
    mr_vec_free(&p->steps);
    mr_vec_free(&p->answers);
    mr_vec_free(&p->turns);
}

bool plan_copy(plan *to, const plan *from) {
    to->steps.count = to->answers.count = to->turns.count = 0;
    to->until = from->until;
    to->eager = from->eager;
    to->grain = from->grain;
    for (size_t i = 0; i < from->steps.count; i++)
        if (!mr_vec_push(&to->steps, from->steps.items[i])) return false;
    for (size_t i = 0; i < from->answers.count; i++)
        if (!mr_vec_push(&to->answers, from->answers.items[i])) return false;
    for (size_t i = 0; i < from->turns.count; i++)
        if (!mr_vec_push(&to->turns, from->turns.items[i])) return false;
    return true;
}

/* A space, the sign (0: none) and the number: many of them. */
static void write_word(mr_buffer *out, char sign, uint32_t number) {
    char text[16], *end = text + sizeof text, *at = end;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    if (sign) *--at = sign;
    *--at = ' ';
    mr_buffer_add(out, at, (size_t)(end - at));
}

/* Writes these words:
 *
 *     gN       The grain.
 *     e1       The plan is eager.
 *     tN =I    The choice N of hosts, and the host that goes on there.
 *     +N -N    An answer at item N.
 *     ^N       The item that comes behind the query of the answer before.
 *     @N       The host is at item N.
 *     N        A part of the command of item N.
 *     .N       The end.
 */
void plan_write(const plan *p, mr_buffer *out) {
    uint32_t at = UINT32_MAX;
    mr_buffer_puts(out, "mr1");
    write_word(out, 'g', p->grain);
    if (p->eager) write_word(out, 'e', 1);
    for (size_t i = 0; i < p->turns.count; i++) {
        write_word(out, 't', p->turns.items[i].number);
        write_word(out, '=', p->turns.items[i].who);
    }
    for (size_t i = 0; i < p->answers.count; i++) {
        const plan_answer *a = &p->answers.items[i];
        write_word(out, a->yes ? '+' : '-', a->at);
        if (a->behind != PLAN_NO_ITEM) write_word(out, '^', a->behind);
    }
    for (size_t i = 0; i < p->steps.count; i++) {
        const plan_step *s = &p->steps.items[i];
        if (s->at != at) write_word(out, '@', at = s->at);
        write_word(out, 0, s->command);
    }
    write_word(out, '.', p->until);
}

static bool read_number(const char *text, uint32_t *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long number = strtoul(text, &end, 10);
    if (number >= UINT32_MAX || (*end != ' ' && *end != 0)) return false;
    *out = (uint32_t)number;
    return true;
}

/* Reads the older item that comes after a query answered no. */
static bool read_behind(plan *p, uint32_t number) {
    if (!p->answers.count) return false;
    plan_answer *a = &p->answers.items[p->answers.count - 1];
    if (a->yes || a->behind != PLAN_NO_ITEM || number >= a->at) return false;
    a->behind = number;
    return true;
}

static bool read_turn(plan *p, uint32_t number) {
    size_t count = p->turns.count;
    if (count && (!p->turns.items[count - 1].who || p->turns.items[count - 1].number >= number))
        return false;
    return mr_vec_push(&p->turns, ((plan_turn){number, 0}));
}

/* Sets the one that goes on at the turn before. */
static bool read_who(plan *p, uint32_t who) {
    size_t count = p->turns.count;
    if (!count || p->turns.items[count - 1].who || !who) return false;
    p->turns.items[count - 1].who = who;
    return true;
}

/* One word; *io_at is the item that the host is at. */
static bool read_word(plan *p, const char *word, uint32_t *io_at, bool *io_ended) {
    uint32_t number;
    bool is_sign = *word && strchr("@+-^gte=.", *word);
    if (!read_number(word + is_sign, &number) || *io_ended) return false;
    switch (is_sign ? *word : 0) {
    case 'g': p->grain = number; return number <= 4096;
    case '@':
        if (*io_at != UINT32_MAX && number < *io_at) return false;
        *io_at = number;
        return true;
    case '.':
        p->until = number;
        *io_ended = true;
        return true;
    case '+':
    case '-': return mr_vec_push(&p->answers, ((plan_answer){number, *word == '+', PLAN_NO_ITEM}));
    case '^': return read_behind(p, number);
    case 'e': return (p->eager = number == 1);
    case 't': return read_turn(p, number);
    case '=': return read_who(p, number);
    default: break;
    }
    return *io_at != UINT32_MAX && mr_vec_push(&p->steps, ((plan_step){*io_at, number}));
}

bool plan_read(plan *out, const char *text) {
    static const char head[] = "mr1 ";
    uint32_t at = UINT32_MAX;
    bool ended = false;
    *out = (plan){0};
    if (strncmp(text, head, sizeof head - 1) != 0) return false;
    for (text += sizeof head - 1; *text; text += strcspn(text, " ")) {
        text += strspn(text, " ");
        if (!*text) break;
        if (!read_word(out, text, &at, &ended)) {
            plan_free(out);
            return false;
        }
    }
    if (!ended) plan_free(out);
    return ended;
}
