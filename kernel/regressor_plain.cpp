// The batch loops for any processor: two samples at a time where the compiler has vectors.
#include <cmath>
#include <cstring>

#include "regressor.h"

#if defined(__GNUC__)
#define TAUFIT_LANES 2
#else
#define TAUFIT_LANES 1
#endif

namespace taufit {
namespace plain {
#include "regressor_loops.h"
#include "tape_loops.h"
}
const Loops loops_plain = {"plain", plain::work_size, plain::regressor, plain::columns, plain::grams, plain::torque,
    plain::adjoint, plain::gradient, plain::operations, plain::LANES, plain::GRAM_BLOCK};
}  // namespace taufit
