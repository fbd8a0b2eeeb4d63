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

/* Ties go to the name that sorts first, so that the answer does not hang on the order of offering. */
void mr_nearest_offer(mr_nearest *nearest, const char *known) {
    if (!begins_alike(nearest->wanted, known)) return;
    int d = distance(nearest->wanted, known);
    if (d >= LONGEST || d > nearest->distance) return;
    if (d == nearest->distance && strcmp(known, nearest->best) >= 0) return;
    nearest->distance = d;
    snprintf(nearest->best, sizeof nearest->best, "%s", known);
}

const char *mr_nearest_found(const mr_nearest *nearest) {
    size_t length = strlen(nearest->wanted);
    int tolerated = length <= 4 ? 1 : length <= 7 ? 2 : 3;
    return nearest->distance <= tolerated ? nearest->best : NULL;
}
