// The batch loops for x86-64-v3: four samples at a time with AVX2 and FMA. Built with those flags and
// called only where the processor has them.
#ifdef TAUFIT_X86
#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "regressor.h"

#define TAUFIT_LANES 4

namespace taufit {
namespace avx2 {
#include "regressor_loops.h"
#include "tape_loops.h"
}
const Loops loops_avx2 = {"avx2", avx2::work_size, avx2::regressor, avx2::columns, avx2::grams, avx2::torque,
    avx2::adjoint, avx2::gradient, avx2::operations, avx2::LANES, avx2::GRAM_BLOCK};
}  // namespace taufit
#endif
