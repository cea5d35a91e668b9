// Whether external torque has changed, cell by cell: contact/change_test.py and contact/cell_noise.py
// have the same in NumPy, on the same arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cells.h"
#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sure = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Sizes = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

enum Remembered { TORQUE, WHITE, WALK, LEVEL, VARIANCE, LOUD, SURE, REMEMBERED };
enum Number { FADE, LEARN, QUIETEST, LOUDEST, RARE, CLIP, AGAIN, NUMBERS };
// Rows of a cell.
enum Now { RESIDUAL, WHITE_NOW, WALK_NOW, OWN, SPREAD, BOUND, NOWS };

// Row i of the lower Cholesky factor, the rows before it known.
inline void cholesky_row(const double *a, double *l, size_t i, size_t j) {
  for (size_t c = 0; c <= i; c++) {
    double x = a[i * j + c];
    for (size_t e = 0; e < c; e++) x -= l[i * j + e] * l[c * j + e];
    l[i * j + c] = i == c ? std::sqrt(x) : x / l[c * j + c];
  }
}

// Evidence of a change that loads joints 1 to k, the best k: change_test.py's `_evidence`.
double evidence(const double *change, const double *covariance, const double *prior,
                const double *own, double rare, size_t j, size_t &last) {
  static thread_local double root[MOST_JOINTS * MOST_JOINTS], unit[MOST_JOINTS * MOST_JOINTS],
      inner[MOST_JOINTS * MOST_JOINTS], small[MOST_JOINTS * MOST_JOINTS];
  double white[MOST_JOINTS], seen[MOST_JOINTS];
  for (size_t i = 0; i < j; i++) {
    cholesky_row(covariance, root, i, j);
    double x = change[i];
    for (size_t e = 0; e < i; e++) x -= root[i * j + e] * white[e];
    white[i] = x / root[i * j + i];
    for (size_t c = 0; c < i; c++) {
      double y = 0.0;
      for (size_t e = c; e < i; e++) y -= root[i * j + e] * unit[e * j + c];
      unit[i * j + c] = y / root[i * j + i];
    }
    unit[i * j + i] = 1.0 / root[i * j + i];
  }
  double rival = 0.0, sum = 0.0, most = -INFINITY;
  for (size_t i = 0; i < j; i++) {
    const double spread = std::sqrt(prior[i]);
    double x = 0.0;
    for (size_t e = i; e < j; e++) x += unit[e * j + i] * white[e];
    for (size_t c = 0; c <= i; c++) {
      double y = 0.0;
      for (size_t e = i; e < j; e++) y += unit[e * j + i] * unit[e * j + c];
      if (c == i) {
        const double size = y * own[i];
        rival = std::fmax(rival, x * x * own[i] / (1.0 + size) - std::log1p(size) - rare);
      }
      inner[i * j + c] = y * spread * std::sqrt(prior[c]) + (i == c);
    }
    cholesky_row(inner, small, i, j);
    x *= spread;
    for (size_t e = 0; e < i; e++) x -= small[i * j + e] * seen[e];
    seen[i] = x / small[i * j + i];
    sum += seen[i] * seen[i] - 2.0 * std::log(small[i * j + i]);
    if (sum > most) {
      most = sum;
      last = i;
    }
  }
  return most - rival;
}

// `state` holds level, variance, loudness of the joints and on which side the last cell was clipped, `cells` and `ends` the ring of the last
// cells; all of them belong to Python.
class ChangeTest {
public:
  ChangeTest(Vector prior, Vector numbers, Sizes windows, Rows state, Cube cells, Cube ends)
      : prior(prior), numbers(numbers), windows(windows), state(state), cells(cells), ends(ends) {
    const size_t j = prior.shape(0), size = cells.shape(0);
    if (numbers.shape(0) != NUMBERS || state.shape(0) != 4 || state.shape(1) != j ||
        cells.shape(1) != REMEMBERED || cells.shape(2) != j || ends.shape(0) != size ||
        ends.shape(1) != j || ends.shape(2) != j || size < 3 || j > MOST_JOINTS)
      throw std::invalid_argument("ChangeTest: shapes do not agree, or too many joints");
    for (size_t k = 0; k < windows.shape(0); k++)
      if (windows.data()[k] < 1 || static_cast<size_t>(windows.data()[k]) >= size)
        throw std::invalid_argument("ChangeTest: a window is longer than the memory");
  }

  // The next cell: evidence, age and last joint of the most likely change; age 0 where there is none.
  nb::tuple advance(Matrix rows, Matrix velocity, Sure sure, size_t count) {
    const size_t j = prior.shape(0), size = cells.shape(0);
    if (rows.shape(0) != NOWS || rows.shape(1) != j || velocity.shape(0) != j ||
        velocity.shape(1) != j || sure.shape(0) != j)
      throw std::invalid_argument("ChangeTest: shapes of a cell do not agree");
    const auto row_of = [&](Now k) { return rows.data() + k * j; };
    const double *c = numbers.data();
    const auto row = [&](size_t age) { return (count + size + 1 - age) % size; };
    const auto cell = [&](size_t age) { return cells.data() + row(age) * REMEMBERED * j; };
    const size_t longest = size - 1;
    double *level = state.data(), *variance = level + j, *loudness = variance + j,
           *sides = loudness + j;
    double *now = cell(1), *end = ends.data() + row(1) * j * j;
    for (size_t i = 0; i < j; i++) {
      now[LEVEL * j + i] = level[i];
      now[VARIANCE * j + i] = variance[i];
      now[LOUD * j + i] = loudness[i];
    }
    double loud[MOST_JOINTS];
    const double *oldest = cell(count + 1 < longest ? count + 1 : longest);
    for (size_t i = 0; i < j; i++) {
      const double f = loud[i] = std::fmin(std::fmax(oldest[LOUD * j + i], c[QUIETEST]), c[LOUDEST]);
      double shaken = 0.0;
      for (size_t e = 0; e < j; e++) {
        const double x = end[i * j + e] = velocity.data()[i * j + e];
        shaken += x * x;
      }
      const double w = row_of(WHITE_NOW)[i], before = c[FADE] * level[i],
                   spread = c[FADE] * c[FADE] * variance[i] + row_of(WALK_NOW)[i],
                   single = spread + 0.5 * w + 2.0 * shaken,
                   once = row_of(BOUND)[i] * std::sqrt(f * single);
      // A glitch is alone: the next cell on the same side may be further off.
      const double off = row_of(RESIDUAL)[i] - before, side = (off > once) - (off < -once);
      const double bound = side != 0.0 && side == sides[i] ? c[AGAIN] * once : once;
      sides[i] = side;
      const double innovation = std::fmin(std::fmax(off, -bound), bound);
      const double gain = spread / (spread + w + shaken);
      level[i] = before + gain * innovation;
      variance[i] = (1.0 - gain) * spread;
      now[TORQUE * j + i] = before + innovation;
      now[WHITE * j + i] = w;
      now[WALK * j + i] = row_of(WALK_NOW)[i];
      now[SURE * j + i] = sure.data()[i];
    }
    static thread_local double products[2 * MOST_JOINTS * MOST_JOINTS];
    double *const covariance = products + MOST_JOINTS * MOST_JOINTS;
    const auto product = [j](const double *a, size_t x, size_t y) {
      double sum = 0.0;
      for (size_t e = 0; e < j; e++) sum += a[x * j + e] * a[y * j + e];
      return sum;
    };
    for (size_t x = 0; x < j; x++)
      for (size_t y = 0; y <= x; y++) products[x * j + y] = product(end, x, y);
    double sums[3][MOST_JOINTS] = {}, change[MOST_JOINTS], wide[MOST_JOINTS], jump[MOST_JOINTS];
    bool use[MOST_JOINTS];
    for (size_t i = 0; i < j; i++) use[i] = true;
    bool at_rest = true;
    for (size_t i = 0; i < j; i++) at_rest = at_rest && row_of(BOUND)[i] > c[CLIP];
    double most = -INFINITY;
    size_t age = 0, last = 0, taken = 0;
    for (size_t k = 0; k < windows.shape(0); k++) {
      const size_t n = static_cast<size_t>(windows.data()[k]);
      if (n > count) break;
      for (; taken < n; taken++) {
        const double *one = cell(taken + 1);
        for (size_t i = 0; i < j; i++) {
          for (size_t e = 0; e < 3; e++) sums[e][i] += one[e * j + i];
          use[i] = use[i] && one[SURE * j + i] > 0.0;
        }
      }
      const double *first = cell(n);
      // Of the window its last m cells: at rest the last half, too.
      const bool halves = at_rest && windows.data()[k] >= 2 * windows.data()[0];
      for (size_t m : {n, n / 2}) {
        if (m != n && !halves) break;
        double late[2][MOST_JOINTS];
        for (size_t e = 0; e < 2; e++)
          for (size_t i = 0; i < j; i++) {
            late[e][i] = m == n ? sums[e][i] : 0.0;
            for (size_t one = 1; m != n && one <= m; one++) late[e][i] += cell(one)[e * j + i];
          }
        const double *start = ends.data() + row(m + 1) * j * j;
        const double share = 1.0 / static_cast<double>(m),
                     before = 1.0 - 2.0 / 3.0 * static_cast<double>(m) / static_cast<double>(n);
        for (size_t x = 0; x < j; x++) {
          for (size_t y = 0; y <= x; y++)
            covariance[x * j + y] = (products[x * j + y] + product(start, x, y)) * share * share;
          covariance[x * j + x] += late[WHITE][x] * share * share * (1.0 - 0.5 * share) +
                                   first[VARIANCE * j + x] + sums[WALK][x] * before;
          if (!use[x]) covariance[x * j + x] += 1e6 * prior.data()[x];
          change[x] = use[x] ? (late[TORQUE][x] * share - first[LEVEL * j + x]) / std::sqrt(loud[x]) : 0.0;
          wide[x] = use[x] ? prior.data()[x] / loud[x] : 0.0;
          jump[x] = use[x] ? row_of(OWN)[x] / loud[x] : 0.0;
          if (k == 0 && use[x] && row_of(BOUND)[x] <= c[CLIP]) {
            const double size = change[x] * change[x] * loud[x] / covariance[x * j + x];
            loudness[x] += c[LEARN] * (std::fmin(size, c[CLIP] * c[CLIP] * loud[x]) - loudness[x]);
          }
        }
        size_t joint = 0;
        const double found = evidence(change, covariance, wide, jump, c[RARE], j, joint);
        if (found > most) {
          most = found;
          age = n;
          last = joint;
        }
      }
    }
    return nb::make_tuple(most, age, last);
  }

private:
  Vector prior, numbers;
  Sizes windows;
  Rows state;
  Cube cells, ends;
};

// What noise a cell has, given the joints' states: contact/cell_noise.py. Inertia is that of a pose
// as long as no joint is further from it than `near`.
class CellNoise {
public:
  CellNoise(Tables tables, Vector rough, Vector shaking, Matrix turning, double near)
      : tables(tables), rough(rough), shaking(shaking), turning(turning), near(near) {
    const size_t j = rough.shape(0);
    if (tables.shape(0) != NOWS || tables.shape(1) != STATES || tables.shape(2) != j ||
        shaking.shape(0) != j || turning.shape(0) != j || turning.shape(1) != j ||
        j > MOST_JOINTS)
      throw std::invalid_argument("CellNoise: shapes do not agree, or too many joints");
    posed.assign(j, NAN);
    mass.assign(j * j, 0.0);
  }

  void forget() { posed.assign(posed.size(), NAN); }

  void fill(const Prepared &engine, Vector position, Vector torque, Sizes state, Vector jolts,
            Rows rows, Rows velocity) {
    const size_t j = rough.shape(0);
    const auto fits = [j](const auto &x) { return x.shape(0) == j; };
    if (static_cast<size_t>(engine.chain.joints) != j || !fits(position) || !fits(torque) ||
        !fits(state) || !fits(jolts) || rows.shape(0) != NOWS || rows.shape(1) != j || !fits(velocity) ||
        velocity.shape(1) != j)
      throw std::invalid_argument("CellNoise: shapes of a cell do not agree");
    for (size_t i = 0; i < j; i++)
      if (state.data()[i] < 0 || state.data()[i] >= STATES)
        throw std::invalid_argument("CellNoise: there is no such state");
    pose(engine, position.data());
    bool slow = true;
    double hardest = 0.0;
    for (size_t i = 0; i < j; i++) {
      slow = slow && state.data()[i] != FAST;
      hardest = std::fmax(hardest, jolts.data()[i]);
    }
    double *to = rows.data();
    const double *from = tables.data();
    for (size_t i = 0; i < j; i++) {
      // An arm that creeps may stop or turn as a whole, which shakes all its joints.
      const int64_t own = state.data()[i] == SLOW && slow ? TURNING : state.data()[i];
      const size_t s = static_cast<size_t>(own);
      to[RESIDUAL * j + i] = torque.data()[i];
      for (size_t k = WHITE_NOW; k < NOWS; k++) to[k * j + i] = from[(k * STATES + s) * j + i];
      double extra = 0.0;
      for (size_t k = 0; k < j; k++) {
        const double one = k != i         ? jolts.data()[k] * mass[i * j + k] * shaking.data()[k]
                           : own == FAST ? jolts.data()[i] * rough.data()[i]
                                          : hardest * rough.data()[i];
        extra += one * one;
      }
      to[WHITE_NOW * j + i] += 4.0 * extra;
      to[WALK_NOW * j + i] += extra;
      const double shake = from[s * j + i];
      for (size_t k = 0; k < j; k++) velocity.data()[k * j + i] = mass[k * j + i] * shake;
    }
  }

private:
  void pose(const Prepared &engine, const double *q) {
    const size_t j = posed.size();
    double away = 0.0;
    // A pose that is not known is not near.
    for (size_t i = 0; i < j; i++) away = std::fmax(away, std::fabs(q[i] - posed[i]));
    bool known = away <= near;
    for (size_t i = 0; i < j; i++) known = known && posed[i] == posed[i];
    if (known) return;
    static thread_local double rows[3][(MOST_JOINTS + 1) * MOST_JOINTS],
        torque[(MOST_JOINTS + 1) * MOST_JOINTS];
    for (size_t k = 0; k <= j; k++)
      for (size_t i = 0; i < j; i++) {
        rows[0][k * j + i] = q[i];
        rows[1][k * j + i] = 0.0;
        rows[2][k * j + i] = i == k;
      }
    engine.loops->torque(engine.chain, {rows[0], rows[1], rows[2]}, 0,
                         static_cast<std::ptrdiff_t>(j + 1), torque,
                         workspace(engine.loops->work_size(engine.chain.joints)));
    for (size_t i = 0; i < j; i++) {
      posed[i] = q[i];
      for (size_t k = 0; k < j; k++)
        mass[i * j + k] = torque[k * j + i] - torque[j * j + i] + turning.data()[i * j + k];
    }
  }

  Tables tables;
  Vector rough, shaking;
  Matrix turning;
  double near;
  std::vector<double> posed, mass;
};

}  // namespace

void bind_change_test(nb::module_ &m) {
  nb::class_<ChangeTest>(m, "ChangeTest", "Evidence for a change of external torque.")
      .def(nb::init<Vector, Vector, Sizes, Rows, Cube, Cube>(), nb::arg("prior").noconvert(),
           nb::arg("numbers").noconvert(), nb::arg("windows").noconvert(),
           nb::arg("state").noconvert(), nb::arg("cells").noconvert(), nb::arg("ends").noconvert())
      .def("advance", &ChangeTest::advance, nb::arg("rows").noconvert(),
           nb::arg("velocity").noconvert(), nb::arg("sure").noconvert(), nb::arg("count"));
  nb::class_<CellNoise>(m, "CellNoise", "Noise of a cell by friction state and pose.")
      .def(nb::init<Tables, Vector, Vector, Matrix, double>(), nb::arg("tables").noconvert(),
           nb::arg("rough").noconvert(), nb::arg("shaking").noconvert(), nb::arg("turning").noconvert(), nb::arg("near"))
      .def("forget", &CellNoise::forget)
      .def("fill", &CellNoise::fill, nb::arg("engine"), nb::arg("position").noconvert(),
           nb::arg("torque").noconvert(), nb::arg("state").noconvert(),
           nb::arg("jolts").noconvert(),
           nb::arg("rows").noconvert(), nb::arg("velocity").noconvert());
}
