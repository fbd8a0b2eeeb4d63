/* Free places for texts: see labels.h. */
#include "trace/picture/labels.h"

#include <math.h>

#define HEIGHT 12
#define SPACE  4 /* beside a text */
#define STEP   4

bool mr_labels_are_free(const mr_labels *labels, const mr_label *wanted) {
    for (size_t i = 0; i < labels->count; i++) {
        const mr_label *one = &labels->items[i];
        double apart = fabs(one->middle - wanted->middle);
        bool beside = apart >= (one->width + wanted->width) / 2 + SPACE;
        int below = one->y - wanted->y;
        if (!beside && below < HEIGHT && below > -HEIGHT) return false;
    }
    return true;
}

bool mr_labels_move(const mr_labels *labels, mr_label *label, int reach, int first, int last) {
    for (int away = 0; away <= reach; away += STEP) {
        for (int side = -1; side <= 1; side += 2) {
            mr_label there = {label->middle + side * away, label->width, label->y};
            bool is_inside =
                there.middle - there.width / 2 >= first && there.middle + there.width / 2 <= last;
            if (!is_inside || !mr_labels_are_free(labels, &there)) continue;
            *label = there;
            return true;
        }
    }
    return false;
}
