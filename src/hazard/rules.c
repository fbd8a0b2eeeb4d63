/* The words of kinds and modes, and what the words of reports mean. */
#include "hazard/hazard.h"

#include <string.h>

static const struct {
    const char *text;
    bool advice;
} kinds[] = {
#define X(name, text, advice, meaning) {text, advice},
    MR_HAZARD_KIND_LIST(X)
#undef X
};

static const mr_hazard_word meanings[] = {
#define X(name, text, advice, meaning) {text, (advice) ? "advice" : "kind", meaning},
    MR_HAZARD_KIND_LIST(X)
#undef X
#define X(name, text, meaning) {text, "reason", meaning},
        MR_HAZARD_REASON_LIST(X)
#undef X
};

static const char *const modes[] = {"off", "warn", "error", "collect"};

const char *mr_hazard_kind_text(mr_hazard_kind kind) {
    return kinds[kind].text;
}

bool mr_hazard_kind_is_advice(mr_hazard_kind kind) {
    return kinds[kind].advice;
}

bool mr_hazard_kind_find(const char *text, mr_hazard_kind *out_kind) {
    for (int i = 0; i < MR_HAZARD_KIND_COUNT; i++) {
        if (strcmp(kinds[i].text, text) != 0) continue;
        *out_kind = (mr_hazard_kind)i;
        return true;
    }
    return false;
}

bool mr_hazard_word_at(int i, mr_hazard_word *out_word) {
    if (i < 0 || (size_t)i >= sizeof meanings / sizeof *meanings) return false;
    *out_word = meanings[i];
    return true;
}

bool mr_hazard_mode_find(const char *text, mr_hazard_mode *out_mode) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i], text) != 0) continue;
        *out_mode = (mr_hazard_mode)i;
        return true;
    }
    return false;
}

const char *mr_hazard_mode_text(mr_hazard_mode mode) {
    return modes[mode];
}
