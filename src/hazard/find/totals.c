/* How much was checked and found, what the final sentence may claim from it, and forgetting it all. */
#include "hazard/explain.h"

/* Adds the claims that hold now, and may change. */
static void add_present(const checker *c, mr_claims *claims) {
    bool off = c->mode == MR_HAZARD_OFF;
    if (off && c->machine->counts.next_seq > c->off_since) claims->count[MR_CLAIM_SWITCHED_OFF]++;
    if (off) return;
    claims->count[MR_CLAIM_NOT_RUN] += mr_hazard_functions_left(c, -1);
    claims->count[MR_CLAIM_UNFINISHED] += mr_hazard_kernels_left(c, -1);
}

mr_hazard_totals mr_hazard_get_totals(const mr_hazard *c, bool whole_run) {
    mr_hazard_totals t = c->totals;
    const mr_hazard_totals *before = &c->before_clear;
    add_present(c, &t.claims);
    if (!whole_run) return t;
    t.operations += before->operations;
    t.hazards += before->hazards;
    t.reports += before->reports;
    t.follow_ups += before->follow_ups;
    t.checked_apart += before->checked_apart;
    t.explored += before->explored;
    t.stressed += before->stressed;
    mr_claims_merge(&t.claims, &before->claims);
    t.claims.count[MR_CLAIM_CLEARED] = before->hazards;
    return t;
}

mr_claim mr_hazard_claim(const mr_hazard_totals *t) {
    return t->hazards || !t->operations ? MR_CLAIM_IS_NONE : mr_claims_judge(&t->claims);
}

void mr_hazard_clear(mr_hazard *c) {
    if (c->apart.on) { /* what was found before is not forgotten */
        mr_hazard_drop_from(c, c->check.first);
        c->totals = (mr_hazard_totals){0};
        return;
    }
    mr_hazard_totals run = mr_hazard_get_totals(c, true);
    run.claims = c->totals.claims; /* what is pending now may still run */
    mr_claims_merge(&run.claims, &c->before_clear.claims);
    c->check.first = 0;
    mr_hazard_drop_from(c, 0);
    mr_hazard_advice_clear(c);
    c->before_clear = run;
    c->totals = (mr_hazard_totals){.claims.count[MR_CLAIM_CLEARED] = run.hazards};
}
