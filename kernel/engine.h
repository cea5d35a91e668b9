// A robot's chain together with the loops that this processor runs best, for other files' loops.
#pragma once
#include <cstddef>
#include <vector>

#include "regressor.h"

namespace taufit {

struct Prepared {
    const Loops* loops;
    std::vector<Joint> joint;
    Chain chain;
};

// Doubles aligned to 64 bytes, kept per thread, so a call for a single sample allocates nothing.
double* workspace(std::ptrdiff_t size);

}  // namespace taufit
