// What joints are doing and what their friction is, cell by cell; for one file's loops and another's.
#pragma once
#include <cstddef>
#include <cstdint>

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
void check_tape(const Tape &tape, size_t registers);
void repeat(const Tape &tape, double *registers, double *out);

}  // namespace taufit
