/* Edit distance with transpositions (optimal string alignment): see nearest.h. */
#include "bind/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LONGEST MR_NEAREST_LONGEST

static int least(int a, int b) {
    return a < b ? a : b;
}

static int distance(const char *a, const char *b) {
    int length_a = (int)strlen(a), length_b = (int)strlen(b);
    int rows[3][LONGEST + 1];
    if (length_a > LONGEST || length_b > LONGEST) return LONGEST;
    for (int j = 0; j <= length_b; j++) rows[0][j] = j;
    for (int i = 1; i <= length_a; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= length_b; j++) {
            int swap = a[i - 1] != b[j - 1];
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + swap);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

void mr_nearest_begin(mr_nearest *nearest, const char *wanted) {
    *nearest = (mr_nearest){.wanted = wanted, .distance = LONGEST};
}

static int lower(char c) {
    return tolower((unsigned char)c);
}

/* The first letter is rarely mistyped, and short names that differ in it mean something else: clip and flip. */
static bool begins_alike(const char *wanted, const char *known) {
    if (lower(wanted[0]) == lower(known[0])) return true;
    return wanted[0] && wanted[0] == known[1] && wanted[1] == known[0];
}

static char last_of(const char *name) {
    size_t length = strlen(name);
    return length ? name[length - 1] : '\0';
}

/* `add_` works in place and `add` does not; ReLU is a module and `relu` a function. */
static bool is_other_kind(const char *wanted, const char *known) {
    bool is_other_form = (last_of(wanted) == '_') != (last_of(known) == '_');
    return is_other_form || !isupper((unsigned char)*wanted) != !isupper((unsigned char)*known);
}

/* Ties go to a name of the same kind, and then to the one that sorts first, so that the answer does not depend on the
 * order of calls. */
void mr_nearest_offer(mr_nearest *nearest, const char *known) {
    if (!begins_alike(nearest->wanted, known)) return;
    int d = distance(nearest->wanted, known);
    bool is_other = is_other_kind(nearest->wanted, known);
    if (d >= LONGEST || d > nearest->distance) return;
    if (d == nearest->distance) {
        if (is_other > nearest->is_other) return;
        if (is_other == nearest->is_other && strcmp(known, nearest->best) >= 0) return;
    }
    nearest->distance = d;
    nearest->is_other = is_other;
    snprintf(nearest->best, sizeof nearest->best, "%s", known);
}

const char *mr_nearest_found(const mr_nearest *nearest) {
    size_t length = strlen(nearest->wanted);
    int tolerated = length <= 4 ? 1 : length <= 7 ? 2 : 3;
    return nearest->distance <= tolerated ? nearest->best : NULL;
}
