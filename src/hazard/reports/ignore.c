/* Rules of the script about reports to ignore. A rule applies to a report as a whole, and counts the reports that it
 * suppressed. */
#include "hazard/explain.h"

#include "base/text.h"

#include <limits.h>
#include <string.h>

static bool place_matches(const ignore_rule *rule, mr_site where) {
    if (!where.file) return false;
    if (!mr_hazard_file_ends(where.file, rule->file->text)) return false;
    return rule->line == 0 || rule->line == where.line;
}

bool mr_hazard_ignored(checker *c, const mr_hazard_report *draft, bool only_look) {
    for (size_t i = 0; i < c->reports.ignores.count; i++) {
        ignore_rule *rule = &c->reports.ignores.items[i];
        if (rule->kind >= 0 && rule->kind != (int)draft->kind) continue;
        if (rule->tensor && strcmp(rule->tensor->text, draft->tensor) != 0) continue;
        if (rule->file && !place_matches(rule, draft->first.where) &&
            !place_matches(rule, draft->second.where))
            continue;
        if (!only_look) rule->count++;
        return true;
    }
    return false;
}

mr_status mr_hazard_ignore(mr_hazard *c, const char *tensor, int kind, const char *where) {
    ignore_rule rule = {.kind = kind};
    size_t file_size = 0;
    if (where && mr_hazard_is_entry(c, where)) file_size = strlen(where);
    else if (where && !mr_hazard_place_parse(where, &file_size, &rule.line))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "hazard.ignore: where=\"%s\": expected a line number from 1 to %d", where,
                       INT_MAX);
    if (tensor) rule.tensor = mr_name_new(tensor, strlen(tensor));
    if (where) rule.file = mr_name_new(where, file_size);
    if ((!tensor || rule.tensor) && (!where || rule.file) && mr_vec_push(&c->reports.ignores, rule))
        return MR_OK;
    mr_name_release(rule.tensor);
    mr_name_release(rule.file);
    return mr_no_memory("for another rule");
}

void mr_hazard_clear_ignores(mr_hazard *c) {
    for (size_t i = 0; i < c->reports.ignores.count; i++) {
        mr_name_release(c->reports.ignores.items[i].tensor);
        mr_name_release(c->reports.ignores.items[i].file);
    }
    c->reports.ignores.count = 0;
}

void mr_hazard_describe_ignores(const mr_hazard *c, mr_buffer *out) {
    for (size_t i = 0; i < c->reports.ignores.count; i++) {
        const ignore_rule *rule = &c->reports.ignores.items[i];
        mr_buffer_printf(out, "ignored %llu:", (unsigned long long)rule->count);
        if (rule->tensor) {
            mr_buffer_puts(out, " tensor=");
            mr_text_put_value(out, rule->tensor->text);
        }
        if (rule->kind >= 0)
            mr_buffer_printf(out, " kind=%s", mr_hazard_kind_text((mr_hazard_kind)rule->kind));
        if (rule->file) {
            char place[PLACE_SIZE];
            mr_hazard_place((mr_site){rule->file->text, rule->line}, place, sizeof place);
            mr_buffer_puts(out, " where=");
            mr_text_put_value(out, rule->line ? place : rule->file->text);
        }
        mr_buffer_puts(out, "\n");
    }
}
