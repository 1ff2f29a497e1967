// clang -O0: sm_75
// clang -O1: sm_75
// clang -O3: sm_90
#include "special.h"

// A switch, which becomes a table of branches.
KERNEL void sw(int *choice)
{
    int i = INDEX, result = -1;
    switch (choice[i]) {
    case 0: result = 5; break;
    case 1: result = 3; break;
    case 2: result = 17; break;
    case 3: result = i; break;
    case 4: result = -9; break;
    case 6: result = 77; break;
    }
    choice[i] = result;
}

// Recursion, and a call by pointer.
__attribute__((noinline)) static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__attribute__((noinline)) static int halved(int n) { return n / 2; }
static int (*const TABLE[])(int) = {fibonacci, halved};

KERNEL void calls(const int *x, int *out)
{
    int i = INDEX;
    out[i] = TABLE[i & 1](x[i] & 15);
}

// A structure in parameters, and an array of the thread's own.
struct Settings { short first; double scale; char bytes[5]; };

KERNEL void settings(struct Settings settings, double *out, int n)
{
    double parts[9];
    for (int k = 0; k < 9; k++) parts[k] = settings.bytes[k % 5] * settings.scale;
    out[INDEX] = parts[(unsigned)n % 9] + settings.first;
}

// How many steps lead to 1.
KERNEL void collatz(const long *start, int *steps)
{
    long value = start[INDEX];
    int count = 0;
    while (value != 1 && count < 10000) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        count++;
    }
    steps[INDEX] = count;
}
