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
      if (!stands[i] && turn[i] < reversal) to[i] = TURNING;
      if (stands[i]) to[i] = a[QUIET] >= quiet ? REST : STANDING;
      if (edge[i] < change) to[i] = TURNING;
      const bool moves = std::fabs(v[i]) >= standstill;
      certain[i] = !blind && edge[i] >= blind_change && !(stands[i] && moves && !all_now);
    }
  }
}

using Sure = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The next cell of contact/change_test.py's `ChangeTest`: `state` holds level, variance and loudness
// of the joints, `starts` the signature, A, b and the level, variance and loudness before each
// start, one block of `longest` rows after the other. Gives evidence, slot and last joint of the most likely step, and
// each joint's part of it in `parts`.
nb::tuple change_test(Vector residual, Vector white, Vector walk, Sure sure, Vector prior,
                      Rows state, nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> starts,
                      Values parts, size_t count, size_t shortest, double fade, Vector clip, Vector learn,
                      double least, double most_loud) {
  const size_t j = prior.shape(0), longest = starts.shape(1);
  if (residual.shape(0) != j || white.shape(0) != j || walk.shape(0) != j || sure.shape(0) != j ||
      state.shape(0) != 3 || state.shape(1) != j || starts.shape(0) != 6 || starts.shape(2) != j ||
      parts.shape(0) != j || clip.shape(0) != j ||
      learn.shape(0) != j || longest == 0)
    throw std::invalid_argument("change_test: shapes do not agree");
  double *level = state.data(), *variance = level + j, *loudness = variance + j;
  const size_t block = longest * j, slot = count % longest;
  double *g = starts.data(), *a = g + block, *b = a + block, *m = b + block, *p = m + block,
         *l = p + block;
  for (size_t i = 0; i < j; i++) {
    const size_t at = slot * j + i;
    // As loud as before the earliest start: what is to be found must not hide itself.
    const double factor = std::fmin(std::fmax(l[at], least), most_loud);
    l[at] = loudness[i];
    m[at] = level[i];
    p[at] = variance[i];
    g[at] = a[at] = b[at] = 0.0;
    const double before = fade * level[i], spread = fade * fade * variance[i] + walk.data()[i];
    const double expected = spread + white.data()[i], total = factor * expected,
                 bound = clip.data()[i] * std::sqrt(total);
    const double innovation = std::fmin(std::fmax(residual.data()[i] - before, -bound), bound);
    const double gain = spread / expected;
    loudness[i] += learn.data()[i] * (innovation * innovation / expected - loudness[i]);
    for (size_t s = i; s < block; s += j) {
      g[s] *= fade;
      const double seen = 1.0 - g[s];
      if (sure.data()[i]) {
        a[s] += seen * seen / total;
        b[s] += seen * innovation / total;
      } else {
        a[s] = b[s] = 0.0;
      }
      g[s] += gain * seen;
    }
    level[i] = before + gain * innovation;
    variance[i] = (1.0 - gain) * spread;
  }
  count++;
  double most = -INFINITY;
  size_t best = 0, last = 0;
  for (size_t s = 0; s < longest; s++) {
    const size_t age = (count - 1 + longest - s) % longest + 1;
    if (age < shortest || age > count) continue;
    double sum = 0.0;
    for (size_t i = 0; i < j; i++) {
      const double x = a[s * j + i], y = b[s * j + i], w = prior.data()[i];
      sum += y * y / (x + 1.0 / w) - std::log1p(x * w);
      if (sum > most) {
        most = sum;
        best = s;
        last = i;
      }
    }
  }
  for (size_t i = 0; i < j; i++) {
    const double x = a[best * j + i], y = b[best * j + i], w = prior.data()[i];
    parts.data()[i] = y * y / (x + 1.0 / w) - std::log1p(x * w);
  }
  return nb::make_tuple(most, best, last);
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
        nb::arg("white").noconvert(), nb::arg("walk").noconvert(), nb::arg("sure").noconvert(),
        nb::arg("prior").noconvert(), nb::arg("state").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("parts").noconvert(), nb::arg("count"), nb::arg("shortest"), nb::arg("fade"),
        nb::arg("clip").noconvert(), nb::arg("learn").noconvert(), nb::arg("least"),
        nb::arg("most_loud"));
}
