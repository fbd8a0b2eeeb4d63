/* Settings: one list (settings.h) makes the struct, the table that scripts see, and the checks. */
#include "virtual/settings.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const mr_setting_info infos[] = {
#define X(name, type, initial, least, greatest, help) {#name, type, help},
    MR_SETTING_LIST(X)
#undef X
};

static const struct {
    size_t offset;
    int64_t initial, least, greatest;
} rules[] = {
#define X(name, type, initial, least, greatest, help)                                              \
    {offsetof(settings, name), initial, least, greatest},
    MR_SETTING_LIST(X)
#undef X
};

enum { SETTING_COUNT = sizeof infos / sizeof *infos };

static int64_t *place(settings *set, int i) {
    return (int64_t *)((char *)set + rules[i].offset);
}

void mr_settings_init(settings *set) {
    for (int i = 0; i < SETTING_COUNT; i++) *place(set, i) = rules[i].initial;
}

const mr_setting_info *mr_settings_list(size_t *out_count) {
    *out_count = SETTING_COUNT;
    return infos;
}

static mr_status find(const char *name, int *out_index) {
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(infos[i].name, name) == 0) {
            *out_index = i;
            return MR_OK;
        }
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "there is no setting `%s`", name);
}

mr_status mr_settings_get(const settings *set, const char *name, int64_t *out_value) {
    int i = 0;
    MR_TRY(find(name, &i));
    *out_value = *place((settings *)set, i);
    return MR_OK;
}

mr_status mr_settings_set(settings *set, const char *name, int64_t value) {
    int i = 0;
    MR_TRY(find(name, &i));
    if (value < rules[i].least)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "setting `%s`: %" PRId64 ", expected at least %" PRId64, name, value,
                       rules[i].least);
    /* Beyond the greatest means "as much as there is". */
    *place(set, i) = value > rules[i].greatest ? rules[i].greatest : value;
    return MR_OK;
}
