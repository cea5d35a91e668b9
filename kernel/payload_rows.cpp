// Rows of the payload filter and their sums, as payload/filter/payload_rows.py, joint_sums.py and
// change_detector.py have them in NumPy: a block of three time bins is too little work for arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cells.h"
#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Grams = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using History = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using List = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t TEN = 10, SECTION = 6;
constexpr double ZERO_LOAD = 1e-9;  // loads below this have no sign [N m]
enum Input { SPEED, POSITION, LOAD, WARMTH, TRAVEL, INPUTS };
// Sources of a packed column: joint, kind and index among that kind.
enum Kind { PAYLOAD, LINK, ROTOR, DRIVE, OFFSET, EXTRA, RESIDUAL, ABSENT, KINDS };

void require(bool right, const char *message) {
  if (!right) throw std::invalid_argument(message);
}

double sign(double x) { return (x > 0.0) - (x < 0.0); }

template <class A>
std::vector<std::remove_const_t<typename A::Scalar>> held(const A &x) {
  return {x.data(), x.data() + x.size()};
}

class PayloadRows {
public:
  PayloadRows(List operations, Vector registers, Places columns, List moves, Vector start,
              Places travelled, Matrix coefficients, Places by_load, Matrix drives, Vector links,
              List sources, Matrix fading, Vector widths, bool remembers, Vector slow,
              Vector cycles, Matrix sections, Matrix rest, double step, double standstill)
      : joints(drives.shape(1)), kinds(coefficients.shape(1)), waning(widths.shape(0)),
        operations(held(operations)), columns(held(columns)), moves(held(moves)),
        by_load(held(by_load)), travelled(held(travelled)), sources(held(sources)),
        registers(held(registers)), start(held(start)), coefficients(held(coefficients)),
        drives(held(drives)), links(held(links)), fading(held(fading)), widths(held(widths)),
        slow(held(slow)), cycles(held(cycles)), sections(held(sections)), rest(held(rest)),
        remembers(remembers), step(step), standstill(standstill),
        extras(slow.shape(0) + 1 + 2 * cycles.shape(0) + 1 + widths.shape(0)) {
    const size_t j = joints;
    require(j >= 1 && j <= MOST_JOINTS && operations.shape(1) == 5 && moves.shape(1) == 2 &&
                registers.shape(0) >= INPUTS * j && columns.shape(0) == j * kinds &&
                start.shape(0) == moves.shape(0) && travelled.shape(0) % 2 == 0 &&
                coefficients.shape(0) == j && drives.shape(0) == 2 &&
                links.shape(0) == TEN * j && sources.shape(1) == 3 && fading.shape(0) == j &&
                fading.shape(1) == waning && waning >= 1 && step > 0.0 &&
                (sections.shape(0) == 0 || sections.shape(1) == SECTION) &&
                rest.shape(0) == sections.shape(0) && (rest.shape(0) == 0 || rest.shape(1) == 2),
            "PayloadRows: shapes do not agree, or too many joints");
    tape = {this->operations.data(), this->columns.data(), this->moves.data(),
            operations.shape(0), j * kinds, moves.shape(0)};
    check_tape(tape, this->registers.size());
    for (size_t k = 0; k < this->travelled.size(); k += 2)
      require(this->travelled[k] >= 0 && size_t(this->travelled[k]) < this->registers.size() &&
                  this->travelled[k + 1] >= 0 && size_t(this->travelled[k + 1]) < j,
              "PayloadRows: a travel is outside the registers");
    for (const int32_t column : this->by_load)
      require(column >= 0 && size_t(column) < kinds, "PayloadRows: there is no such column");
    const size_t most[KINDS] = {TEN, TEN * j, 1, kinds, 1, extras, 1, 1};
    for (size_t k = 0; k < this->sources.size(); k += 3) {
      const int32_t *at = &this->sources[k];
      require(at[0] >= 0 && size_t(at[0]) < j && at[1] >= 0 && at[1] < KINDS && at[2] >= 0 &&
                  size_t(at[2]) < most[at[1]],
              "PayloadRows: a column has no source");
    }
    clear();
  }

  void clear() {
    begun = filtered = false;
    remaining.assign(joints * waning, 1.0);
    direction.assign(joints, 0.0);
    before.assign(joints, 0.0);
    for (size_t k = 0; k < start.size(); k++) registers[moves[2 * k + 1]] = start[k];
  }

  // Bins n + 2, of which the first and the last serve the acceleration of the others; rows n.
  void advance(const Prepared &engine, Matrix cells, Vector phi, Rows out) {
    const size_t j = joints, c = cells.shape(1), n = out.shape(0), packed = sources.size() / 3;
    require(size_t(engine.chain.joints) == j && cells.shape(0) == n + 2 && n >= 1 &&
                (c == 3 * j || c == 4 * j) && phi.shape(0) == TEN && out.shape(1) == packed + j,
            "PayloadRows: shapes of the bins do not agree");
    state.resize(3 * n * j);
    regressor.resize(n * j * TEN * j);
    double *q = state.data(), *v = q + n * j, *a = v + n * j;
    for (size_t t = 0; t < n; t++)
      for (size_t i = 0; i < j; i++) {
        const double *at = cells.data() + (t + 1) * c;
        q[t * j + i] = at[i];
        v[t * j + i] = at[j + i];
        a[t * j + i] = (at[c + j + i] - *(at - c + j + i)) / (2.0 * step);
      }
    engine.loops->regressor(engine.chain, {q, v, a}, 0, std::ptrdiff_t(n), false, regressor.data(),
                            workspace(engine.loops->work_size(engine.chain.joints)));
    for (size_t t = 0; t < n; t++) {
      const double *at = cells.data() + (t + 1) * c;
      row(at, c == 4 * j ? at + 3 * j : nullptr, a + t * j, regressor.data() + t * j * TEN * j,
          phi.data(), out.data() + t * (packed + j));
    }
    filter(out.data(), n, packed + j);
  }

private:
  void row(const double *at, const double *warm, const double *a, const double *y_links,
           const double *phi, double *to) {
    const size_t j = joints, wide = TEN * j;
    const double *q = at, *v = at + j, *torque = at + 2 * j;
    double rigid[MOST_JOINTS], load[MOST_JOINTS], by_phi[MOST_JOINTS], slope[MOST_JOINTS];
    double *r = registers.data();
    for (size_t i = 0; i < j; i++) {
      const double *own = y_links + i * wide, *tip = own + wide - TEN;
      rigid[i] = by_phi[i] = 0.0;
      for (size_t k = 0; k < wide; k++) rigid[i] += own[k] * links[k];
      for (size_t k = 0; k < TEN; k++) by_phi[i] += tip[k] * phi[k];
      load[i] = rigid[i] + by_phi[i];
      r[SPEED * j + i] = v[i];
      r[POSITION * j + i] = q[i];
      r[LOAD * j + i] = load[i];
      if (warm) r[WARMTH * j + i] = warm[i];
      r[TRAVEL * j + i] = v[i] * step;
    }
    if (!begun)
      for (size_t k = 0; k < travelled.size(); k += 2)
        r[travelled[k]] = r[TRAVEL * j + travelled[k + 1]];
    friction.resize(j * kinds);
    repeat(tape, r, friction.data());
    slide(v);
    extra.resize(j * extras);
    for (size_t i = 0; i < j; i++) {
      const double *own = friction.data() + i * kinds;
      slope[i] = 0.0;
      for (const int32_t k : by_load) slope[i] += own[k] * coefficients[i * kinds + k];
      slope[i] = std::fabs(load[i]) > ZERO_LOAD ? slope[i] / load[i] : 0.0;
      double *e = extra.data() + i * extras;
      for (const double speed : slow) *e++ = sign(v[i]) * std::exp(-std::fabs(v[i]) / speed);
      *e++ = direction[i] * std::fabs(load[i]);
      for (const double cycle : cycles) {
        *e++ = std::cos(cycle * q[i]);
        *e++ = std::sin(cycle * q[i]);
      }
      *e++ = rigid[i];
      for (size_t k = 0; k < waning; k++) *e++ = fading[i * waning + k] * remaining[i * waning + k];
    }
    for (size_t k = 0; k < sources.size(); k += 3) {
      const size_t i = sources[k], index = sources[k + 2];
      const double *own = y_links + i * wide;
      double value = 0.0;
      switch (sources[k + 1]) {
        case PAYLOAD: value = own[wide - TEN + index] * (1.0 + slope[i]); break;
        case LINK: value = own[index]; break;
        case ROTOR: value = a[i]; break;
        case DRIVE: value = friction[i * kinds + index]; break;
        case OFFSET: value = 1.0; break;
        case EXTRA: value = extra[i * extras + index]; break;
        case RESIDUAL:
          value = torque[i] - rigid[i] - drives[i] * a[i] - drives[j + i] + slope[i] * by_phi[i];
          for (size_t m = 0; m < kinds; m++) value -= friction[i * kinds + m] * coefficients[i * kinds + m];
          break;
      }
      *to++ = value;
    }
    for (size_t i = 0; i < j; i++) *to++ = std::fabs(v[i]) < standstill;
  }

  // Sliding direction and what is left of the friction state before the first sample, as
  // payload/filter/sliding_direction.py has them.
  void slide(const double *v) {
    for (size_t i = 0; i < joints; i++) {
      const double after = v[i] * step, earlier = begun ? before[i] : after;
      double there = 0.5 * (earlier + after), back = 0.0;
      if (earlier * after < 0.0) {
        const double span = 2.0 * (std::fabs(earlier) + std::fabs(after));
        there = earlier * std::fabs(earlier) / span;
        back = after * std::fabs(after) / span;
      }
      const double path = std::fabs(there) + std::fabs(back);
      for (size_t k = 0; k < waning; k++) remaining[i * waning + k] *= std::exp(-path / widths[k]);
      if (remembers) {
        for (const double leg : {there, back}) {
          const double grown = -std::expm1(-std::fabs(leg) / widths[0]);
          direction[i] += grown * (sign(leg) - direction[i]);
        }
      } else {
        direction[i] = sign(v[i]);
      }
      before[i] = after;
    }
    begun = true;
  }

  void filter(double *rows, size_t n, size_t c) {
    const size_t count = sections.size() / SECTION;
    if (!filtered) {
      memory.resize(count * 2 * c);
      for (size_t s = 0; s < count; s++)
        for (size_t k = 0; k < 2; k++)
          for (size_t i = 0; i < c; i++) memory[(2 * s + k) * c + i] = rest[2 * s + k] * rows[i];
      filtered = true;
    }
    for (size_t t = 0; t < n; t++, rows += c)
      for (size_t s = 0; s < count; s++) {
        const double *k = &sections[SECTION * s];
        double *first = &memory[2 * s * c], *second = first + c;
        for (size_t i = 0; i < c; i++) {
          const double x = rows[i], y = k[0] * x + first[i];
          first[i] = k[1] * x - k[4] * y + second[i];
          second[i] = k[2] * x - k[5] * y;
          rows[i] = y;
        }
      }
  }

  size_t joints, kinds, waning;
  std::vector<int32_t> operations, columns, moves, by_load, travelled, sources;
  std::vector<double> registers, start, coefficients, drives, links, fading, widths, slow, cycles,
      sections, rest;
  bool remembers;
  double step, standstill;
  size_t extras;
  Tape tape{};
  bool begun = false, filtered = false;
  std::vector<double> remaining, direction, before, memory, state, regressor, friction, extra;
};

// Weight of each row: less at standstill, where friction lies anywhere within its band, and outside
// the trained speeds and positions, as training_coverage.py has it. `limits` are the band over the
// noise density, the lowest and highest position and the largest speed of each joint.
void payload_weights(Matrix packed, Matrix position, Matrix velocity, Matrix limits, double speeds,
                     double positions, Rows out) {
  const size_t n = out.shape(0), j = out.shape(1), c = packed.shape(1);
  const auto fits = [n, j](const auto &x) { return x.shape(0) == n && x.shape(1) == j; };
  require(packed.shape(0) == n && c >= j && fits(position) && fits(velocity) &&
              limits.shape(0) == 4 && limits.shape(1) == j,
          "payload_weights: shapes do not agree");
  const double *band = limits.data(), *low = band + j, *high = low + j, *fastest = high + j;
  for (size_t t = 0; t < n; t++) {
    const double *standing = packed.data() + t * c + c - j, *q = position.data() + t * j;
    double beyond = 0.0;
    for (size_t i = 0; i < j; i++)
      beyond = std::max({beyond, q[i] - high[i], low[i] - q[i]});
    beyond /= positions;
    for (size_t i = 0; i < j; i++) {
      const double still = std::clamp(standing[i], 0.0, 1.0);
      const double excess =
          std::max(std::fabs(velocity.data()[t * j + i]) / fastest[i] - 1.0, 0.0) / speeds;
      out.data()[t * j + i] =
          1.0 / (1.0 + band[i] * still) / (1.0 + excess * excess) / (1.0 + beyond * beyond);
    }
  }
}

#if defined(TAUFIT_X86) && defined(__GNUC__) && !defined(__clang__)
#define TAUFIT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TAUFIT_CLONES
#endif

// Adds factor w x x' over n rows x of k entries; every line of the sum is passed once.
TAUFIT_CLONES
void add_squares(const double *rows, size_t stride, const double *weight, size_t step_weight,
                 double factor, size_t n, size_t k, double *gram) {
  for (size_t a = 0; a < k; a++, gram += k)
    for (size_t t = 0; t < n; t++) {
      const double *x = rows + t * stride;
      const double wx = weight[t * step_weight] * factor * x[a];
      for (size_t b = 0; b < k; b++) gram[b] += wx * x[b];
    }
}

// Adds [columns, y]' w [columns, y] of each joint to `grams`, one k x k block after the other, and
// durations and loads to `totals`: weights, motion, forwards, backwards, squared unit load.
void add_payload_rows(Matrix packed, Indices edges, Matrix velocity, Matrix weight, Vector density,
                      double step, Values grams, Rows totals) {
  const size_t n = packed.shape(0), c = packed.shape(1), j = density.shape(0);
  require(edges.shape(0) == j + 1 && weight.shape(0) == n && weight.shape(1) == j &&
              velocity.shape(0) == n && velocity.shape(1) == j && c >= j &&
              totals.shape(0) == j && totals.shape(1) == 5,
          "add_payload_rows: shapes do not agree");
  size_t size = 0;
  for (size_t i = 0; i < j; i++) {
    const int64_t from = edges.data()[i], to = edges.data()[i + 1];
    require(from >= 0 && from < to && size_t(to) <= c, "add_payload_rows: no such columns");
    size += size_t(to - from) * size_t(to - from);
  }
  require(grams.shape(0) == size, "add_payload_rows: no such sums");
  double *gram = grams.data();
  for (size_t i = 0; i < j; i++) {
    const size_t from = edges.data()[i], k = edges.data()[i + 1] - from;
    double *total = totals.data() + 5 * i;
    for (size_t t = 0; t < n; t++) {
      const double *x = packed.data() + t * c + from;
      const double w = weight.data()[t * j + i], speed = velocity.data()[t * j + i];
      const double still = std::clamp(packed.data()[t * c + c - j + i], 0.0, 1.0);
      total[0] += step * w;
      total[1] += step * (1.0 - still);
      total[2] += step * (w > 0.5 && speed > 0.0);
      total[3] += step * (w > 0.5 && speed < 0.0);
      total[4] += step * w * x[0] * x[0];
    }
    add_squares(packed.data() + from, c, weight.data() + i, j, step / density.data()[i], n, k, gram);
    gram += k * k;
  }
}

// x' G x of each joint, G one k x k block after the other and x its part of `values`.
void payload_powers(Vector grams, Indices edges, Vector values, Values out) {
  const size_t j = out.shape(0);
  require(edges.shape(0) == j + 1 && edges.data()[0] == 0 &&
              size_t(edges.data()[j]) == values.shape(0),
          "payload_powers: shapes do not agree");
  size_t size = 0;
  for (size_t i = 0; i < j; i++) {
    const int64_t k = edges.data()[i + 1] - edges.data()[i];
    require(k >= 0, "payload_powers: no such columns");
    size += size_t(k) * size_t(k);
  }
  require(grams.shape(0) == size, "payload_powers: no such sums");
  const double *gram = grams.data();
  for (size_t i = 0; i < j; i++) {
    const double *x = values.data() + edges.data()[i];
    const size_t k = edges.data()[i + 1] - edges.data()[i];
    double power = 0.0;
    for (size_t a = 0; a < k; a++, gram += k) {
      double product = 0.0;
      for (size_t b = 0; b < k; b++) product += gram[b] * x[b];
      power += x[a] * product;
    }
    out.data()[i] = power;
  }
}

constexpr size_t FOUR = 4, SEVEN = 7;

// [W, r, 1, l]' w [W, r, 1, l] of each joint: mass and moments, residual, constant, slow friction.
void change_gram(Matrix packed, Indices edges, Matrix weight, Vector factor, Vector states,
                 Indices slow, Grams out) {
  const size_t n = packed.shape(0), c = packed.shape(1), j = factor.shape(0);
  require(edges.shape(0) == j + 1 && weight.shape(0) == n && weight.shape(1) == j &&
              slow.shape(0) == j && out.shape(0) == j && out.shape(1) == SEVEN &&
              out.shape(2) == SEVEN && edges.data()[0] == 0 &&
              size_t(edges.data()[j]) == states.shape(0) && states.shape(0) <= c,
          "change_gram: shapes do not agree");
  std::fill(out.data(), out.data() + j * SEVEN * SEVEN, 0.0);
  for (size_t i = 0; i < j; i++) {
    const int64_t from = edges.data()[i], k = edges.data()[i + 1] - from;
    require(from >= 0 && k >= int64_t(FOUR) && slow.data()[i] >= 0 && slow.data()[i] < k,
            "change_gram: no such columns");
    double *gram = out.data() + i * SEVEN * SEVEN;
    for (size_t t = 0; t < n; t++) {
      const double *x = packed.data() + t * c + from, *state = states.data() + from;
      const double w = weight.data()[t * j + i] * factor.data()[i];
      if (w == 0.0) continue;
      double row[SEVEN] = {x[0], x[1], x[2], x[3], 0.0, 1.0, x[slow.data()[i]]};
      for (int64_t m = 0; m < k; m++) row[FOUR] -= x[m] * state[m];
      for (size_t a = 0; a < SEVEN; a++)
        for (size_t b = 0; b < SEVEN; b++) gram[a * SEVEN + b] += w * row[a] * row[b];
    }
  }
}

// g' (A + V^-1)^-1 g - ln det(1 + V A) of A and g side by side, and the first entry of the change.
double evidence_gain(const double *sides, const double *variance, double *first) {
  double a[FOUR][FOUR + 1];
  for (size_t r = 0; r < FOUR; r++) {
    std::copy(sides + r * (FOUR + 1), sides + (r + 1) * (FOUR + 1), a[r]);
    a[r][r] += 1.0 / variance[r];
  }
  double log_determinant = 0.0, gain = 0.0;
  for (size_t i = 0; i < FOUR; i++) {
    size_t pivot = i;
    for (size_t r = i + 1; r < FOUR; r++)
      if (std::fabs(a[r][i]) > std::fabs(a[pivot][i])) pivot = r;
    if (pivot != i) std::swap_ranges(a[i], a[i] + FOUR + 1, a[pivot]);
    log_determinant += std::log(std::fabs(a[i][i])) + std::log(variance[i]);
    for (size_t r = i + 1; r < FOUR; r++) {
      const double share = a[r][i] / a[i][i];
      for (size_t k = i; k <= FOUR; k++) a[r][k] -= share * a[i][k];
    }
  }
  double x[FOUR];
  for (size_t i = FOUR; i-- > 0;) {
    x[i] = a[i][FOUR];
    for (size_t k = i + 1; k < FOUR; k++) x[i] -= a[i][k] * x[k];
    x[i] /= a[i][i];
    gain += x[i] * sides[i * (FOUR + 1) + FOUR];
  }
  if (first) *first = x[0];
  return gain - log_determinant;
}

// Evidence of a change and its mass over the newest `lengths` entries of the history, ascending.
void change_evidence(History history, Indices lengths, Matrix prior, Vector variance,
                     Vector changed, Rows out) {
  const size_t m = history.shape(0), j = history.shape(1), count = lengths.shape(0);
  require(history.shape(2) == SEVEN && history.shape(3) == SEVEN && prior.shape(0) == j &&
              prior.shape(1) == 2 && variance.shape(0) == FOUR && changed.shape(0) == FOUR &&
              out.shape(0) == count && out.shape(1) == 2,
          "change_evidence: shapes do not agree");
  const size_t block = j * SEVEN * SEVEN;
  std::vector<double> total(block, 0.0);
  size_t done = 0;
  for (size_t k = 0; k < count; k++) {
    const int64_t length = lengths.data()[k];
    require(length >= 1 && size_t(length) <= m && size_t(length) >= done,
            "change_evidence: windows are not in order");
    for (; done < size_t(length); done++) {
      const double *from = history.data() + (m - 1 - done) * block;
      for (size_t i = 0; i < block; i++) total[i] += from[i];
    }
    double sides[FOUR * (FOUR + 1)] = {};
    for (size_t i = 0; i < j; i++) {
      const double *t = total.data() + i * SEVEN * SEVEN;
      // The joint's constant and slow friction eliminated.
      const double p = t[5 * SEVEN + 5] + prior.data()[2 * i], q = t[5 * SEVEN + 6];
      const double s = t[6 * SEVEN + 6] + prior.data()[2 * i + 1], determinant = p * s - q * q;
      for (size_t r = 0; r < FOUR; r++)
        for (size_t c = 0; c <= FOUR; c++) {
          const double one = t[5 * SEVEN + c], two = t[6 * SEVEN + c];
          sides[r * (FOUR + 1) + c] +=
              t[r * SEVEN + c] - (t[5 * SEVEN + r] * (s * one - q * two) +
                                  t[6 * SEVEN + r] * (p * two - q * one)) / determinant;
        }
    }
    double *to = out.data() + 2 * k;
    to[0] = evidence_gain(sides, changed.data(), to + 1) -
            evidence_gain(sides, variance.data(), nullptr);
  }
}

}  // namespace

void bind_payload_rows(nb::module_ &m) {
  nb::class_<PayloadRows>(m, "PayloadRows", "Rows of the payload filter, bin after bin.")
      .def(nb::init<List, Vector, Places, List, Vector, Places, Matrix, Places, Matrix, Vector, List,
                    Matrix, Vector, bool, Vector, Vector, Matrix, Matrix, double, double>())
      .def("clear", &PayloadRows::clear)
      .def("advance", &PayloadRows::advance, nb::arg("engine"), nb::arg("cells"), nb::arg("phi"),
           nb::arg("out").noconvert());
  m.def("payload_weights", &payload_weights, nb::arg("packed").noconvert(),
        nb::arg("position").noconvert(), nb::arg("velocity").noconvert(),
        nb::arg("limits").noconvert(), nb::arg("speeds"), nb::arg("positions"),
        nb::arg("out").noconvert());
  m.def("add_payload_rows", &add_payload_rows, nb::arg("packed").noconvert(),
        nb::arg("edges").noconvert(), nb::arg("velocity").noconvert(),
        nb::arg("weight").noconvert(), nb::arg("density").noconvert(), nb::arg("step"),
        nb::arg("grams").noconvert(), nb::arg("totals").noconvert());
  m.def("payload_powers", &payload_powers, nb::arg("grams").noconvert(),
        nb::arg("edges").noconvert(), nb::arg("values").noconvert(), nb::arg("out").noconvert());
  m.def("change_gram", &change_gram, nb::arg("packed").noconvert(), nb::arg("edges").noconvert(),
        nb::arg("weight").noconvert(), nb::arg("factor").noconvert(),
        nb::arg("states").noconvert(), nb::arg("slow").noconvert(), nb::arg("out").noconvert());
  m.def("change_evidence", &change_evidence, nb::arg("history").noconvert(),
        nb::arg("lengths").noconvert(), nb::arg("prior").noconvert(),
        nb::arg("variance").noconvert(), nb::arg("changed").noconvert(),
        nb::arg("out").noconvert());
}
