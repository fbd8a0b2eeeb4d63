/* The parts of PTX that the virtual GPU leaves out, by their words. So an error can say what the kernel uses,
 * rather than only which word was not known. */
#include <string.h>

#include "ptx/read/reader.h"

#define TENSOR         "it belongs to the tensor cores"
#define TEXTURE        "it belongs to textures and surfaces"
#define BULK           "it belongs to bulk copies (TMA)"
#define MBARRIER       "it belongs to barrier objects in shared memory"
#define CLUSTER        "it belongs to clusters of thread blocks"
#define VIDEO          "it is a video instruction"
#define NARROW         "it belongs to floating-point types of 8 bits and less"
#define PROXY          "it orders accesses on different hardware paths, such as bulk copies"
#define MULTI          "it belongs to memory that several GPUs share"
#define REGISTER_SHARE "it moves registers from one group of warps to another"
#define DEBUGGER       "it reads the counters of a profiler"

typedef struct {
    const char *word; /* with its dot if it has one; with `*` at the end: all words that begin so */
    const char *group;
} row;

static const row rows[] = {
    {"wmma", TENSOR},
    {"mma", TENSOR},
    {"wgmma", TENSOR},
    {"ldmatrix", TENSOR},
    {"stmatrix", TENSOR},
    {"movmatrix", TENSOR},
    {"tcgen05", TENSOR},
    {".b1", TENSOR},
    {".sp", TENSOR},
    {"tex", TEXTURE},
    {"tld4", TEXTURE},
    {"txq", TEXTURE},
    {"suld", TEXTURE},
    {"sust", TEXTURE},
    {"sured", TEXTURE},
    {"suq", TEXTURE},
    {"istypep", TEXTURE},
    {".texref", TEXTURE},
    {".samplerref", TEXTURE},
    {".surfref", TEXTURE},
    {".tex", TEXTURE},
    {".bulk", BULK},
    {".reduce", BULK},
    {"tensormap", BULK},
    {".tensormap*", BULK},
    {".proxy*", PROXY},
    {"createpolicy", "it says how long the L2 cache keeps what is read"},
    {"applypriority", "it says how long the L2 cache keeps what is read"},
    {".L2::*", "it says how long the L2 cache keeps what is read"},
    {"mbarrier", MBARRIER},
    {".mbarrier*", MBARRIER},
    {".noinc", MBARRIER},
    {"mapa", CLUSTER},
    {"getctarank", CLUSTER},
    {"clusterlaunchcontrol", CLUSTER},
    {".explicitcluster", CLUSTER},
    {".reqnctapercluster", CLUSTER},
    {".maxclusterrank", CLUSTER},
    {".blocksareclusters", CLUSTER},
    {".multicast*", CLUSTER},
    {".async_shared*", CLUSTER},
    {"vadd*", VIDEO},
    {"vsub*", VIDEO},
    {"vabsdiff*", VIDEO},
    {"vmin*", VIDEO},
    {"vmax*", VIDEO},
    {"vavrg*", VIDEO},
    {"vshl", VIDEO},
    {"vshr", VIDEO},
    {"vmad", VIDEO},
    {"vset*", VIDEO},
    {".e2m1*", NARROW},
    {".e2m3*", NARROW},
    {".e3m2*", NARROW},
    {".ue8m0*", NARROW},
    {".ue4m3*", NARROW},
    {".e4m3*", NARROW},
    {".e5m2*", NARROW},
    {".u4*", NARROW},
    {".s4*", NARROW},
    {".s2f6*", NARROW},
    {"multimem", MULTI},
    {".multimem", MULTI},
    {"setmaxnreg", REGISTER_SHARE},
    {"%pm*", DEBUGGER},
    {"elect", "it chooses one thread of a warp for the tensor cores or bulk copies"},
};

static bool fits(const char *pattern, const char *word, size_t size) {
    size_t length = strlen(pattern);
    if (pattern[length - 1] != '*') return length == size && memcmp(pattern, word, size) == 0;
    return size >= length - 1 && memcmp(pattern, word, length - 1) == 0;
}

const char *ptx_uncovered(const char *word, size_t size) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (fits(rows[i].word, word, size)) return rows[i].group;
    return NULL;
}
