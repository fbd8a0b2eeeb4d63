/* The handlers of lanes.h with AVX2 and fused multiply-add: the Makefile compiles this file with -march=x86-64-v3 on
 * x86. They give the same bits as those of lanes.c. */
#define PTX_LANES_TABLE ptx_lanes_v3
#include "ptx/run/lanes_body.h"
