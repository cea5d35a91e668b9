// Numbers of a text table; the NumPy form is in recording/readers/from_csv.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace nb = nanobind;

namespace {

using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// One number that fills [p, end) but for blanks; false if it is none.
bool read_number(const char *p, const char *end, double *value) {
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  while (p < end && (end[-1] == ' ' || end[-1] == '\t')) end--;
  if (p < end && *p == '+' && end - p > 1 && p[1] != '-') p++;
  if (p == end || end[-1] == ')') return false;
  const auto [stop, error] = std::from_chars(p, end, *value);
  return error == std::errc() && stop == end;
}

// Rows read from an offset on, without empty lines; -1 at the first cell or line that is not as
// expected.
int64_t read_numbers(nb::bytes text, int delimiter, Flags is_text, Rows out, size_t first) {
  const size_t columns = out.shape(1), capacity = out.shape(0);
  if (is_text.shape(0) != columns || columns == 0) throw std::invalid_argument("flag per column");
  if (first > text.size()) throw std::invalid_argument("offset beyond the text");
  const char *p = text.c_str() + first, *const end = text.c_str() + text.size();
  size_t row = 0;
  while (p < end) {
    if (*p == '\n' || (*p == '\r' && p + 1 < end && p[1] == '\n')) {
      p++;
      continue;
    }
    const char *const newline = static_cast<const char *>(std::memchr(p, '\n', end - p));
    const char *const line_end = newline ? newline : end;
    const char *const stop = newline && newline > p && newline[-1] == '\r' ? newline - 1 : line_end;
    if (row >= capacity) return -1;
    double *const to = out.data() + row * columns;
    for (size_t c = 0; c < columns; c++) {
      const char *const mark = static_cast<const char *>(std::memchr(p, delimiter, stop - p));
      if ((mark != nullptr) != (c + 1 < columns)) return -1;
      const char *const cell = mark ? mark : stop;
      if (is_text.data()[c])
        to[c] = std::numeric_limits<double>::quiet_NaN();
      else if (!read_number(p, cell, to + c))
        return -1;
      p = mark ? mark + 1 : line_end;
    }
    row++;
  }
  return static_cast<int64_t>(row);
}

}  // namespace

void bind_text_table(nb::module_ &m) {
  m.def("read_numbers", &read_numbers, nb::arg("text"), nb::arg("delimiter"), nb::arg("is_text"),
        nb::arg("out").noconvert(), nb::arg("first") = 0);
}
