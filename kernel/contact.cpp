// What joints are doing and whether their torque has changed, cell by cell; NumPy forms of both are
// in friction/states.py and contact/change_test.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

enum State { FAST, SLOW, TURNING, STANDING, REST };
enum Memory { ANCHOR, WAY, STOOD, STILL, EDGE, TURN, CREPT, MEMORIES };
enum Arm { BEGUN, QUIET, START, STOP, ARMS };

void friction_states(Matrix position, Matrix velocity, Vector numbers, Rows memory, Values arm,
                     Counts state, Flags standing, Flags sure) {
  const size_t n = position.shape(0), j = position.shape(1);
  const auto same = [n, j](const auto &x) { return x.shape(0) == n && x.shape(1) == j; };
  if (!same(velocity) || !same(state) || !same(standing) || !same(sure) ||
      numbers.shape(0) != 10 || memory.shape(0) != MEMORIES || memory.shape(1) != j ||
      arm.shape(0) != ARMS)
    throw std::invalid_argument("friction_states: shapes do not agree");
  nb::gil_scoped_release release;
  const double *c = numbers.data();
  const double standstill = c[0], slow = c[1], displaced = c[2], slow_for = c[3], reversal = c[4],
               change = c[5], settle = c[6], quiet = c[7], blind_change = c[8], blind_start = c[9];
  double *a = arm.data();
  const auto row = [&](Memory k) { return memory.data() + k * j; };
  double *anchor = row(ANCHOR), *way = row(WAY), *stood = row(STOOD), *still = row(STILL),
         *edge = row(EDGE), *turn = row(TURN), *crept = row(CREPT);
  for (size_t t = 0; t < n; t++) {
    const double *q = position.data() + t * j, *v = velocity.data() + t * j;
    if (a[BEGUN] == 0.0) {
      a[BEGUN] = 1.0;
      for (size_t i = 0; i < j; i++) {
        anchor[i] = q[i];
        stood[i] = std::fabs(v[i]) < standstill;
      }
    }
    bool all_before = true, all_now = true;
    bool *stands = standing.data() + t * j;
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
    a[START] = all_before && !all_now ? 0.0 : a[START] + 1.0;
    a[STOP] = all_now && !all_before ? 0.0 : a[STOP] + 1.0;
    const bool blind = a[START] < blind_start || a[STOP] < blind_change;
    int64_t *to = state.data() + t * j;
    bool *certain = sure.data() + t * j;
    for (size_t i = 0; i < j; i++) {
      to[i] = crept[i] <= slow_for ? SLOW : FAST;
      if (!stands[i] && (turn[i] < reversal || still[i] > 0.0)) to[i] = TURNING;
      if (stands[i]) to[i] = a[QUIET] >= quiet ? REST : STANDING;
      if (edge[i] < change) to[i] = TURNING;
      const bool moves = std::fabs(v[i]) >= standstill;
      certain[i] = !blind && edge[i] >= blind_change && !(stands[i] && moves && !all_now);
    }
  }
}

using Sure = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Sizes = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t MOST_JOINTS = 32;
enum Remembered { TORQUE, WHITE, WALK, LEVEL, VARIANCE, LOUD, SURE, REMEMBERED };
enum Number { FADE, LEARN, QUIETEST, LOUDEST, RARE, CLIP, NUMBERS };

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

// The next cell of contact/change_test.py's `ChangeTest`: `state` holds level, variance and loudness
// of the joints, `cells` and `ends` the ring of the last cells. Gives evidence, age and last joint of
// the most likely change; age 0 where there is none.
nb::tuple change_test(Vector residual, Vector white, Vector walk, Matrix velocity, Vector own,
                      Sure sure, Vector clip, Vector prior, Vector numbers, Sizes windows,
                      Rows state, Cube cells, Cube ends, size_t count) {
  const size_t j = prior.shape(0), size = cells.shape(0);
  const auto fits = [j](const auto &x) { return x.shape(0) == j; };
  if (!fits(residual) || !fits(white) || !fits(walk) || !fits(velocity) || !fits(own) ||
      !fits(sure) || !fits(clip) || velocity.shape(1) != j || numbers.shape(0) != NUMBERS ||
      state.shape(0) != 3 || state.shape(1) != j || cells.shape(1) != REMEMBERED ||
      cells.shape(2) != j || ends.shape(0) != size || ends.shape(1) != j || ends.shape(2) != j ||
      size < 3 || j > MOST_JOINTS)
    throw std::invalid_argument("change_test: shapes do not agree, or too many joints");
  for (size_t k = 0; k < windows.shape(0); k++)
    if (windows.data()[k] < 1 || static_cast<size_t>(windows.data()[k]) >= size)
      throw std::invalid_argument("change_test: a window is longer than the memory");
  const double *c = numbers.data();
  const auto row = [&](size_t age) { return (count + size + 1 - age) % size; };
  const auto cell = [&](size_t age) { return cells.data() + row(age) * REMEMBERED * j; };
  const size_t longest = size - 1;
  double *level = state.data(), *variance = level + j, *loudness = variance + j;
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
    const double w = white.data()[i], before = c[FADE] * level[i],
                 spread = c[FADE] * c[FADE] * variance[i] + walk.data()[i],
                 single = spread + 0.5 * w + 2.0 * shaken,
                 bound = clip.data()[i] * std::sqrt(f * single);
    const double innovation = std::fmin(std::fmax(residual.data()[i] - before, -bound), bound);
    const double gain = spread / (spread + w + shaken);
    level[i] = before + gain * innovation;
    variance[i] = (1.0 - gain) * spread;
    now[TORQUE * j + i] = before + innovation;
    now[WHITE * j + i] = w;
    now[WALK * j + i] = walk.data()[i];
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
    const double *first = cell(n), *start = ends.data() + row(n + 1) * j * j;
    const double share = 1.0 / static_cast<double>(n);
    for (size_t x = 0; x < j; x++) {
      for (size_t y = 0; y <= x; y++)
        covariance[x * j + y] = (products[x * j + y] + product(start, x, y)) * share * share;
      covariance[x * j + x] += sums[WHITE][x] * share * share * (1.0 - 0.5 * share) +
                               first[VARIANCE * j + x] + sums[WALK][x] / 3.0;
      if (!use[x]) covariance[x * j + x] += 1e6 * prior.data()[x];
      change[x] = use[x] ? (sums[TORQUE][x] * share - first[LEVEL * j + x]) / std::sqrt(loud[x]) : 0.0;
      wide[x] = use[x] ? prior.data()[x] / loud[x] : 0.0;
      jump[x] = use[x] ? own.data()[x] / loud[x] : 0.0;
      if (k == 0 && use[x] && clip.data()[x] <= c[CLIP]) {
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
  return nb::make_tuple(most, age, last);
}

enum Code { ADD, SUBTRACT, MULTIPLY, DIVIDE, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, MAXIMUM,
            MINIMUM, POWER, WHERE, NEGATIVE, ABSOLUTE, TANH, EXP, LOG, SQRT, SIN, COS, ARCTAN, SIGN,
            SQUARE, EXPM1, LOG1P, CODES };

using List = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double result(int code, double a, double b, double c) {
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
  throw std::invalid_argument("run_tape: there is no such operation");
}

// A list of operations (code, a, b, c, place) between registers, see model/friction_tape.py; then
// `results` are copied to `out` and `moves` from one register to another.
void run_tape(List operations, Values registers, Places results, List moves, Values out) {
  const int32_t size = static_cast<int32_t>(registers.shape(0));
  const auto inside = [size](int32_t i) { return i >= 0 && i < size; };
  if (operations.shape(1) != 5 || moves.shape(1) != 2 || out.shape(0) != results.shape(0))
    throw std::invalid_argument("run_tape: shapes do not agree");
  double *r = registers.data();
  const int32_t *x = operations.data();
  for (size_t k = 0; k < operations.shape(0); k++, x += 5) {
    if (!inside(x[1]) || !inside(x[2]) || !inside(x[3]) || !inside(x[4]))
      throw std::invalid_argument("run_tape: a place is outside the registers");
    r[x[4]] = result(x[0], r[x[1]], r[x[2]], r[x[3]]);
  }
  for (size_t k = 0; k < results.shape(0); k++) {
    if (!inside(results.data()[k])) throw std::invalid_argument("run_tape: no such result");
    out.data()[k] = r[results.data()[k]];
  }
  // What one register hands on is not what another has just become.
  double handed[256];
  const size_t n = moves.shape(0);
  if (n > 256) throw std::invalid_argument("run_tape: too many moves");
  for (size_t k = 0; k < n; k++) {
    if (!inside(moves.data()[2 * k]) || !inside(moves.data()[2 * k + 1]))
      throw std::invalid_argument("run_tape: a move is outside the registers");
    handed[k] = r[moves.data()[2 * k]];
  }
  for (size_t k = 0; k < n; k++) r[moves.data()[2 * k + 1]] = handed[k];
}

// The broken line through samples averaged over n cells from `edge` on, as payload/filter/grid.py
// has it; returns the last sample before the next cell's edge.
size_t grid_cells(Vector time, Matrix values, double edge, double step, Rows out) {
  const size_t filled = time.shape(0), c = values.shape(1), n = out.shape(0);
  if (values.shape(0) != filled || out.shape(1) != c || filled < 2)
    throw std::invalid_argument("grid_cells: shapes do not agree");
  const double *t = time.data(), *y = values.data();
  size_t i = 0;
  while (i + 2 < filled && t[i + 1] <= edge) i++;
  double from = edge;
  for (size_t k = 0; k < n; k++) {
    double *to = out.data() + k * c;
    for (size_t s = 0; s < c; s++) to[s] = 0.0;
    const double end = edge + step * static_cast<double>(k + 1);
    while (true) {
      const bool last = i + 2 >= filled || t[i + 1] > end;
      const double until = last ? end : t[i + 1], width = t[i + 1] - t[i];
      const double a = std::fmin((from - t[i]) / width, 1.0);
      const double b = std::fmin((until - t[i]) / width, 1.0);
      const double weight = (until - from) / step, right = 0.5 * (a + b) * weight;
      const double *low = y + i * c, *high = low + c;
      for (size_t s = 0; s < c; s++) to[s] += (weight - right) * low[s] + right * high[s];
      from = until;
      if (last) break;
      i++;
    }
  }
  while (i + 2 < filled && t[i + 1] <= from) i++;
  return i;
}

}  // namespace

void bind_contact(nb::module_ &m) {
  m.def("friction_states", &friction_states, nb::arg("position").noconvert(),
        nb::arg("velocity").noconvert(), nb::arg("numbers").noconvert(),
        nb::arg("memory").noconvert(), nb::arg("arm").noconvert(), nb::arg("state").noconvert(),
        nb::arg("standing").noconvert(), nb::arg("sure").noconvert());
  m.def("run_tape", &run_tape, nb::arg("operations").noconvert(), nb::arg("registers").noconvert(),
        nb::arg("results").noconvert(), nb::arg("moves").noconvert(), nb::arg("out").noconvert());
  m.def("grid_cells", &grid_cells, nb::arg("time").noconvert(), nb::arg("values").noconvert(),
        nb::arg("edge"), nb::arg("step"), nb::arg("out").noconvert());
  m.def("change_test", &change_test, nb::arg("residual").noconvert(),
        nb::arg("white").noconvert(), nb::arg("walk").noconvert(), nb::arg("velocity").noconvert(),
        nb::arg("own").noconvert(), nb::arg("sure").noconvert(), nb::arg("clip").noconvert(),
        nb::arg("prior").noconvert(), nb::arg("numbers").noconvert(),
        nb::arg("windows").noconvert(), nb::arg("state").noconvert(), nb::arg("cells").noconvert(),
        nb::arg("ends").noconvert(), nb::arg("count"));
}
