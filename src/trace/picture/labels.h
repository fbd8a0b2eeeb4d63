/* Where texts of a picture stand, so that no two are over each other. All numbers are pixels. */
#ifndef MR_TRACE_LABELS_H
#define MR_TRACE_LABELS_H

#include <stdbool.h>

#include "base/vec.h"

typedef struct {
    double middle, width;
    int y; /* of the base line */
} mr_label;
typedef MR_VEC(mr_label) mr_labels;

/* Whether no label is over that place. */
bool mr_labels_are_free(const mr_labels *labels, const mr_label *wanted);

/* Moves the label to the free place nearest to it on its line, at most `reach` away and within first ... last; false:
 * there is none, and it has not moved. */
bool mr_labels_move(const mr_labels *labels, mr_label *label, int reach, int first, int last);

#endif
