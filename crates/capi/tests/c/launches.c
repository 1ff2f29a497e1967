/* Launches through ptxvm.h: exit code 0 if all is as it must be, else the line of the first check that fails. */
#include "ptxvm.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                    \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static const char *const head = ".version 7.0\n.target sm_35\n.address_size 64\n";

/* y[i] = i * factor + y[i] */
static const char *const body =
    ".visible .entry scale(.param .u64 y, .param .u32 factor, .param .f32 unused) {\n"
    "  .reg .u64 %p;  .reg .u32 %i, %f, %b, %n, %v;\n"
    "  ld.param.u64 %p, [y];  ld.param.u32 %f, [factor];\n"
    "  mov.u32 %b, %ctaid.x;  mov.u32 %n, %ntid.x;  mov.u32 %i, %tid.x;\n"
    "  mad.lo.u32 %i, %b, %n, %i;\n"
    "  mad.wide.u32 %p, %i, 4, %p;\n"
    "  ld.global.u32 %v, [%p];\n"
    "  mad.lo.u32 %v, %i, %f, %v;\n"
    "  st.global.u32 [%p], %v;\n"
    "  ret;\n}\n";

/* Counts its launches in a variable of the module and writes the count. */
static const char *const counter =
    ".global .u32 launches;\n"
    ".visible .entry count(.param .u64 y) {\n"
    "  .reg .u64 %p;  .reg .u32 %n;\n"
    "  ld.param.u64 %p, [y];\n"
    "  ld.global.u32 %n, [launches];  add.u32 %n, %n, 1;  st.global.u32 [launches], %n;\n"
    "  st.u32 [%p], %n;\n"
    "  ret;\n}\n";

int main(void) {
    char text[4096];
    uint32_t y[64], small = 0;
    void *args[3];

    /* Memory of the caller is changed in place; extents and the widened integer arrive. */
    snprintf(text, sizeof text, "%s%s", head, body);
    for (int i = 0; i < 64; i++) y[i] = 1000;
    args[0] = y;
    args[1] = (void *)(uintptr_t)3;
    args[2] = 0;
    ptx_run(text, 3, args, 16, 1, 1, 4, 1, 1, 0);
    for (int i = 0; i < 64; i++) CHECK(y[i] == 1000u + 3u * i);
    CHECK(ptxvm_run(text, 3, args, 16, 1, 1, 2, 1, 1, 0) == PTXVM_OK);
    CHECK(y[31] == 1000u + 6u * 31u && y[32] == 1000u + 3u * 32u);

    /* A text is compiled once, wherever it stands: its variables live on. Memory of malloc works as well. */
    snprintf(text, sizeof text, "%s%s", head, counter);
    uint32_t *heap = malloc(sizeof *heap);
    args[0] = heap;
    CHECK(ptxvm_run(text, 1, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_OK && *heap == 1);
    snprintf(text, sizeof text, "%s%s", head, counter);
    CHECK(ptxvm_run(text, 1, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_OK && *heap == 2);
    free(heap);

    /* What is wrong is said and survived. */
    args[0] = &small;
    CHECK(ptxvm_run(0, 0, 0, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 1, 0, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, -1, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 2, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 2000000000, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 1, args, 2000, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 1, args, 1, 1, 1, 0, 1, 1, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run(text, 1, args, 1, 1, 1, 1, 1, -5, 0) == PTXVM_BAD_LAUNCH);
    CHECK(ptxvm_run("", 0, 0, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_PTX);
    CHECK(ptxvm_run(".version 7.0\n.target sm_35\n.func f() { ret; }\n", 0, 0, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_PTX);
    CHECK(ptxvm_run("\xff\xfe{{{{", 0, 0, 1, 1, 1, 1, 1, 1, 0) == PTXVM_BAD_PTX);
    args[0] = 0;
    CHECK(ptxvm_run(text, 1, args, 1, 1, 1, 1, 1, 1, 0) == PTXVM_FAULT);
    return 0;
}
