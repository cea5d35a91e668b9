// A serial chain prepared for the batch loops, and the loops themselves as a table of functions.
//
// Only plain data crosses this line: the loops are compiled once per instruction set, and an inline
// function shared between those copies could end up as the one the older processor cannot run.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taufit {

// Pose of link i in link i-1 at joint position q, whatever the screw (revolute about any axis
// through any point, prismatic, helical):
//
//     R = a0 + sin q a1 + (1 - cos q) a2,   p = p0 + sin q p1 + (1 - cos q) p2 + q p3
struct Joint {
    double a0[9], a1[9], a2[9];
    double p0[3], p1[3], p2[3], p3[3];
    double angular[3], linear[3];  // the screw S, in the link's frame
    double parameters[10];         // m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
};

struct Chain {
    std::ptrdiff_t joints;
    const Joint* joint;
    double gravity[3];
};

// Rows of n x j arrays.
struct States {
    const double *q, *v, *a;
};

// Every loop handles samples first <= s < last; `work` has `work_size(joints)` doubles, aligned to
// 64 bytes.
struct Loops {
    const char* name;
    std::ptrdiff_t (*work_size)(std::ptrdiff_t joints);

    // Y, n x j x 10j; past the caches where asked, for memory that is too large for them.
    void (*regressor)(const Chain&, const States&, std::ptrdiff_t first, std::ptrdiff_t last,
                      bool past_caches, double* out, double* work);

    // Columns of Y, each contiguous over samples: entry (i, c) of sample s goes to
    // out[place[i * 10j + c] + s - first] unless place is negative; only blocks at or above the
    // diagonal are written. Row i is scaled by weights[s * j + i] when weights are given.
    void (*columns)(const Chain&, const States&, std::ptrdiff_t first, std::ptrdiff_t last,
                    const std::int64_t* place, const double* weights, double* out, double* work);

    // W'W of every joint: joint i has widths[i] columns, a multiple of 4, in rows of the workspace
    // one joint after the other. `place` is the row of entry (i, c) or negative, `extra` further
    // rows, extras x n, for `extra_row`. Adds the upper triangles to `out`, one after the other.
    void (*grams)(const Chain&, const States&, std::ptrdiff_t n, const std::int64_t* place,
                  const double* weights, const double* extra, std::ptrdiff_t extras,
                  const std::int64_t* extra_row, const std::int64_t* widths, double* out,
                  double* work);

    // Inverse dynamics, n x j.
    void (*torque)(const Chain&, const States&, std::ptrdiff_t first, std::ptrdiff_t last,
                   double* out, double* work);

    // Gradient of sum(g * Y) with respect to q, v and a, each n x j; g is n x j x 10j.
    void (*adjoint)(const Chain&, const States&, std::ptrdiff_t first, std::ptrdiff_t last,
                    const double* g, double* dq, double* dv, double* da, double* work);

    // Derivatives of inverse dynamics with respect to (q, v, a), n x j x 3j.
    void (*gradient)(const Chain&, const States&, std::ptrdiff_t first, std::ptrdiff_t last,
                     double* out, double* work);

    // Operations (code, a, b, c, place) of model/friction_tape.py between registers of `width`
    // samples each, a multiple of `lanes`.
    void (*operations)(const std::int32_t* list, std::ptrdiff_t steps, std::ptrdiff_t width,
                       double* registers);
    std::ptrdiff_t lanes, gram_block;
};

// Codes of operations between registers.
enum Code {
    ADD, SUBTRACT, MULTIPLY, DIVIDE, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, MAXIMUM, MINIMUM,
    POWER, WHERE, NEGATIVE, ABSOLUTE, TANH, EXP, LOG, SQRT, SIN, COS, ARCTAN, SIGN, SQUARE, EXPM1,
    LOG1P, CODES
};

extern const Loops loops_plain;
#ifdef TAUFIT_X86
extern const Loops loops_avx2;
extern const Loops loops_avx512;
#endif

}  // namespace taufit
