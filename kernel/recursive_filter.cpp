// y = (b/a) x along contiguous rows, in direct form II transposed, with state carried in and out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void second_order(const double *b, const double *a, const double *x, double *y, size_t n,
                  double *state) {
  double s0 = state[0], s1 = state[1];
  const double b0 = b[0], b1 = b[1], b2 = b[2], a1 = a[1], a2 = a[2];
  for (size_t i = 0; i < n; i++) {
    const double in = x[i], out = b0 * in + s0;
    s0 = b1 * in - a1 * out + s1;
    s1 = b2 * in - a2 * out;
    y[i] = out;
  }
  state[0] = s0;
  state[1] = s1;
}

void any_order(const double *b, const double *a, const double *x, double *y, size_t n,
               double *state, size_t order) {
  for (size_t i = 0; i < n; i++) {
    const double in = x[i], out = b[0] * in + (order ? state[0] : 0.0);
    for (size_t k = 0; k + 1 < order; k++) state[k] = b[k + 1] * in - a[k + 1] * out + state[k + 1];
    if (order) state[order - 1] = b[order] * in - a[order] * out;
    y[i] = out;
  }
}

// b and a have equal length, a[0] = 1; state has one row of length order per row of x.
void recursive_filter(Vector b, Vector a, Rows x, Writable y, Writable state) {
  const size_t rows = x.shape(0), n = x.shape(1);
  const size_t order = b.shape(0) ? b.shape(0) - 1 : 0;
  if (b.shape(0) == 0 || a.shape(0) != b.shape(0) || y.shape(0) != rows || y.shape(1) != n ||
      state.shape(0) != rows || state.shape(1) != order)
    throw std::invalid_argument("filter: shapes of coefficients, signals and state do not agree");
  nb::gil_scoped_release release;
  for (size_t r = 0; r < rows; r++) {
    const double *in = x.data() + r * n;
    double *out = y.data() + r * n, *own = state.data() + r * order;
    if (order == 2)
      second_order(b.data(), a.data(), in, out, n, own);
    else
      any_order(b.data(), a.data(), in, out, n, own, order);
  }
}

// Columns that are filtered side by side: the recursion of one does not wait for the others.
constexpr size_t SIDE = 8;

#if defined(TAUFIT_X86) && defined(__GNUC__) && !defined(__clang__)
#define TAUFIT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TAUFIT_CLONES
#endif

// One section along time over SIDE columns in place, from its state in a constant input.
TAUFIT_CLONES
void section_along(const double *k, const double *rest, const double *first, double *at,
                   ptrdiff_t step, size_t rows) {
  const double b0 = k[0], b1 = k[1], b2 = k[2], a1 = k[4], a2 = k[5];
  double s0[SIDE], s1[SIDE];
  for (size_t c = 0; c < SIDE; c++) {
    s0[c] = rest[0] * first[c];
    s1[c] = rest[1] * first[c];
  }
  for (size_t t = 0; t < rows; t++, at += step)
    for (size_t c = 0; c < SIDE; c++) {
      const double x = at[c], y = b0 * x + s0[c];
      s0[c] = b1 * x - a1 * y + s1[c];
      s1[c] = b2 * x - a2 * y;
      at[c] = y;
    }
}

// Forwards and backwards through second-order sections, along the first axis; beyond both ends the
// signal goes on for `pad` samples as its point reflection.
void zero_phase(Rows x, Rows sections, Rows rest, size_t pad, Writable out) {
  const size_t n = x.shape(0), c = x.shape(1), count = sections.shape(0);
  if (sections.shape(1) != 6 || rest.shape(0) != count || rest.shape(1) != 2 ||
      out.shape(0) != n || out.shape(1) != c || n < 2 || pad >= n)
    throw std::invalid_argument("zero_phase: shapes of signal, sections and result do not agree");
  nb::gil_scoped_release release;
  const size_t longer = n + 2 * pad;
  const ptrdiff_t step = static_cast<ptrdiff_t>(SIDE);
  std::vector<double> work(longer * SIDE, 0.0);
  double first[SIDE];
  for (size_t from = 0; from < c; from += SIDE) {
    const size_t width = c - from < SIDE ? c - from : SIDE;
    const double *in = x.data() + from, *last = in + (n - 1) * c;
    for (size_t i = 0; i < pad; i++)
      for (size_t k = 0; k < width; k++) {
        work[i * SIDE + k] = 2.0 * in[k] - in[(pad - i) * c + k];
        work[(pad + n + i) * SIDE + k] = 2.0 * last[k] - *(last + k - (i + 1) * c);
      }
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < width; k++) work[(pad + i) * SIDE + k] = in[i * c + k];
    double *begin = work.data(), *end = begin + (longer - 1) * SIDE;
    std::memcpy(first, begin, sizeof first);
    for (size_t s = 0; s < count; s++)
      section_along(sections.data() + 6 * s, rest.data() + 2 * s, first, begin, step, longer);
    std::memcpy(first, end, sizeof first);
    for (size_t s = 0; s < count; s++)
      section_along(sections.data() + 6 * s, rest.data() + 2 * s, first, end, -step, pad + n);
    double *to = out.data() + from;
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < width; k++) to[i * c + k] = work[(pad + i) * SIDE + k];
  }
}

}  // namespace

void bind_recursive_filter(nb::module_ &m) {
  m.def("recursive_filter", &recursive_filter, nb::arg("b").noconvert(), nb::arg("a").noconvert(),
        nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("state").noconvert());
  m.def("zero_phase", &zero_phase, nb::arg("x").noconvert(), nb::arg("sections").noconvert(),
        nb::arg("rest").noconvert(), nb::arg("pad"), nb::arg("out").noconvert());
}
