// External torque of consecutive steps, as contact/external_torque.py has it in NumPy on the same
// arrays: inverse dynamics, friction and its memory, states, observer and jolts in one call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "cells.h"
#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Block = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using List = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// From FRICTION_LEVEL on for the drift of friction: torque noise, its variance over its memory, and
// random walks of level and slope in one step.
enum Fixed { ROTORS, OFFSETS, UNSURE, FASTEST, BASE, FRICTION_LEVEL, NOISE, VARIANCE, WALK_LEVEL, WALK_SLOPE, FIXED };
// Drift of friction: level and slope, and their covariance.
enum Drift { LEVEL, SLOPE, LEVEL_LEVEL, LEVEL_SLOPE, SLOPE_SLOPE, DRIFTS };
// From PATH on the last velocities, the newest first, as many as there are rows.
enum Last { LAG, STOOD_BEFORE, PATH };
enum Clock { RUNS, PLACE, WARM_TAPE, HELD, CLOCKS };
enum Out { POSITION, VELOCITY, TORQUE, SMOOTH, CHANGE, MEASURED, RIGID, FRICTION, DRIFT, DRIFT_STD, OUTS };
enum Flag { STANDS, SURE, SWITCHED, FLAGS };
enum Input { SPEED, PLACED, LOAD, WARMTH, TRAVEL, INPUTS };
constexpr double LARGEST_JOLT = 20.0;
// Innovations of the drift beyond this many standard deviations are contacts.
constexpr double INNOVATION_LIMIT = 3.0;
constexpr int64_t FAST_STATE = 0;

// Arrays belong to Python: `memory`, `clock`, `over`, `drift` and the tape's registers are what one call
// leaves to the next.
class ExternalTorque {
public:
  ExternalTorque(List operations, Values registers, Places results, List moves, Places travelled,
                 Vector numbers, Rows states, Values arm, Matrix fixed, Rows memory, Values clock,
                 Rows over, Rows drift, double step, double share)
      : operations(operations), registers(registers), results(results), moves(moves),
        travelled(travelled), numbers(numbers), states(states), arm(arm), fixed(fixed),
        memory(memory), clock(clock), over(over), drift(drift), step(step), share(share) {
    const size_t j = fixed.shape(1), rows = memory.shape(0);
    if (operations.shape(1) != 5 || moves.shape(1) != 2 || results.shape(0) != j ||
        registers.shape(0) < INPUTS * j || numbers.shape(0) != STATE_NUMBERS ||
        states.shape(0) != MEMORIES || states.shape(1) != j || arm.shape(0) != ARMS ||
        fixed.shape(0) != FIXED || rows <= PATH || memory.shape(1) != j ||
        clock.shape(0) != CLOCKS || over.shape(0) < 1 || over.shape(1) != j ||
        drift.shape(0) != DRIFTS || drift.shape(1) != j || travelled.shape(0) % 2 || j < 1 || j > MOST_JOINTS || !(step > 0.0))
      throw std::invalid_argument("ExternalTorque: shapes do not agree, or too many joints");
    for (size_t i = 0; i < j; i++)
      if (!(given(BASE)[i] >= 1.0 && given(BASE)[i] <= static_cast<double>(rows - PATH) / 2.0))
        throw std::invalid_argument("ExternalTorque: acceleration over too many cells");
    tape = {operations.data(), results.data(), moves.data(), operations.shape(0), j, moves.shape(0)};
    check_tape(tape, registers.shape(0));
    for (size_t k = 0; k < travelled.shape(0); k += 2) {
      const int32_t to = travelled.data()[k], of = travelled.data()[k + 1];
      if (to < 0 || static_cast<size_t>(to) >= registers.shape(0) || of < 0 ||
          static_cast<size_t>(of) >= j)
        throw std::invalid_argument("ExternalTorque: a travel is outside the registers");
    }
  }

  // Cells n + 1, the last one of the call before first; steps n.
  void advance(const Prepared &engine, Matrix ends, Block out, Rows jolts, Counts state,
               Flags flags) {
    const size_t j = fixed.shape(1), n = jolts.shape(0), c = ends.shape(1);
    const auto fits = [n, j](const auto &x, size_t k) {
      return x.shape(0) == k && x.shape(1) == n && x.shape(2) == j;
    };
    if (static_cast<size_t>(engine.chain.joints) != j || ends.shape(0) != n + 1 ||
        (c != 3 * j && c != 4 * j) || !fits(out, OUTS) || jolts.shape(1) != j || state.shape(0) != n ||
        state.shape(1) != j || !fits(flags, FLAGS))
      throw std::invalid_argument("ExternalTorque: shapes of the cells do not agree");
    double *const block = out.data();
    const auto at = [&](Out k, size_t t) { return block + (k * n + t) * j; };
    for (size_t t = 0; t < n; t++) {
      const double *one = ends.data() + t * c, *two = one + c;
      for (size_t i = 0; i < j; i++) {
        at(POSITION, t)[i] = 0.5 * (two[i] + one[i]);
        at(VELOCITY, t)[i] = 0.5 * (two[j + i] + one[j + i]);
        at(CHANGE, t)[i] = (two[j + i] - one[j + i]) / step;
        at(MEASURED, t)[i] = 0.5 * (two[2 * j + i] + one[2 * j + i]);
      }
    }
    engine.loops->torque(engine.chain, {at(POSITION, 0), at(VELOCITY, 0), at(CHANGE, 0)}, 0,
                         static_cast<std::ptrdiff_t>(n), at(RIGID, 0),
                         workspace(engine.loops->work_size(engine.chain.joints)));
    for (size_t t = 0; t < n; t++) {
      const double *one = ends.data() + t * c, *two = one + c;
      const auto flag = [&](Flag k) { return flags.data() + (k * n + t) * j; };
      const double *v = at(VELOCITY, t);
      next_states(j, at(POSITION, t), v, numbers.data(), states.data(), arm.data(),
                  state.data() + t * j, flag(STANDS), flag(SURE));
      friction(at(POSITION, t), v, at(RIGID, t), c == 4 * j ? one + 3 * j : nullptr,
               c == 4 * j ? two + 3 * j : nullptr, at(FRICTION, t));
      const bool begun = clock.data()[RUNS] != 0.0;
      beyond(v, begun, jolts.data() + t * j);
      double most = 0.0;
      for (size_t i = 0; i < j; i++) most = std::fmax(most, jolts.data()[t * j + i]);
      const bool held = most > 0.0 || clock.data()[HELD] != 0.0;
      double *lag = last(LAG), *stood = last(STOOD_BEFORE);
      for (size_t i = 0; i < j; i++) {
        const bool stands = flag(STANDS)[i];
        const double bare = at(RIGID, t)[i] + given(ROTORS)[i] * at(CHANGE, t)[i] +
                            given(OFFSETS)[i] - at(MEASURED, t)[i];
        const bool informs = !held && state.data()[t * j + i] == FAST_STATE;
        const double rough = bare + (stands ? 0.0 : at(FRICTION, t)[i]);
        follow(i, at(FRICTION, t)[i], v[i], rough, stands, informs, at(DRIFT, t)[i],
               at(DRIFT_STD, t)[i]);
        const double torque = at(TORQUE, t)[i] = rough - at(DRIFT, t)[i];
        if (!begun) lag[i] = torque, stood[i] = stands;
        lag[i] = at(SMOOTH, t)[i] = lag[i] + share * (torque - lag[i]);
        flag(SWITCHED)[i] = stands != (stood[i] > 0.0);
        stood[i] = stands;
      }
      clock.data()[RUNS] = 1.0;
    }
  }

private:
  double *last(Last k) { return memory.data() + k * memory.shape(1); }
  const double *given(Fixed k) const { return fixed.data() + k * fixed.shape(1); }

  void friction(const double *q, const double *v, const double *load, const double *warm,
                const double *warmer, double *out) {
    const size_t j = fixed.shape(1);
    double *r = registers.data();
    for (size_t i = 0; i < j; i++) {
      r[SPEED * j + i] = v[i];
      r[PLACED * j + i] = q[i];
      r[LOAD * j + i] = load[i];
      if (warm != nullptr) r[WARMTH * j + i] = 0.5 * (warmer[i] + warm[i]);
      r[TRAVEL * j + i] = v[i] * step;
    }
    if (clock.data()[WARM_TAPE] == 0.0) {
      clock.data()[WARM_TAPE] = 1.0;
      for (size_t k = 0; k < travelled.shape(0); k += 2)
        r[travelled.data()[k]] = r[TRAVEL * j + static_cast<size_t>(travelled.data()[k + 1])];
    }
    repeat(tape, r, out);
  }

  // Drift of a joint's friction at this step, from the steps before, then its Kalman update.
  void follow(size_t i, double friction, double v, double torque, bool stands, bool informs,
              double &correction, double &std) {
    const size_t j = fixed.shape(1);
    double *x = drift.data() + i;
    const double c = friction / given(FRICTION_LEVEL)[i];
    x[LEVEL_LEVEL * j] += given(WALK_LEVEL)[i];
    x[SLOPE_SLOPE * j] += given(WALK_SLOPE)[i];
    const double p = x[LEVEL_LEVEL * j] * c + x[LEVEL_SLOPE * j] * v;
    const double s = x[LEVEL_SLOPE * j] * c + x[SLOPE_SLOPE * j] * v;
    const double variance = std::fmax(c * p + v * s, 0.0);
    const double expected = c * x[LEVEL * j] + v * x[SLOPE * j];
    correction = stands ? 0.0 : expected;
    std = stands ? 0.0 : std::sqrt(variance);
    const double total = variance + given(VARIANCE)[i], noise = given(NOISE)[i];
    if (!informs || !(noise > 0.0) || !std::isfinite(torque)) return;
    const double limit = INNOVATION_LIMIT * std::sqrt(variance + noise * noise);
    const double error = std::fmin(std::fmax(torque - expected, -limit), limit) / total;
    x[LEVEL * j] += p * error;
    x[SLOPE * j] += s * error;
    x[LEVEL_LEVEL * j] -= p * p / total;
    x[LEVEL_SLOPE * j] -= p * s / total;
    x[SLOPE_SLOPE * j] -= s * s / total;
  }

  // Acceleration of each joint beyond the training's, the largest within the last moments.
  void beyond(const double *v, bool begun, double *out) {
    const size_t j = fixed.shape(1), m = over.shape(0), paths = memory.shape(0) - PATH;
    double *path = last(PATH);
    const double end = static_cast<double>(m - 1);
    const size_t place =
        static_cast<size_t>(std::fmin(std::fmax(clock.data()[PLACE], 0.0), end));
    clock.data()[PLACE] = static_cast<double>((place + 1) % m);
    for (size_t i = 0; i < j; i++) {
      double most = 0.0;
      if (!begun)
        for (size_t k = 0; k < paths; k++) path[k * j + i] = v[i];
      // Over as many cells as noise asks for, and over twice as many.
      for (const double cells : {given(BASE)[i], 2.0 * given(BASE)[i]}) {
        const size_t k = static_cast<size_t>(cells);
        const double off = std::fabs(v[i] - path[(k - 1) * j + i]) - given(UNSURE)[i];
        most = std::fmax(most, off / cells / given(FASTEST)[i]);
      }
      for (size_t k = paths - 1; k > 0; k--) path[k * j + i] = path[(k - 1) * j + i];
      path[i] = v[i];
      over.data()[place * j + i] = most / step - 1.0;
      double largest = 0.0;
      for (size_t k = 0; k < m; k++) largest = std::fmax(largest, over.data()[k * j + i]);
      out[i] = std::fmin(largest, LARGEST_JOLT);
    }
  }

  List operations;
  Values registers;
  Places results;
  List moves;
  Places travelled;
  Vector numbers;
  Rows states;
  Values arm;
  Matrix fixed;
  Rows memory;
  Values clock;
  Rows over;
  Rows drift;
  double step, share;
  Tape tape;
};

}  // namespace

void bind_external_torque(nb::module_ &m) {
  nb::class_<ExternalTorque>(m, "ExternalTorque", "External torque, step by step.")
      .def(nb::init<List, Values, Places, List, Places, Vector, Rows, Values, Matrix, Rows, Values,
                    Rows, Rows, double, double>(),
           nb::arg("operations").noconvert(), nb::arg("registers").noconvert(),
           nb::arg("results").noconvert(), nb::arg("moves").noconvert(),
           nb::arg("travelled").noconvert(), nb::arg("numbers").noconvert(),
           nb::arg("states").noconvert(), nb::arg("arm").noconvert(), nb::arg("fixed").noconvert(),
           nb::arg("memory").noconvert(), nb::arg("clock").noconvert(),
           nb::arg("over").noconvert(), nb::arg("drift").noconvert(), nb::arg("step"), nb::arg("share"))
      .def("advance", &ExternalTorque::advance, nb::arg("engine"), nb::arg("ends").noconvert(),
           nb::arg("out").noconvert(), nb::arg("jolts").noconvert(), nb::arg("state").noconvert(),
           nb::arg("flags").noconvert());
}
