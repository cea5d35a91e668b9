// Torque of a fitted model, its derivatives, and the acceleration that a torque gives: links by the
// batch loops, friction by the operations recorded in model/friction_tape.py.
//
//     tau = rigid + C' f(C v, C q, C^-T rigid) + C' R C a + offset
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cells.h"
#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Array = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using List = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

enum Input { SPEED, POSITION, LOAD, TEMPERATURE, TRAVEL, INPUTS };
constexpr size_t BLOCK = 32;      // most samples side by side
constexpr size_t NEAR = 48 << 10; // bytes that stay in the nearest caches
constexpr int MOST_STEPS = 40;

struct Partial {
  double by[4] = {0.0, 0.0, 0.0, 0.0};  // speed, position, load, none
};

void require(bool right, const char *message) {
  if (!right) throw std::invalid_argument(message);
}

template <class T>
T *scratch(std::vector<T> &room, size_t size) {
  if (room.size() < size) room.resize(size);
  return room.data();
}

class ModelTorque {
public:
  // Moves hand a register's value to the next sample; `starts` are the values before the first, and
  // `travelled` pairs of a register and the motor whose first travel it has instead.
  ModelTorque(List operations, Vector registers, Places results, List moves, Vector starts,
              Places travelled, Matrix coupling, Matrix to_motors, Matrix rotors, Vector offsets)
      : joints(offsets.shape(0)), registers(registers.data(), registers.data() + registers.shape(0)),
        results(results.data(), results.data() + results.shape(0)),
        starts(starts.data(), starts.data() + starts.shape(0)),
        travelled(travelled.data(), travelled.data() + travelled.shape(0)),
        coupling(coupling.data(), coupling.data() + coupling.size()),
        to_motors(to_motors.data(), to_motors.data() + to_motors.size()),
        rotors(rotors.data(), rotors.data() + rotors.size()),
        offsets(offsets.data(), offsets.data() + joints) {
    const size_t j = joints, most = registers.shape(0);
    require(j >= 1 && j <= MOST_JOINTS && operations.shape(1) == 5 && moves.shape(1) == 2 &&
                results.shape(0) == j && most >= INPUTS * j && starts.shape(0) == moves.shape(0) &&
                coupling.shape(0) == j && coupling.shape(1) == j && to_motors.shape(0) == j &&
                to_motors.shape(1) == j && rotors.shape(0) == j && rotors.shape(1) == j &&
                travelled.shape(0) % 2 == 0,
            "ModelTorque: shapes do not agree, or too many joints");
    check_tape({operations.data(), results.data(), moves.data(), operations.shape(0), j,
                moves.shape(0)},
               most);
    for (size_t k = 0; k < travelled.shape(0); k += 2)
      require(this->travelled[k] >= 0 && size_t(this->travelled[k]) < most &&
                  this->travelled[k + 1] >= 0 && size_t(this->travelled[k + 1]) < j,
              "ModelTorque: a travel is outside the registers");
    for (size_t i = 0; i < j; i++)
      for (size_t k = 0; k < j; k++) coupled |= this->coupling[i * j + k] != (i == k ? 1.0 : 0.0);
    order(operations.data(), operations.shape(0), moves.data(), moves.shape(0), most);
  }

  // Samples of one run, from `state` on: whether it has begun, then a value per move.
  void torque(const Prepared &engine, Array q, Array v, Array a, std::optional<Array> warm,
              double step, std::optional<Values> state, Output out) const {
    const size_t j = joints, n = samples(engine, q, v, a, warm, out, j);
    std::vector<double> fresh;
    double *memory;
    if (state) {
      require(state->shape(0) == 1 + starts.size(), "ModelTorque: no such state");
      memory = state->data();
    } else {
      fresh.assign(1 + starts.size(), 0.0);
      memory = fresh.data();
    }
    const double *at = q.data(), *speed = v.data(), *change = a.data();
    const double *degrees = warm ? warm->data() : nullptr;
    double *to = out.data();
    if (n == 0) return;
    std::optional<nb::gil_scoped_release> release;
    if (n > BLOCK) release.emplace();
    const size_t lanes = size_t(engine.loops->lanes);
    const size_t room_for = NEAR / (8 * registers.size()) / lanes * lanes;
    const size_t width =
        std::min(std::clamp(room_for, lanes, BLOCK), (n + lanes - 1) / lanes * lanes);
    static thread_local std::vector<double> room;
    double *r = scratch(room, registers.size() * width);
    // Lanes without a sample work on zeros.
    std::fill(r, r + INPUTS * j * width, 0.0);
    for (const int32_t k : constants) std::fill(r + k * width, r + (k + 1) * width, registers[k]);
    for (const auto *moves : {&shifted, &kept})
      for (const Move &move : *moves) std::fill(r + move.to * width, r + (move.to + 1) * width, 0.0);
    for (size_t first = 0; first < n; first += width)
      block(engine, at + first * j, speed + first * j, change + first * j,
            degrees ? degrees + first * j : nullptr, std::min(width, n - first), width, step, memory,
            r, to + first * j);
  }

  // Derivatives with respect to (q, v, a), n x j x 3j; the memory of friction has no part in it.
  void gradient(const Prepared &engine, Array q, Array v, Array a, std::optional<Array> warm,
                Output out) const {
    const size_t j = joints, n = samples(engine, q, v, a, warm, out, 3 * j * j);
    double *work = workspace(engine.loops->work_size(engine.chain.joints));
    for (size_t s = 0; s < n; s++) {
      const States x = {q.data() + s * j, v.data() + s * j, a.data() + s * j};
      double *to = out.data() + s * 3 * j * j;
      double rigid[MOST_JOINTS], f[MOST_JOINTS];
      Partial by[MOST_JOINTS];
      engine.loops->torque(engine.chain, x, 0, 1, rigid, work);
      friction(x.q, x.v, rigid, warm ? warm->data() + s * j : nullptr, f, by);
      engine.loops->gradient(engine.chain, x, 0, 1, to, work);
      add_friction(by, 3 * j, to);
      for (size_t i = 0; i < j; i++)
        for (size_t k = 0; k < j; k++) {
          double *row = to + i * 3 * j + k;
          for (size_t m = 0; m < j; m++) {
            if (!coupled && (m != i || k != i)) continue;
            const double c = coupling[m * j + i] * coupling[m * j + k];
            row[0] += c * by[m].by[POSITION];
            row[j] += c * by[m].by[SPEED];
          }
          row[2 * j] += rotors[i * j + k];
        }
    }
  }

  // Solves torque(q, v, a) = tau for a by Newton's method: one step but for friction that depends on
  // the load. Without `rubs` links and rotors alone.
  void acceleration(const Prepared &engine, Array q, Array v, Array tau, std::optional<Array> warm,
                    bool rubs, Output out) const {
    const size_t j = joints, n = samples(engine, q, v, tau, warm, out, j);
    double *work = workspace(engine.loops->work_size(engine.chain.joints));
    static thread_local std::vector<double> room;
    const size_t block = (j + 1) * j;
    double *at = scratch(room, 6 * block), *speeds = at + block, *units = speeds + block;
    double *rigid = units + block, *mass = rigid + block, *matrix = mass + block;
    for (size_t k = 0; k < block; k++) units[k] = k >= j && (k - j) % (j + 1) == 0;
    for (size_t s = 0; s < n; s++) {
      const double *position = q.data() + s * j, *speed = v.data() + s * j;
      const double *degrees = warm ? warm->data() + s * j : nullptr, *given = tau.data() + s * j;
      double *a = out.data() + s * j;
      // Side by side without acceleration and with a unit of each: M is what these differ by.
      for (size_t k = 0; k <= j; k++) {
        std::copy(position, position + j, at + k * j);
        std::copy(speed, speed + j, speeds + k * j);
      }
      engine.loops->torque(engine.chain, {at, speeds, units}, 0, std::ptrdiff_t(j + 1), rigid, work);
      const double *bias = rigid;
      for (size_t i = 0; i < j; i++)
        for (size_t k = 0; k < j; k++) mass[i * j + k] = rigid[(k + 1) * j + i] - bias[i];
      std::fill(a, a + j, 0.0);
      double least = INFINITY, step[MOST_JOINTS] = {};
      for (int round = 0; round < MOST_STEPS; round++) {
        double load[MOST_JOINTS], residual[MOST_JOINTS], f[MOST_JOINTS] = {};
        Partial by[MOST_JOINTS];
        product(mass, a, load);
        for (size_t i = 0; i < j; i++) load[i] += bias[i];
        if (rubs) friction(position, speed, load, degrees, f, round ? nullptr : by);
        double worst = 0.0;  // of all rows, as a fraction of what they add up
        for (size_t i = 0; i < j; i++) {
          double moved = load[i] + (rubs ? offsets[i] : 0.0) + at_joint(f, i);
          double size = std::fabs(given[i]) + std::fabs(bias[i]) + 1e-300;
          for (size_t k = 0; k < j; k++) {
            moved += rotors[i * j + k] * a[k];
            size += std::fabs(mass[i * j + k] * a[k]);
          }
          residual[i] = given[i] - moved;
          worst = std::fmax(worst, std::fabs(residual[i]) / size);
        }
        if (worst <= 1e-13 || !(worst < INFINITY)) break;
        if (worst >= least && worst <= 1e-11) break;  // rounding, not an error
        if (worst >= least && round > 8) {  // two sides of a bend in turn: half the step
          for (size_t i = 0; i < j; i++) a[i] -= step[i] *= 0.5;
          continue;
        }
        least = worst;
        if (rubs && round) friction(position, speed, load, degrees, f, by);
        std::copy(mass, mass + j * j, matrix);
        if (rubs) add_friction(by, j, matrix);
        for (size_t k = 0; k < j * j; k++) matrix[k] += rotors[k];
        solve(matrix, residual, step);
        bool bends = false;
        for (size_t i = 0; i < j; i++) a[i] += step[i], bends |= by[i].by[LOAD] != 0.0;
        if (!bends) break;
      }
    }
  }

private:
  size_t samples(const Prepared &engine, const Array &q, const Array &v, const Array &a,
                 const std::optional<Array> &warm, const Output &out, size_t width) const {
    const size_t j = joints;
    const size_t d = q.ndim();
    const auto same = [&](const Array &x) { return x.ndim() == d && x.size() == q.size(); };
    require(size_t(engine.chain.joints) == j && (d == 1 || d == 2) && q.shape(d - 1) == j &&
                same(v) && same(a) && v.shape(d - 1) == j && a.shape(d - 1) == j &&
                (!warm || (same(*warm) && warm->shape(d - 1) == j)) &&
                out.size() == q.size() / j * width,
            "ModelTorque: arrays are (j,) or (n, j), j the robot's joints");
    return q.size() / j;
  }

  // Operations in four groups, so that all but those of the memory itself work on many samples at
  // once: without the memory; by values of the sample before that need no memory; the memory; the rest.
  void order(const int32_t *list, size_t steps, const int32_t *moves, size_t moved, size_t most) {
    std::vector<char> any(most, 0), deep(most, 0), needed(most, 0);
    const auto spread = [&](std::vector<char> &mark) {
      for (size_t k = 0; k < steps; k++) {
        const int32_t *x = list + 5 * k;
        mark[x[4]] |= mark[x[1]] | mark[x[2]] | mark[x[3]];
      }
    };
    for (size_t k = 0; k < moved; k++) any[moves[2 * k + 1]] = 1;
    spread(any);
    for (size_t k = 0; k < moved; k++) {
      const int32_t from = moves[2 * k], to = moves[2 * k + 1];
      (any[from] ? kept : shifted).push_back({from, to, int32_t(k)});
      if (any[from]) deep[to] = needed[from] = 1;
    }
    spread(deep);
    for (size_t k = steps; k-- > 0;) {
      const int32_t *x = list + 5 * k;
      if (needed[x[4]]) needed[x[1]] = needed[x[2]] = needed[x[3]] = 1;
    }
    for (size_t k = 0; k < steps; k++) {
      const int32_t *x = list + 5 * k;
      const int group = !any[x[4]] ? 0 : !deep[x[4]] ? 1 : needed[x[4]] ? 2 : 3;
      groups[group].insert(groups[group].end(), x, x + 5);
    }
    all.assign(list, list + 5 * steps);
    // The memory of one motor does not wait for another's: by depth, then by code.
    std::vector<int32_t> depth(most, 0);
    std::vector<std::array<int32_t, 7>> sorted;
    for (size_t k = 0; k < groups[2].size(); k += 5) {
      const int32_t *x = groups[2].data() + k;
      depth[x[4]] = 1 + std::max({depth[x[1]], depth[x[2]], depth[x[3]]});
      sorted.push_back({depth[x[4]], x[0], x[0], x[1], x[2], x[3], x[4]});
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return std::pair(a[0], a[1]) < std::pair(b[0], b[1]);
    });
    for (size_t k = 0; k < sorted.size(); k++) {
      std::copy(sorted[k].begin() + 2, sorted[k].end(), groups[2].begin() + 5 * k);
      if (k == 0 || sorted[k][0] != sorted[k - 1][0] || sorted[k][1] != sorted[k - 1][1])
        runs.push_back(k);
    }
    runs.push_back(sorted.size());
    std::vector<char> written(most, 0), active(most, 0);
    std::fill(written.begin(), written.begin() + INPUTS * joints, 1);
    std::fill(active.begin(), active.begin() + TEMPERATURE * joints, 1);
    for (size_t k = 0; k < moved; k++) written[moves[2 * k + 1]] = 1;
    for (size_t k = 0; k < steps; k++) written[list[5 * k + 4]] = 1;
    spread(active);
    for (size_t k = 0; k < most; k++)
      if (!written[k]) constants.push_back(int32_t(k));
    for (size_t k = 0; k < steps; k++) depends.push_back(active[list[5 * k + 4]]);
  }

  void block(const Prepared &engine, const double *q, const double *v, const double *a,
             const double *warm, size_t n, size_t width, double step, double *memory, double *r,
             double *out) const {
    const size_t j = joints;
    engine.loops->torque(engine.chain, {q, v, a}, 0, std::ptrdiff_t(n), out,
                         workspace(engine.loops->work_size(engine.chain.joints)));
    const auto input = [&](Input k, size_t i) { return r + (k * j + i) * width; };
    for (size_t i = 0; i < j; i++)
      for (size_t s = 0; s < n; s++) {
        input(SPEED, i)[s] = at_motor(coupling, v + s * j, i);
        input(POSITION, i)[s] = at_motor(coupling, q + s * j, i);
        input(LOAD, i)[s] = at_motor(to_motors, out + s * j, i);
        input(TRAVEL, i)[s] = input(SPEED, i)[s] * step;
        if (warm) input(TEMPERATURE, i)[s] = warm[s * j + i];
      }
    run(engine, 0, width, r);
    if (!starts.empty()) {
      if (memory[0] == 0.0) {
        std::copy(starts.begin(), starts.end(), memory + 1);
        for (size_t k = 0; k < travelled.size(); k += 2)
          for (const auto *moves : {&shifted, &kept})
            for (const Move &move : *moves)
              if (move.to == travelled[k])
                memory[1 + move.place] = input(TRAVEL, size_t(travelled[k + 1]))[0];
        memory[0] = 1.0;
      }
      for (const Move &move : shifted) {
        const double *from = r + move.from * width;
        double *to = r + move.to * width;
        to[0] = memory[1 + move.place];
        for (size_t s = 1; s < n; s++) to[s] = from[s - 1];
        memory[1 + move.place] = from[n - 1];
      }
      run(engine, 1, width, r);
      for (size_t s = 0; s < n; s++) {
        for (const Move &move : kept) r[move.to * width + s] = memory[1 + move.place];
        run_memory(width, r + s);
        for (const Move &move : kept) memory[1 + move.place] = r[move.from * width + s];
      }
      run(engine, 3, width, r);
    }
    for (size_t s = 0; s < n; s++) {
      double f[MOST_JOINTS], add[MOST_JOINTS];
      for (size_t i = 0; i < j; i++) f[i] = r[results[i] * width + s];
      for (size_t i = 0; i < j; i++) {
        add[i] = offsets[i] + at_joint(f, i);
        if (!coupled)
          add[i] += rotors[i * j + i] * a[s * j + i];
        else
          for (size_t k = 0; k < j; k++) add[i] += rotors[i * j + k] * a[s * j + k];
      }
      for (size_t i = 0; i < j; i++) out[s * j + i] += add[i];
    }
  }

  // Operations of the memory for one sample, those of one code after another.
  void run_memory(size_t width, double *r) const {
    const std::vector<int32_t> &list = groups[2];
    const auto each = [&](size_t from, size_t to, auto operation) {
      for (const int32_t *x = list.data() + 5 * from; x < list.data() + 5 * to; x += 5)
        r[x[4] * width] = operation(r[x[1] * width], r[x[2] * width], r[x[3] * width]);
    };
    for (size_t k = 0; k + 1 < runs.size(); k++) {
      const size_t from = runs[k], to = runs[k + 1];
      const int code = list[5 * from];
      switch (code) {
        case ADD: each(from, to, [](double a, double b, double) { return a + b; }); break;
        case SUBTRACT: each(from, to, [](double a, double b, double) { return a - b; }); break;
        case MULTIPLY: each(from, to, [](double a, double b, double) { return a * b; }); break;
        default:
          each(from, to, [code](double a, double b, double c) { return result(code, a, b, c); });
      }
    }
  }

  void run(const Prepared &engine, int group, size_t width, double *r) const {
    engine.loops->operations(groups[group].data(), std::ptrdiff_t(groups[group].size() / 5),
                             std::ptrdiff_t(width), r);
  }

  double at_motor(const std::vector<double> &matrix, const double *x, size_t i) const {
    if (!coupled) return x[i];
    double sum = 0.0;
    for (size_t k = 0; k < joints; k++) sum += matrix[i * joints + k] * x[k];
    return sum;
  }

  double at_joint(const double *f, size_t i) const {
    if (!coupled) return f[i];
    double sum = 0.0;
    for (size_t k = 0; k < joints; k++) sum += coupling[k * joints + i] * f[k];
    return sum;
  }

  void product(const double *m, const double *x, double *out) const {
    for (size_t i = 0; i < joints; i++) {
      out[i] = 0.0;
      for (size_t k = 0; k < joints; k++) out[i] += m[i * joints + k] * x[k];
    }
  }

  // rows += C' diag(df/dload) C^-T rows, each row `width` numbers.
  void add_friction(const Partial *by, size_t width, double *rows) const {
    const size_t j = joints;
    if (!coupled) {
      for (size_t i = 0; i < j; i++)
        for (size_t k = 0; k < width; k++) rows[i * width + k] *= 1.0 + by[i].by[LOAD];
      return;
    }
    double column[MOST_JOINTS];
    for (size_t k = 0; k < width; k++) {
      for (size_t m = 0; m < j; m++) {
        column[m] = 0.0;
        for (size_t i = 0; i < j; i++) column[m] += to_motors[m * j + i] * rows[i * width + k];
        column[m] *= by[m].by[LOAD];
      }
      for (size_t i = 0; i < j; i++) rows[i * width + k] += at_joint(column, i);
    }
  }

  // Friction of the motors and, where asked, its derivatives by each one's speed, position and load.
  void friction(const double *q, const double *v, const double *rigid, const double *warm, double *f,
                Partial *by) const {
    const size_t j = joints;
    static thread_local std::vector<double> values;
    static thread_local std::vector<Partial> partials;
    double *r = scratch(values, registers.size());
    Partial *d = scratch(partials, registers.size());
    for (const int32_t k : constants) r[k] = registers[k], d[k] = Partial{};
    for (size_t k = 0; k < INPUTS * j; k++) r[k] = registers[k], d[k] = Partial{};
    for (size_t i = 0; i < j; i++) {
      r[SPEED * j + i] = at_motor(coupling, v, i), d[SPEED * j + i].by[SPEED] = 1.0;
      r[POSITION * j + i] = at_motor(coupling, q, i), d[POSITION * j + i].by[POSITION] = 1.0;
      r[LOAD * j + i] = at_motor(to_motors, rigid, i), d[LOAD * j + i].by[LOAD] = 1.0;
      if (warm) r[TEMPERATURE * j + i] = warm[i];
    }
    const int32_t *x = all.data();
    for (size_t k = 0; k < depends.size(); k++, x += 5) {
      const double a = r[x[1]], b = r[x[2]], c = r[x[3]];
      r[x[4]] = result(x[0], a, b, c);
      if (!by) continue;
      if (!depends[k]) {
        d[x[4]] = Partial{};
        continue;
      }
      const std::pair<double, double> slopes = derivatives(x[0], a, b, r[x[4]], d[x[2]]);
      const Partial &da = d[x[1]], &db = x[0] == WHERE && a == 0.0 ? d[x[3]] : d[x[2]];
      Partial &to = d[x[4]];
      if (std::isfinite(slopes.first) && std::isfinite(slopes.second)) {
        for (int e = 0; e < 4; e++)
          to.by[e] = slopes.first * da.by[e] + slopes.second * db.by[e];
        continue;
      }
      // A slope may be infinite where nothing depends on it.
      for (int e = 0; e < 4; e++)
        to.by[e] = (da.by[e] == 0.0 ? 0.0 : slopes.first * da.by[e]) +
                   (db.by[e] == 0.0 ? 0.0 : slopes.second * db.by[e]);
    }
    for (size_t i = 0; i < j; i++) f[i] = r[results[i]];
    for (size_t i = 0; by && i < j; i++) by[i] = d[results[i]];
  }

  // Derivatives of an operation with respect to its first and second value.
  static std::pair<double, double> derivatives(int code, double a, double b, double r,
                                               const Partial &db) {
    switch (code) {
      case ADD: return {1.0, 1.0};
      case SUBTRACT: return {1.0, -1.0};
      case MULTIPLY: return {b, a};
      case DIVIDE: return {1.0 / b, -r / b};
      case MAXIMUM: return a >= b ? std::pair{1.0, 0.0} : std::pair{0.0, 1.0};
      case MINIMUM: return a <= b ? std::pair{1.0, 0.0} : std::pair{0.0, 1.0};
      case POWER: {
        const bool fixed = db.by[0] == 0.0 && db.by[1] == 0.0 && db.by[2] == 0.0;
        return {b * std::pow(a, b - 1.0), fixed ? 0.0 : r * std::log(a)};
      }
      case WHERE: return {0.0, 1.0};
      case NEGATIVE: return {-1.0, 0.0};
      case ABSOLUTE: return {(a > 0.0) - (a < 0.0), 0.0};
      case TANH: return {1.0 - r * r, 0.0};
      case EXP: return {r, 0.0};
      case LOG: return {1.0 / a, 0.0};
      case SQRT: return {0.5 / r, 0.0};
      case SIN: return {std::cos(a), 0.0};
      case COS: return {-std::sin(a), 0.0};
      case ARCTAN: return {1.0 / (1.0 + a * a), 0.0};
      case SQUARE: return {2.0 * a, 0.0};
      case EXPM1: return {r + 1.0, 0.0};
      case LOG1P: return {1.0 / (1.0 + a), 0.0};
    }
    return {0.0, 0.0};
  }

  // m x = y by elimination with row pivots; m and y are overwritten.
  void solve(double *m, double *y, double *x) const {
    const size_t j = joints;
    for (size_t k = 0; k < j; k++) {
      size_t best = k;
      for (size_t i = k + 1; i < j; i++)
        if (std::fabs(m[i * j + k]) > std::fabs(m[best * j + k])) best = i;
      if (best != k) {
        std::swap_ranges(m + k * j, m + (k + 1) * j, m + best * j);
        std::swap(y[k], y[best]);
      }
      for (size_t i = k + 1; i < j; i++) {
        const double factor = m[i * j + k] / m[k * j + k];
        for (size_t c = k + 1; c < j; c++) m[i * j + c] -= factor * m[k * j + c];
        y[i] -= factor * y[k];
      }
    }
    for (size_t i = j; i-- > 0;) {
      double sum = y[i];
      for (size_t c = i + 1; c < j; c++) sum -= m[i * j + c] * x[c];
      x[i] = sum / m[i * j + i];
    }
  }

  struct Move {
    int32_t from, to, place;
  };

  size_t joints;
  std::vector<double> registers;
  std::vector<int32_t> results;
  std::vector<double> starts;
  std::vector<int32_t> travelled;
  std::vector<double> coupling, to_motors, rotors, offsets;
  bool coupled = false;
  std::vector<int32_t> all, groups[4], constants;
  std::vector<size_t> runs;   // where a run of one code begins in the memory's operations
  std::vector<char> depends;  // whether an operation depends on speed, position or load
  std::vector<Move> shifted, kept;
};

}  // namespace

void bind_model_torque(nb::module_ &m) {
  nb::class_<ModelTorque>(m, "ModelTorque", "Torque of a fitted model, its derivatives and inverse.")
      .def(nb::init<List, Vector, Places, List, Vector, Places, Matrix, Matrix, Matrix, Vector>(),
           nb::arg("operations"), nb::arg("registers"), nb::arg("results"), nb::arg("moves"),
           nb::arg("starts"), nb::arg("travelled"), nb::arg("coupling"), nb::arg("to_motors"),
           nb::arg("rotors"), nb::arg("offsets"))
      .def("torque", &ModelTorque::torque, nb::arg("engine"), nb::arg("q"), nb::arg("v"),
           nb::arg("a"), nb::arg("temperature").none(), nb::arg("step"),
           nb::arg("state").noconvert().none(), nb::arg("out").noconvert())
      .def("gradient", &ModelTorque::gradient, nb::arg("engine"), nb::arg("q"), nb::arg("v"),
           nb::arg("a"), nb::arg("temperature").none(), nb::arg("out").noconvert())
      .def("acceleration", &ModelTorque::acceleration, nb::arg("engine"), nb::arg("q"),
           nb::arg("v"), nb::arg("torque"), nb::arg("temperature").none(),
           nb::arg("friction"), nb::arg("out").noconvert());
}
