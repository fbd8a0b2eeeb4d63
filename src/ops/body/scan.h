/* The operations by which cumsum and cumprod combine. */
#ifndef MR_OPS_BODY_SCAN_H
#define MR_OPS_BODY_SCAN_H

typedef struct mr_scan mr_scan;
extern const mr_scan mr_scan_cumsum, mr_scan_cumprod;

#endif
