/* lanes.h - turns the rows of the .def files into handlers and a table. Included once by each
 * variant.
 *
 * A whole warp runs a loop of 32 trips that the compiler vectorises; a part of one runs it under a
 * mask. */
#include "emulator/exec/exec.h"
#include "emulator/exec/math.h"

#ifndef EXEC_ROWS
#define EXEC_ROWS "emulator/exec/rows.def"
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#if defined(__clang__)
#define EXEC_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define EXEC_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define EXEC_LANES(body)                                                                           \
    if (__builtin_expect(mask == MACHINE_ALL, 1)) {                                                \
        EXEC_INDEPENDENT for (u32 lane = 0; lane < MACHINE_LANES; lane++)                          \
        {                                                                                          \
            body                                                                                   \
        }                                                                                          \
    } else {                                                                                       \
        EXEC_INDEPENDENT for (u32 lane = 0; lane < MACHINE_LANES; lane++)                          \
        {                                                                                          \
            if (mask >> lane & 1) {                                                                \
                body                                                                               \
            }                                                                                      \
        }                                                                                          \
    }
#define EXEC_SOURCE(type, n) (const type *)(const void *)(w->r + i->o[n])
#define EXEC_RESULT(type, n) (type *)(void *)(w->r + i->o[n])
#define EXEC_BEGIN(id)       static void id(warp *w, const instruction *i, u32 mask)

/* d = f(a), f(a, b), f(a, b, c), f(a, b, c, e) */
#define U(id, names, sig, pipe, D, A, expression)                                                  \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const A *pa = EXEC_SOURCE(A, 1);                                                           \
        EXEC_LANES(const A a = pa[lane]; d[lane] = (D)(expression);)                               \
    }
#define B(id, names, sig, pipe, D, A, B_, expression)                                              \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const A *pa = EXEC_SOURCE(A, 1);                                                           \
        const B_ *pb = EXEC_SOURCE(B_, 2);                                                         \
        EXEC_LANES(const A a = pa[lane]; const B_ b = pb[lane]; d[lane] = (D)(expression);)        \
    }
#define T(id, names, sig, pipe, D, A, B_, C, expression)                                           \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const A *pa = EXEC_SOURCE(A, 1);                                                           \
        const B_ *pb = EXEC_SOURCE(B_, 2);                                                         \
        const C *pc = EXEC_SOURCE(C, 3);                                                           \
        EXEC_LANES(const A a = pa[lane]; const B_ b = pb[lane]; const C c = pc[lane];              \
                   d[lane] = (D)(expression);)                                                     \
    }
#define Q(id, names, sig, pipe, D, A, B_, C, E, expression)                                        \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const A *pa = EXEC_SOURCE(A, 1);                                                           \
        const B_ *pb = EXEC_SOURCE(B_, 2);                                                         \
        const C *pc = EXEC_SOURCE(C, 3);                                                           \
        const E *pe = EXEC_SOURCE(E, 4);                                                           \
        EXEC_LANES(const A a = pa[lane]; const B_ b = pb[lane]; const C c = pc[lane];              \
                   const E e = pe[lane]; d[lane] = (D)(expression);)                               \
    }
/* predicate = f(a), f(a, b) */
#define PU(id, names, sig, A, condition)                                                           \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        const A *pa = EXEC_SOURCE(A, 1);                                                           \
        u32 bits = 0;                                                                              \
        for (u32 lane = 0; lane < MACHINE_LANES; lane++) {                                         \
            const A a = pa[lane];                                                                  \
            bits |= (u32)((condition) ? 1 : 0) << lane;                                            \
        }                                                                                          \
        machine_set_predicate(w, i->o[0], bits, mask);                                             \
    }
#define PB(id, names, sig, A, condition)                                                           \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        const A *pa = EXEC_SOURCE(A, 1), *pb = EXEC_SOURCE(A, 2);                                  \
        u32 bits = 0;                                                                              \
        for (u32 lane = 0; lane < MACHINE_LANES; lane++) {                                         \
            const A a = pa[lane], b = pb[lane];                                                    \
            bits |= (u32)((condition) ? 1 : 0) << lane;                                            \
        }                                                                                          \
        machine_set_predicate(w, i->o[0], bits, mask);                                             \
    }
/* predicate = f(predicates), all lanes at once */
#define PP(id, names, sig, expression)                                                             \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        const u32 a = *machine_r32(w, i->o[1]);                                                    \
        const u32 b = i->sources > 1 ? *machine_r32(w, i->o[2]) : 0;                               \
        (void)b;                                                                                   \
        machine_set_predicate(w, i->o[0], (expression), mask);                                     \
    }
#define PT(id, names, sig, taint, expression) PP(id, names, sig, expression)
/* d = p ? a : b */
#define SEL(id, names, sig, D)                                                                     \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const D *a = EXEC_SOURCE(D, 1), *b = EXEC_SOURCE(D, 2);                                    \
        const u32 p = *machine_r32(w, i->o[3]);                                                    \
        EXEC_LANES(d[lane] = (p >> lane & 1) ? a[lane] : b[lane];)                                 \
    }
/* two results of one source */
#define D2(id, names, sig, D, A, first, second)                                                    \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0), *e = EXEC_RESULT(D, 1);                                          \
        const A *pa = EXEC_SOURCE(A, 2);                                                           \
        EXEC_LANES(const A a = pa[lane]; d[lane] = (D)(first); e[lane] = (D)(second);)             \
    }
/* d and a carry out of f(a, b, c, carry in), which is one bit wider than d: W holds it */
#define CARRY(id, names, sig, D, W, arity, expression)                                             \
    EXEC_BEGIN(id)                                                                                 \
    {                                                                                              \
        D *d = EXEC_RESULT(D, 0);                                                                  \
        const D *pa = EXEC_SOURCE(D, 2), *pb = EXEC_SOURCE(D, 3), *pc = EXEC_SOURCE(D, 1 + arity); \
        const u32 in = *machine_r32(w, i->o[2 + arity]);                                           \
        u32 out = 0;                                                                               \
        for (EACH_LANE(lane, mask)) {                                                              \
            const W a = pa[lane], b = pb[lane], c = pc[lane], carry = in >> lane & 1;              \
            const W r = (expression);                                                              \
            (void)c;                                                                               \
            d[lane] = (D)r;                                                                        \
            out |= (u32)(r >> (8 * sizeof(D)) & 1) << lane;                                        \
        }                                                                                          \
        machine_set_predicate(w, i->o[1], out, mask);                                              \
    }
#include EXEC_ROWS
#undef U
#undef B
#undef T
#undef Q
#undef PU
#undef PB
#undef PP
#undef PT
#undef SEL
#undef D2
#undef CARRY

#define EXEC_ROW(id, names, sig, pipe, taint) {names, sig, id, PIPE_##pipe, taint},
#define U(id, names, sig, pipe, ...)          EXEC_ROW(id, names, sig, pipe, TAINT_UNION)
#define B(id, names, sig, pipe, ...)          EXEC_ROW(id, names, sig, pipe, TAINT_UNION)
#define T(id, names, sig, pipe, ...)          EXEC_ROW(id, names, sig, pipe, TAINT_UNION)
#define Q(id, names, sig, pipe, ...)          EXEC_ROW(id, names, sig, pipe, TAINT_UNION)
#define PU(id, names, sig, ...)               EXEC_ROW(id, names, sig, ALU, TAINT_UNION)
#define PB(id, names, sig, ...)               EXEC_ROW(id, names, sig, ALU, TAINT_UNION)
#define PP(id, names, sig, ...)               EXEC_ROW(id, names, sig, ALU, TAINT_UNION)
#define PT(id, names, sig, taint, ...)        EXEC_ROW(id, names, sig, ALU, taint)
#define SEL(id, names, sig, ...)              EXEC_ROW(id, names, sig, ALU, TAINT_SELECT)
#define D2(id, names, sig, ...)               EXEC_ROW(id, names, sig, ALU, TAINT_UNION)
#define CARRY(id, names, sig, ...)            EXEC_ROW(id, names, sig, ALU, TAINT_UNION)

static const exec_row rows[] = {
#include EXEC_ROWS
};

const exec_row *EXEC_TABLE(size_t *len)
{
    *len = ARRAY_LEN(rows);
    return rows;
}
