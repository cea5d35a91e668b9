// What joints are doing, what their friction is, and samples onto a grid, cell by cell; NumPy forms
// are in friction/states.py, model/friction_tape.py and payload/filter/grid.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "cells.h"

namespace nb = nanobind;

using namespace taufit;

void taufit::next_states(size_t j, const double *q, const double *v, const double *c, double *memory,
                         double *a, int64_t *state, bool *standing, bool *sure) {
  const double standstill = c[0], slow = c[1], displaced = c[2], slow_for = c[3], reversal = c[4],
               change = c[5], settle = c[6], quiet = c[7], blind_change = c[8];
  const auto row = [&](Memory k) { return memory + k * j; };
  double *anchor = row(ANCHOR), *way = row(WAY), *stood = row(STOOD), *still = row(STILL),
         *edge = row(EDGE), *turn = row(TURN), *crept = row(CREPT);
  if (a[BEGUN] == 0.0) {
    a[BEGUN] = 1.0;
    for (size_t i = 0; i < j; i++) {
      anchor[i] = q[i];
      stood[i] = std::fabs(v[i]) < standstill;
    }
  }
  bool all_before = true, all_now = true;
  bool *stands = standing;
  for (size_t i = 0; i < j; i++) {
    const double speed = std::fabs(v[i]);
    const bool moves = speed >= standstill, before = stood[i] > 0.0;
    still[i] = moves ? 0.0 : still[i] + 1.0;
    const bool stops = !before && still[i] >= settle;
    const bool starts = before && std::fabs(q[i] - anchor[i]) > displaced;
    if (stops) anchor[i] = q[i];
    stands[i] = (before || stops) && !starts;
    stood[i] = stands[i];
    all_before &= before;
    all_now &= stands[i];
    edge[i] = stops || starts ? 0.0 : edge[i] + 1.0;
    const double next = moves ? (v[i] > 0.0) - (v[i] < 0.0) : way[i];
    turn[i] = next * way[i] < 0.0 ? 0.0 : turn[i] + 1.0;
    way[i] = next;
    crept[i] = speed < slow ? 0.0 : crept[i] + 1.0;
  }
  a[QUIET] = all_now ? a[QUIET] + 1.0 : 0.0;
  a[STOP] = all_now && !all_before ? 0.0 : a[STOP] + 1.0;
  const bool blind = a[STOP] < blind_change;
  int64_t *to = state;
  bool *certain = sure;
  for (size_t i = 0; i < j; i++) {
    to[i] = crept[i] <= slow_for ? SLOW : FAST;
    if (!stands[i] && (turn[i] < reversal || still[i] > 0.0)) to[i] = TURNING;
    if (stands[i]) to[i] = a[QUIET] >= quiet ? REST : STANDING;
    if (edge[i] < change) to[i] = TURNING;
    const bool moves = std::fabs(v[i]) >= standstill;
    certain[i] = !blind && edge[i] >= blind_change && !(stands[i] && moves && !all_now);
  }
}

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void friction_states(Matrix position, Matrix velocity, Vector numbers, Rows memory, Values arm,
                     Counts state, Flags standing, Flags sure) {
  const size_t n = position.shape(0), j = position.shape(1);
  const auto same = [n, j](const auto &x) { return x.shape(0) == n && x.shape(1) == j; };
  if (!same(velocity) || !same(state) || !same(standing) || !same(sure) ||
      numbers.shape(0) != STATE_NUMBERS || memory.shape(0) != MEMORIES || memory.shape(1) != j ||
      arm.shape(0) != ARMS)
    throw std::invalid_argument("friction_states: shapes do not agree");
  nb::gil_scoped_release release;
  for (size_t t = 0; t < n; t++)
    next_states(j, position.data() + t * j, velocity.data() + t * j, numbers.data(), memory.data(),
                arm.data(), state.data() + t * j, standing.data() + t * j, sure.data() + t * j);
}

using List = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
constexpr size_t MOST_MOVES = 256;

void run_tape(List operations, Values registers, Places results, List moves, Values out) {
  if (operations.shape(1) != 5 || moves.shape(1) != 2 || out.shape(0) != results.shape(0))
    throw std::invalid_argument("run_tape: shapes do not agree");
  const Tape tape = {operations.data(), results.data(), moves.data(), operations.shape(0),
                     results.shape(0), moves.shape(0)};
  check_tape(tape, registers.shape(0));
  repeat(tape, registers.data(), out.data());
}

// The broken line through samples averaged over n cells from `edge` on, as payload/filter/grid.py
// has it. Samples before the next cell's edge move out, all but the last of them; returns how many
// are left.
size_t grid_cells(Values time, Rows values, size_t filled, double edge, double step, Values centres,
                  Rows out) {
  const size_t c = values.shape(1), n = out.shape(0);
  if (time.shape(0) < filled || values.shape(0) < filled || out.shape(1) != c ||
      centres.shape(0) != n || filled < 2)
    throw std::invalid_argument("grid_cells: shapes do not agree");
  double *t = time.data(), *y = values.data();
  size_t i = 0;
  while (i + 2 < filled && t[i + 1] <= edge) i++;
  double from = edge;
  for (size_t k = 0; k < n; k++) {
    double *to = out.data() + k * c;
    for (size_t s = 0; s < c; s++) to[s] = 0.0;
    centres.data()[k] = edge + step * (static_cast<double>(k) + 0.5);
    const double end = edge + step * static_cast<double>(k + 1);
    while (true) {
      const bool last = i + 2 >= filled || t[i + 1] > end;
      const double until = last ? end : t[i + 1], width = t[i + 1] - t[i];
      // The end of the last cell may lie a little beyond the last sample: the line goes on, by no
      // more than the last step.
      const double a = std::fmin((from - t[i]) / width, 2.0);
      const double b = std::fmin((until - t[i]) / width, 2.0);
      const double weight = (until - from) / step, right = 0.5 * (a + b) * weight;
      const double *low = y + i * c, *high = low + c;
      for (size_t s = 0; s < c; s++) to[s] += (weight - right) * low[s] + right * high[s];
      from = until;
      if (last) break;
      i++;
    }
  }
  while (i + 2 < filled && t[i + 1] <= from) i++;
  std::copy(t + i, t + filled, t);
  std::copy(y + i * c, y + filled * c, y);
  return filled - i;
}

}  // namespace

void taufit::check_tape(const Tape &tape, size_t registers) {
  const int32_t size = static_cast<int32_t>(registers);
  const auto inside = [size](int32_t i) { return i >= 0 && i < size; };
  const int32_t *x = tape.operations;
  for (size_t k = 0; k < tape.steps; k++, x += 5) {
    if (x[0] < 0 || x[0] >= CODES)
      throw std::invalid_argument("run_tape: there is no such operation");
    if (!inside(x[1]) || !inside(x[2]) || !inside(x[3]) || !inside(x[4]))
      throw std::invalid_argument("run_tape: a place is outside the registers");
  }
  for (size_t k = 0; k < tape.outputs; k++)
    if (!inside(tape.results[k])) throw std::invalid_argument("run_tape: no such result");
  if (tape.handed > MOST_MOVES) throw std::invalid_argument("run_tape: too many moves");
  for (size_t k = 0; k < 2 * tape.handed; k++)
    if (!inside(tape.moves[k]))
      throw std::invalid_argument("run_tape: a move is outside the registers");
}

void taufit::repeat(const Tape &tape, double *r, double *out) {
  const int32_t *x = tape.operations;
  for (size_t k = 0; k < tape.steps; k++, x += 5)
    r[x[4]] = result(x[0], r[x[1]], r[x[2]], r[x[3]]);
  for (size_t k = 0; k < tape.outputs; k++) out[k] = r[tape.results[k]];
  // What one register hands on is not what another has just become.
  double handed[MOST_MOVES];
  for (size_t k = 0; k < tape.handed; k++) handed[k] = r[tape.moves[2 * k]];
  for (size_t k = 0; k < tape.handed; k++) r[tape.moves[2 * k + 1]] = handed[k];
}

void bind_cells(nb::module_ &m) {
  m.def("friction_states", &friction_states, nb::arg("position").noconvert(),
        nb::arg("velocity").noconvert(), nb::arg("numbers").noconvert(),
        nb::arg("memory").noconvert(), nb::arg("arm").noconvert(), nb::arg("state").noconvert(),
        nb::arg("standing").noconvert(), nb::arg("sure").noconvert());
  m.def("run_tape", &run_tape, nb::arg("operations").noconvert(), nb::arg("registers").noconvert(),
        nb::arg("results").noconvert(), nb::arg("moves").noconvert(), nb::arg("out").noconvert());
  m.def("grid_cells", &grid_cells, nb::arg("time").noconvert(), nb::arg("values").noconvert(),
        nb::arg("filled"), nb::arg("edge"), nb::arg("step"), nb::arg("centres").noconvert(),
        nb::arg("out").noconvert());
}
