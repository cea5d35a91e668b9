// Read-out of the payload filter: what one joint knows once its own unknowns are integrated out, and
// the most probable body that can exist.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using WritableVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

#if defined(TAUFIT_X86) && defined(__GNUC__) && !defined(__clang__)
#define TAUFIT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TAUFIT_CLONES
#endif

constexpr int kTen = 10, kRounds = 25;
// A step smaller than this in standard deviations changes nothing.
constexpr double kConverged = 1e-2;
// log m and the logarithms on the diagonal of L.
constexpr int kLogarithms[] = {0, 4, 6, 9};
constexpr int kDiagonal[] = {0, 2, 5};
constexpr int kBeside[] = {1, 3, 4};
// Rows and columns of xx, xy, yy, xz, yz, zz.
constexpr int kRow[] = {0, 1, 1, 2, 2, 2}, kColumn[] = {0, 0, 1, 0, 1, 2};

using Ten = double[kTen];
using Square = double[kTen][kTen];

// a x = b by elimination with row pivoting; a (n x n) and b (n x m) are overwritten.
bool eliminate(double *a, double *b, int n, int m) {
  for (int i = 0; i < n; i++) {
    int pivot = i;
    for (int r = i + 1; r < n; r++)
      if (std::fabs(a[r * n + i]) > std::fabs(a[pivot * n + i])) pivot = r;
    const double head = a[pivot * n + i];
    if (!(std::fabs(head) > 0.0)) return false;
    if (pivot != i) {
      std::swap_ranges(a + i * n, a + (i + 1) * n, a + pivot * n);
      std::swap_ranges(b + i * m, b + (i + 1) * m, b + pivot * m);
    }
    for (int r = i + 1; r < n; r++) {
      const double factor = a[r * n + i] / head;
      if (factor == 0.0) continue;
      for (int c = i; c < n; c++) a[r * n + c] -= factor * a[i * n + c];
      for (int c = 0; c < m; c++) b[r * m + c] -= factor * b[i * m + c];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int r = i + 1; r < n; r++)
      for (int c = 0; c < m; c++) b[i * m + c] -= a[i * n + r] * b[r * m + c];
    for (int c = 0; c < m; c++) b[i * m + c] /= a[i * n + i];
  }
  return true;
}

// Ixx, Ixy, Iyy, Ixz, Iyz, Izz of second moments: I = tr(S) 1 - S.
void to_inertia(const double *s, double *out) {
  out[0] = s[2] + s[5];
  out[1] = -s[1];
  out[2] = s[0] + s[5];
  out[3] = -s[3];
  out[4] = -s[4];
  out[5] = s[0] + s[2];
}

// L L' in six entries and, column by column, its derivative by the six of L (logs on the diagonal).
void moments(const double *x, double *about, double turn[6][6]) {
  double l[6];
  for (int k = 0; k < 6; k++) l[k] = x[4 + k];
  for (int k : kDiagonal) l[k] = std::exp(l[k]);
  for (int k = 0; k < 6; k++) {
    about[k] = 0.0;
    for (int d = 0; d < 6; d++) turn[d][k] = 0.0;
  }
  for (int k = 0; k < 6; k++)
    for (int a = 0; a < 6; a++)
      for (int b = 0; b < 6; b++)
        if (kColumn[a] == kColumn[b] && kRow[a] == kRow[k] && kRow[b] == kColumn[k]) {
          about[k] += l[a] * l[b];
          turn[a][k] += l[b];
          turn[b][k] += l[a];
        }
  for (int d : kDiagonal)
    for (int k = 0; k < 6; k++) turn[d][k] *= l[d];
}

// phi(x) and its derivative.
void parameters(const Ten x, Ten phi, Square jacobian) {
  const double mass = std::exp(x[0]), *c = x + 1;
  double about[6], turn[6][6], outer[6], whole[6], column[6];
  moments(x, about, turn);
  for (int k = 0; k < 6; k++) {
    outer[k] = mass * c[kRow[k]] * c[kColumn[k]];
    whole[k] = about[k] + outer[k];
  }
  phi[0] = mass;
  for (int i = 0; i < 3; i++) phi[1 + i] = mass * c[i];
  to_inertia(whole, phi + 4);
  for (int i = 0; i < kTen; i++)
    for (int j = 0; j < kTen; j++) jacobian[i][j] = 0.0;
  jacobian[0][0] = mass;
  for (int i = 0; i < 3; i++) {
    jacobian[1 + i][0] = phi[1 + i];
    jacobian[1 + i][1 + i] = mass;
  }
  to_inertia(outer, column);
  for (int k = 0; k < 6; k++) jacobian[4 + k][0] = column[k];
  for (int i = 0; i < 3; i++) {
    double turned[6];
    for (int k = 0; k < 6; k++)
      turned[k] = mass * ((kRow[k] == i ? c[kColumn[k]] : 0.0) + (kColumn[k] == i ? c[kRow[k]] : 0.0));
    to_inertia(turned, column);
    for (int k = 0; k < 6; k++) jacobian[4 + k][1 + i] = column[k];
  }
  for (int d = 0; d < 6; d++) {
    to_inertia(turn[d], column);
    for (int k = 0; k < 6; k++) jacobian[4 + k][4 + d] = column[k];
  }
}

struct Shape {
  double spread, com_spread, density;
  const double *box;

  // Information (its diagonal), gradient of half the cost, and cost at x.
  double prior(const Ten x, Ten information, Ten gradient) const {
    const double mass = std::exp(x[0]), edge = std::cbrt(mass / density);
    double middle[6] = {0.0}, mean = 0.0, cost = 0.0;
    for (int i = 0; i < 3; i++) {
      const double length = std::isfinite(box[i]) ? box[i] : edge;
      middle[kDiagonal[i]] = std::log(std::sqrt(mass / 12.0) * length);
      mean += middle[kDiagonal[i]] / 3.0;
    }
    Ten std;
    std[0] = 10.0;
    for (int i = 1; i < 4; i++) std[i] = com_spread;
    for (int i = 4; i < kTen; i++) std[i] = spread;
    // What stands beside the diagonal is a length too, about as large as the diagonal's.
    for (int k : kBeside) std[4 + k] *= std::exp(mean);
    for (int i = 0; i < kTen; i++) {
      const double off = x[i] - (i < 4 ? 0.0 : middle[i - 4]);
      information[i] = 1.0 / (std[i] * std[i]);
      gradient[i] = off * information[i];
      cost += off * gradient[i];
    }
    return cost;
  }
};

struct Problem {
  const double *information, *target;
  Shape shape;
  Ten phi = {}, prior = {}, gradient = {}, pushed = {};
  Square jacobian = {};

  double value(const Ten x) {
    parameters(x, phi, jacobian);
    double out = shape.prior(x, prior, gradient);
    for (int i = 0; i < kTen; i++) {
      pushed[i] = 0.0;
      for (int j = 0; j < kTen; j++) pushed[i] += information[i * kTen + j] * phi[j];
      out += phi[i] * (pushed[i] - 2.0 * target[i]);
    }
    return out;
  }

  void curvature(Square out) const {
    Square half;
    for (int i = 0; i < kTen; i++)
      for (int j = 0; j < kTen; j++) {
        half[i][j] = 0.0;
        for (int k = 0; k < kTen; k++) half[i][j] += information[i * kTen + k] * jacobian[k][j];
      }
    for (int i = 0; i < kTen; i++)
      for (int j = 0; j < kTen; j++) {
        out[i][j] = i == j ? prior[i] : 0.0;
        for (int k = 0; k < kTen; k++) out[i][j] += jacobian[k][i] * half[k][j];
      }
  }
};

// x goes in as the start and comes out as the most probable body; returns the share of the prior in
// what is known about the inertia, or -1 where the information is not that of a minimum.
double most_probable_body(Matrix information, Vector target, Vector box, double density,
                          double spread, double com_spread, WritableVector at,
                          WritableVector parameters_out, WritableVector described,
                          WritableMatrix covariance) {
  if (information.shape(0) != kTen || information.shape(1) != kTen || target.shape(0) != kTen ||
      box.shape(0) != 3 || at.shape(0) != kTen || parameters_out.shape(0) != kTen ||
      described.shape(0) != kTen || covariance.shape(0) != kTen || covariance.shape(1) != kTen)
    throw std::invalid_argument("a body has ten parameters and a box three lengths");
  Problem problem{information.data(), target.data(), {spread, com_spread, density, box.data()}};
  Ten x;
  std::copy_n(at.data(), kTen, x);
  double value = problem.value(x), damping = 0.0;
  Square bent;
  Ten size;
  for (int round = 0; round < kRounds; round++) {
    Ten slope, step, trial;
    problem.curvature(bent);
    for (int i = 0; i < kTen; i++) {
      slope[i] = -problem.gradient[i];
      for (int k = 0; k < kTen; k++)
        slope[i] += problem.jacobian[k][i] * (problem.target[k] - problem.pushed[k]);
      size[i] = 1.0 / std::sqrt(bent[i][i]);
    }
    double next;
    while (true) {
      Square damped;
      for (int i = 0; i < kTen; i++) {
        for (int j = 0; j < kTen; j++) damped[i][j] = bent[i][j] * size[i] * size[j];
        damped[i][i] += damping;
        step[i] = slope[i] * size[i];
      }
      if (!eliminate(&damped[0][0], step, kTen, 1)) return -1.0;
      double longest = 1.0;
      for (int i = 0; i < kTen; i++) step[i] *= size[i];
      for (int i : kLogarithms) longest = std::max(longest, std::fabs(step[i]));
      for (int i = 0; i < kTen; i++) {
        step[i] /= longest;
        trial[i] = x[i] + step[i];
      }
      next = problem.value(trial);
      if (next <= value + 1e-9 * std::fabs(value) || damping > 1e6) break;
      damping = std::max(10.0 * damping, 1e-3);
    }
    std::copy_n(trial, kTen, x);
    value = next;
    damping = damping < 1e-3 ? 0.0 : 0.1 * damping;
    double furthest = 0.0;
    for (int i = 0; i < kTen; i++) furthest = std::max(furthest, std::fabs(step[i] / size[i]));
    if (!(furthest >= kConverged)) break;
  }
  problem.curvature(bent);
  Square scaled, inverse = {};
  for (int i = 0; i < kTen; i++) size[i] = 1.0 / std::sqrt(bent[i][i]);
  for (int i = 0; i < kTen; i++) {
    for (int j = 0; j < kTen; j++) scaled[i][j] = bent[i][j] * size[i] * size[j];
    inverse[i][i] = 1.0;
  }
  if (!eliminate(&scaled[0][0], &inverse[0][0], kTen, kTen)) return -1.0;
  double share = 0.0;
  for (int i = 0; i < kTen; i++)
    for (int j = 0; j < kTen; j++) inverse[i][j] *= size[i] * size[j];
  for (int i = 4; i < kTen; i++)
    share += std::min(std::sqrt(std::max(inverse[i][i], 0.0) * problem.prior[i]), 1.0) / 6.0;

  // (m, c, inertia about c) and its derivative by x.
  Square told = {}, half;
  double about[6], turn[6][6], column[6];
  moments(x, about, turn);
  described.data()[0] = std::exp(x[0]);
  told[0][0] = described.data()[0];
  for (int i = 1; i < 4; i++) {
    described.data()[i] = x[i];
    told[i][i] = 1.0;
  }
  to_inertia(about, described.data() + 4);
  for (int d = 0; d < 6; d++) {
    to_inertia(turn[d], column);
    for (int k = 0; k < 6; k++) told[4 + k][4 + d] = column[k];
  }
  for (int i = 0; i < kTen; i++)
    for (int j = 0; j < kTen; j++) {
      half[i][j] = 0.0;
      for (int k = 0; k < kTen; k++) half[i][j] += told[i][k] * inverse[k][j];
    }
  for (int i = 0; i < kTen; i++)
    for (int j = 0; j < kTen; j++) {
      double sum = 0.0;
      for (int k = 0; k < kTen; k++) sum += half[i][k] * told[j][k];
      covariance.data()[i * kTen + j] = sum;
    }
  std::copy_n(problem.phi, kTen, parameters_out.data());
  std::copy_n(x, kTen, at.data());
  return share;
}

// Adds what one joint says about the columns it shares with others and about its drive gain, with
// the columns of its own (the last before y) integrated out. With square = [s, o, y]' [s, o, y], the
// gain's column g = payload phi and everything times weight,
//
//     total += [s, g]' [s, g] - C' S,   target += [s, g]' y - C' S_y,   S = (o'o + prior)^-1 C,
//
// C = o' [s, g, y] plus what the prior says about o with s and about o alone. `rows` are the joint's
// columns in the prior, the first `shared` of them s; these and `gain` are where s and g stand in the
// total.
// False if the joint's own unknowns have no prior: a copy per instruction set cannot throw.
TAUFIT_CLONES
bool marginalise_joint(const double *q, size_t k, const int64_t *rows, size_t shared,
                       const double *prior, size_t of_prior, const double *prior_target,
                       const double *phi, double weight, size_t gain, double *total,
                       size_t of_total, double *target, double *solved) {
  const size_t all = k + 1, own = k - shared, wide = shared + 2;
  std::vector<double> line(all, 0.0), half(own * wide), lower(own * own);
  for (size_t i = 0; i < all; i++)
    for (size_t c = 0; c < kTen; c++) line[i] += q[i * all + c] * phi[c];
  for (size_t o = 0; o < own; o++) {
    const size_t mine = rows[shared + o];
    const double *from = q + (shared + o) * all, *known = prior + mine * of_prior;
    double *to = half.data() + o * wide;
    for (size_t c = 0; c < shared; c++) to[c] = weight * from[c] + known[rows[c]];
    to[shared] = weight * line[shared + o];
    to[shared + 1] = weight * from[k] + prior_target[mine];
    for (size_t c = 0; c <= o; c++)
      lower[o * own + c] = weight * from[shared + c] + known[rows[shared + c]];
  }
  // With L L' = o'o + prior, half = L^-1 C, so C' S = half' half: symmetric, one half is enough.
  double *f = half.data();
  for (size_t o = 0; o < own; o++) {
    for (size_t r = 0; r < o; r++) {
      for (size_t c = 0; c < r; c++) lower[o * own + r] -= lower[o * own + c] * lower[r * own + c];
      lower[o * own + r] /= lower[r * own + r];
      lower[o * own + o] -= lower[o * own + r] * lower[o * own + r];
    }
    if (!(lower[o * own + o] > 0.0)) return false;
    lower[o * own + o] = std::sqrt(lower[o * own + o]);
    for (size_t r = 0; r < o; r++)
      for (size_t c = 0; c < wide; c++) f[o * wide + c] -= lower[o * own + r] * f[r * wide + c];
    for (size_t c = 0; c < wide; c++) f[o * wide + c] /= lower[o * own + o];
  }
  std::copy(half.begin(), half.end(), solved);
  double *s = solved;
  for (size_t o = own; o-- > 0;) {
    for (size_t r = o + 1; r < own; r++)
      for (size_t c = 0; c < wide; c++) s[o * wide + c] -= lower[r * own + o] * s[r * wide + c];
    for (size_t c = 0; c < wide; c++) s[o * wide + c] /= lower[o * own + o];
  }
  const size_t n = shared + 1;
  std::vector<double> block(n * n), right(n);
  for (size_t i = 0; i < shared; i++) {
    for (size_t c = i; c < shared; c++) block[i * n + c] = weight * q[i * all + c];
    block[i * n + shared] = weight * line[i];
    right[i] = weight * q[i * all + k];
  }
  for (size_t c = 0; c < kTen; c++) block[n * n - 1] += weight * phi[c] * line[c];
  right[shared] = weight * line[k];
  for (size_t o = 0; o < own; o++) {
    const double *row = half.data() + o * wide;
    for (size_t i = 0; i < n; i++) {
      for (size_t c = i; c < n; c++) block[i * n + c] -= row[i] * row[c];
      right[i] -= row[i] * row[n];
    }
  }
  for (size_t i = 1; i < n; i++)
    for (size_t c = 0; c < i; c++) block[i * n + c] = block[c * n + i];
  for (size_t i = 0; i < n; i++) {
    const size_t at = i < shared ? rows[i] : gain;
    double *to = total + at * of_total;
    for (size_t c = 0; c < shared; c++) to[rows[c]] += block[i * n + c];
    to[gain] += block[i * n + shared];
    target[at] += right[i];
  }
  return true;
}

void without_own(Matrix square, Matrix prior, Vector prior_target, Indices rows, size_t shared,
                 Vector phi, double weight, size_t gain, WritableMatrix total,
                 WritableVector target, WritableMatrix solved) {
  const size_t all = square.shape(0), k = rows.shape(0), of_prior = prior.shape(0);
  if (square.shape(1) != all || all != k + 1 || shared < kTen || shared > k)
    throw std::invalid_argument("a joint's sum of squares holds its columns, then y");
  const size_t own = k - shared, wide = shared + 2;
  const size_t of_total = total.shape(0);
  if (prior.shape(1) != of_prior || prior_target.shape(0) != of_prior || phi.shape(0) != kTen ||
      total.shape(1) != of_total || target.shape(0) != of_total || gain >= of_total ||
      solved.shape(0) != own || solved.shape(1) != wide)
    throw std::invalid_argument("a joint's blocks do not agree with its sum of squares");
  for (size_t i = 0; i < k; i++)
    if (rows.data()[i] < 0 || size_t(rows.data()[i]) >= (i < shared ? of_total : of_prior) ||
        size_t(rows.data()[i]) >= of_prior)
      throw std::invalid_argument("a joint's columns are among those of the prior");
  if (!marginalise_joint(square.data(), k, rows.data(), shared, prior.data(), of_prior,
                         prior_target.data(), phi.data(), weight, gain, total.data(), of_total,
                         target.data(), solved.data()))
    throw std::domain_error("a joint's own unknowns have no prior");
}

// Information on the payload with all other unknowns integrated out, its mean under a weak prior and
// the other unknowns given that mean, as payload/filter/posterior.py has them; for priors in which
// unknowns of different joints are independent. Returns the variance of the mass.
double payload_read_out(Vector grams, Indices edges, Indices columns, Matrix prior,
                        Vector prior_target, size_t shared, Vector phi, Vector scale,
                        Matrix gain_information, double common_std, double inflation, Vector weak,
                        WritableMatrix information, WritableVector target, WritableVector mean,
                        WritableVector state, WritableVector gains) {
  const size_t j = scale.shape(0), p = prior.shape(0), size = shared + j, n = size - kTen;
  const int64_t *edge = edges.data();
  if (prior.shape(1) != p || prior_target.shape(0) != p || shared < kTen || shared > p ||
      phi.shape(0) != kTen || edges.shape(0) != j + 1 || j < 1 || edge[0] != 0 ||
      gain_information.shape(0) != j || gain_information.shape(1) != j || weak.shape(0) != kTen ||
      information.shape(0) != kTen || information.shape(1) != kTen || target.shape(0) != kTen ||
      mean.shape(0) != kTen || state.shape(0) != p || gains.shape(0) != j)
    throw std::invalid_argument("payload_read_out: shapes do not agree");
  size_t all_grams = 0, all_solved = 0;
  std::vector<size_t> split(j);
  for (size_t i = 0; i < j; i++) {
    const int64_t k = edge[i + 1] - edge[i] - 1;
    if (k < kTen || size_t(edge[i + 1]) > columns.shape(0))
      throw std::invalid_argument("payload_read_out: a joint has too few columns");
    const int64_t *rows = columns.data() + edge[i];
    for (int64_t r = 0; r < k; r++)
      if (rows[r] < 0 || size_t(rows[r]) >= p || (r > 0 && rows[r] <= rows[r - 1]))
        throw std::invalid_argument("payload_read_out: a joint's columns are in order");
    split[i] = std::lower_bound(rows, rows + k, int64_t(shared)) - rows;
    all_grams += size_t(k + 1) * size_t(k + 1);
    all_solved += (k - split[i]) * (split[i] + 2);
  }
  if (grams.shape(0) != all_grams)
    throw std::invalid_argument("payload_read_out: there are other sums of squares");
  std::vector<double> total(size * size, 0.0), right(size, 0.0), solved(all_solved);
  for (size_t i = 0; i < shared; i++) {
    std::copy(prior.data() + i * p, prior.data() + i * p + shared, total.data() + i * size);
    right[i] = prior_target.data()[i];
  }
  for (size_t i = 0; i < j; i++)
    for (size_t k = 0; k < j; k++)
      total[(shared + i) * size + shared + k] = gain_information.data()[i * j + k];
  const double *gram = grams.data();
  double *own = solved.data();
  for (size_t i = 0; i < j; i++) {
    const size_t k = edge[i + 1] - edge[i] - 1;
    if (!marginalise_joint(gram, k, columns.data() + edge[i], split[i], prior.data(), p,
                           prior_target.data(), phi.data(), 1.0 / scale.data()[i], shared + i,
                           total.data(), size, right.data(), own))
      throw std::domain_error("a joint's own unknowns have no prior");
    gram += (k + 1) * (k + 1);
    own += (k - split[i]) * (split[i] + 2);
  }
  // Cholesky's factor of what is integrated out, at unit diagonal, and of [its products with the
  // payload, its right-hand side].
  constexpr size_t wide = kTen + 1;
  std::vector<double> lower(n * n), half(n * wide), unit(n);
  for (size_t i = 0; i < n; i++) unit[i] = 1.0 / std::sqrt(total[(kTen + i) * (size + 1)]);
  for (size_t i = 0; i < n; i++) {
    const double *from = total.data() + (kTen + i) * size;
    double *l = lower.data() + i * n, *h = half.data() + i * wide;
    for (size_t c = 0; c <= i; c++) l[c] = from[kTen + c] * unit[i] * unit[c];
    for (size_t c = 0; c < kTen; c++) h[c] = from[c] * unit[i];
    h[kTen] = right[kTen + i] * unit[i];
    for (size_t r = 0; r < i; r++) {
      const double *other = lower.data() + r * n, *g = half.data() + r * wide;
      double sum = l[r];
      for (size_t c = 0; c < r; c++) sum -= l[c] * other[c];
      l[r] = sum / other[r];
      l[i] -= l[r] * l[r];
      for (size_t c = 0; c < wide; c++) h[c] -= l[r] * g[c];
    }
    if (!(l[i] > 0.0)) throw std::domain_error("unknowns of the arm have no prior");
    l[i] = std::sqrt(l[i]);
    for (size_t c = 0; c < wide; c++) h[c] /= l[i];
  }
  Square a;
  Ten t;
  for (int i = 0; i < kTen; i++) {
    for (int c = 0; c < kTen; c++) a[i][c] = 0.5 * (total[i * size + c] + total[c * size + i]);
    t[i] = right[i];
  }
  for (size_t r = 0; r < n; r++) {
    const double *h = half.data() + r * wide;
    for (int i = 0; i < kTen; i++) {
      for (int c = 0; c < kTen; c++) a[i][c] -= h[i] * h[c];
      t[i] -= h[i] * h[kTen];
    }
  }
  // An error common to all drives is along phi.
  Ten along;
  double share = 1.0 / (common_std * common_std), push = 0.0;
  for (int i = 0; i < kTen; i++) {
    along[i] = 0.0;
    for (int c = 0; c < kTen; c++) along[i] += a[i][c] * phi.data()[c];
    share += phi.data()[i] * along[i];
    push += phi.data()[i] * t[i];
  }
  double system[kTen * kTen], sides[kTen * 2];
  for (int i = 0; i < kTen; i++) {
    t[i] = (t[i] - along[i] * push / share) / inflation;
    for (int c = 0; c < kTen; c++) a[i][c] = (a[i][c] - along[i] * along[c] / share) / inflation;
  }
  for (int i = 0; i < kTen; i++) {
    target.data()[i] = t[i];
    for (int c = 0; c < kTen; c++) {
      information.data()[i * kTen + c] = a[i][c];
      system[i * kTen + c] = (a[i][c] + (i == c ? weak.data()[i] : 0.0)) /
                             std::sqrt((a[i][i] + weak.data()[i]) * (a[c][c] + weak.data()[c]));
    }
    sides[2 * i] = t[i] / std::sqrt(a[i][i] + weak.data()[i]);
    sides[2 * i + 1] = i == 0;
  }
  if (!eliminate(system, sides, kTen, 2)) throw std::domain_error("the payload has no prior");
  for (int i = 0; i < kTen; i++)
    mean.data()[i] = sides[2 * i] / std::sqrt(a[i][i] + weak.data()[i]);
  // The other unknowns given that mean, back through the factor.
  std::vector<double> rest(size, 0.0);
  std::copy(mean.data(), mean.data() + kTen, rest.data());
  for (size_t i = n; i-- > 0;) {
    const double *h = half.data() + i * wide;
    double x = h[kTen];
    for (int c = 0; c < kTen; c++) x -= h[c] * mean.data()[c];
    for (size_t r = i + 1; r < n; r++) x -= lower[r * n + i] * rest[kTen + r];
    rest[kTen + i] = x / lower[i * n + i];
  }
  for (size_t i = 0; i < n; i++) rest[kTen + i] *= unit[i];
  std::fill(state.data(), state.data() + p, 0.0);
  std::copy(rest.data(), rest.data() + shared, state.data());
  std::copy(rest.data() + shared, rest.data() + size, gains.data());
  own = solved.data();
  for (size_t i = 0; i < j; i++) {
    const int64_t *rows = columns.data() + edge[i];
    const size_t k = edge[i + 1] - edge[i] - 1, common = split[i];
    for (size_t o = common; o < k; o++, own += common + 2) {
      double x = own[common + 1] - own[common] * rest[shared + i];
      for (size_t c = 0; c < common; c++) x -= own[c] * rest[rows[c]];
      state.data()[rows[o]] = x;
    }
  }
  return sides[1] / (a[0][0] + weak.data()[0]);
}

}  // namespace

void bind_payload_body(nb::module_ &m) {
  m.def("most_probable_body", &most_probable_body, nb::arg("information").noconvert(),
        nb::arg("target").noconvert(), nb::arg("box").noconvert(), nb::arg("density"),
        nb::arg("spread"), nb::arg("com_spread"), nb::arg("at").noconvert(),
        nb::arg("parameters").noconvert(), nb::arg("described").noconvert(),
        nb::arg("covariance").noconvert());
  m.def("without_own", &without_own, nb::arg("square").noconvert(), nb::arg("prior").noconvert(),
        nb::arg("prior_target").noconvert(), nb::arg("rows").noconvert(), nb::arg("shared"),
        nb::arg("phi").noconvert(), nb::arg("weight"), nb::arg("gain"),
        nb::arg("total").noconvert(), nb::arg("target").noconvert(), nb::arg("solved").noconvert());
  m.def("payload_read_out", &payload_read_out, nb::arg("grams").noconvert(),
        nb::arg("edges").noconvert(), nb::arg("columns").noconvert(), nb::arg("prior").noconvert(),
        nb::arg("prior_target").noconvert(), nb::arg("shared"), nb::arg("phi").noconvert(),
        nb::arg("scale").noconvert(), nb::arg("gain_information").noconvert(),
        nb::arg("common_std"), nb::arg("inflation"), nb::arg("weak").noconvert(),
        nb::arg("information").noconvert(), nb::arg("target").noconvert(),
        nb::arg("mean").noconvert(), nb::arg("state").noconvert(), nb::arg("gains").noconvert());
}
