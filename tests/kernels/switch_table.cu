// A small machine with a stack, one program a thread: a switch with many cases, and divergent threads.
// kernel: run_programs
// kernel: classify

enum operation { PUSH, ADD, SUBTRACT, MULTIPLY, NEGATE, DUPLICATE, SWAP, JUMP_IF_ZERO, JUMP, LOAD_THREAD, HALT };

extern "C" __global__ void run_programs(int *results, const int *code, const int *starts, int count, int most_steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int stack[16], top = 0, at = starts[i], a, b;
    for (int step = 0; step < most_steps; step++) {
        switch (code[at++]) {
        case PUSH: stack[top++ & 15] = code[at++]; break;
        case ADD:
            b = stack[--top & 15];
            a = stack[--top & 15];
            stack[top++ & 15] = a + b;
            break;
        case SUBTRACT:
            b = stack[--top & 15];
            a = stack[--top & 15];
            stack[top++ & 15] = a - b;
            break;
        case MULTIPLY:
            b = stack[--top & 15];
            a = stack[--top & 15];
            stack[top++ & 15] = a * b;
            break;
        case NEGATE: stack[(top - 1) & 15] = -stack[(top - 1) & 15]; break;
        case DUPLICATE:
            a = stack[(top - 1) & 15];
            stack[top++ & 15] = a;
            break;
        case SWAP:
            a = stack[(top - 1) & 15];
            stack[(top - 1) & 15] = stack[(top - 2) & 15];
            stack[(top - 2) & 15] = a;
            break;
        case JUMP_IF_ZERO:
            a = code[at++];
            if (stack[--top & 15] == 0) at = a;
            break;
        case JUMP: at = code[at]; break;
        case LOAD_THREAD: stack[top++ & 15] = i; break;
        default: results[i] = stack[(top - 1) & 15]; return;
        }
    }
    results[i] = -1;
}

__constant__ int weights[8] = {1, 10, 100, 1000, 7, 70, 700, 7000};

extern "C" __global__ void classify(int *out, const unsigned char *text, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int kind;
    switch (text[i]) {
    case ' ': kind = 0; break;
    case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9': kind = 1; break;
    case 'a': kind = 2; break;
    case 'b': kind = 3; break;
    case 'c': kind = 4; break;
    case 'd': kind = 5; break;
    case 'e': kind = 6; break;
    default: kind = 7;
    }
    out[i] = weights[kind] + kind;
}
