/* The choosers by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "virtual/chooser.h"

static mr_status random_by_name(const char *digits, mr_chooser **out_chooser) {
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || errno)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "chooser `random:%s`: expected a whole number as the seed, as in random:42",
                       digits);
    return mr_virtual_chooser_random(seed, out_chooser);
}

mr_status mr_virtual_chooser_create(vgpu *gpu, const char *name, mr_chooser **out_chooser) {
    static const char random_prefix[] = "random:";
    *out_chooser = NULL;
    if (strcmp(name, "timed") == 0) return mr_virtual_chooser_timed(out_chooser);
    if (strcmp(name, "manual") == 0) return mr_virtual_chooser_manual(out_chooser);
    if (strcmp(name, "adversarial") == 0) return mr_virtual_chooser_adversarial(gpu, out_chooser);
    if (strcmp(name, "random") == 0) return mr_virtual_chooser_random(0, out_chooser);
    if (strncmp(name, random_prefix, sizeof random_prefix - 1) == 0)
        return random_by_name(name + sizeof random_prefix - 1, out_chooser);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "there is no chooser `%s`: expected timed, adversarial, random:SEED or manual",
                   name);
}
