// What joints are doing and what their friction is, cell by cell; for one file's loops and another's.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "regressor.h"

namespace taufit {

constexpr size_t MOST_JOINTS = 32;
enum State { FAST, SLOW, TURNING, STANDING, REST, STATES };
enum Memory { ANCHOR, WAY, STOOD, STILL, EDGE, TURN, CREPT, MEMORIES };
enum Arm { BEGUN, QUIET, STOP, ARMS };
constexpr size_t STATE_NUMBERS = 9;

// The next cell of friction/states.py's `FrictionStates`: `numbers`, `memory` and `arm` are its own.
void next_states(size_t joints, const double *position, const double *velocity,
                 const double *numbers, double *memory, double *arm, int64_t *state, bool *standing,
                 bool *sure);

// A list of operations (code, a, b, c, place) between registers, see model/friction_tape.py; then
// `results` are copied to `out` and `moves` from one register to another.
struct Tape {
  const int32_t *operations, *results, *moves;
  size_t steps, outputs, handed;
};
// The result of one operation.
inline double result(int code, double a, double b, double c) {
  switch (code) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case DIVIDE: return a / b;
    case GREATER: return a > b;
    case GREATER_EQUAL: return a >= b;
    case LESS: return a < b;
    case LESS_EQUAL: return a <= b;
    case MAXIMUM: return std::fmax(a, b);
    case MINIMUM: return std::fmin(a, b);
    case POWER: return std::pow(a, b);
    case WHERE: return a != 0.0 ? b : c;
    case NEGATIVE: return -a;
    case ABSOLUTE: return std::fabs(a);
    case TANH: return std::tanh(a);
    case EXP: return std::exp(a);
    case LOG: return std::log(a);
    case SQRT: return std::sqrt(a);
    case SIN: return std::sin(a);
    case COS: return std::cos(a);
    case ARCTAN: return std::atan(a);
    case SIGN: return (a > 0.0) - (a < 0.0);
    case SQUARE: return a * a;
    case EXPM1: return std::expm1(a);
    case LOG1P: return std::log1p(a);
  }
  return NAN;
}

void check_tape(const Tape &tape, size_t registers);
void repeat(const Tape &tape, double *registers, double *out);

}  // namespace taufit
