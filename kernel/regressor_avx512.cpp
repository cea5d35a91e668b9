// The batch loops for x86-64-v4: eight samples at a time with AVX-512. Built with those flags and
// called only where the processor has them.
#ifdef TAUFIT_X86
#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "regressor.h"

#define TAUFIT_LANES 8

namespace taufit {
namespace avx512 {
#include "regressor_loops.h"
#include "tape_loops.h"
}
const Loops loops_avx512 = {"avx512", avx512::work_size, avx512::regressor, avx512::columns, avx512::grams, avx512::torque,
    avx512::adjoint, avx512::gradient, avx512::operations, avx512::LANES, avx512::GRAM_BLOCK};
}  // namespace taufit
#endif
