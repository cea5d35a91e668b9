// Least |R s|^2 over sign vectors s: elimination order, depth-first sphere decoding, margins,
// and the coordinate descent behind the semidefinite bound. sign_search.py has the same loops in
// plain Python; a test ties the two.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace nb = nanobind;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Signs = nb::ndarray<const std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

namespace {

template <typename T>
nb::object numpy_of(std::vector<T> &&values, std::vector<std::size_t> shape) {
    auto *owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(
        nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner));
}

// Python may hand in any shapes: what would be read beyond an array's end is refused.
void agree(bool right) {
    if (!right) throw std::invalid_argument("signs: shapes do not agree");
}

// Pivoted Cholesky that eliminates the smallest Schur diagonal first: Q[order][:, order] = R'R.
// `last` (if >= 0) is eliminated last, so the search decides it first.
nb::tuple factor(Matrix input, std::int64_t last) {
    agree(input.shape(0) == input.shape(1));
    const std::size_t n = input.shape(0);
    std::vector<double> a(input.data(), input.data() + n * n);
    std::vector<std::int64_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::int64_t>(i);
    double largest = 0.0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, a[i * n + i]);
    const double least = std::max(largest, 1e-300) * 1e-15;
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t p = n;
        for (std::size_t i = k; i < n; ++i)
            if (order[i] != last && (p == n || a[i * n + i] < a[p * n + p])) p = i;
        if (p == n) p = k;
        if (p != k) {
            std::swap(order[k], order[p]);
            std::swap(a[k * n + k], a[p * n + p]);
            for (std::size_t i = 0; i < k; ++i) std::swap(a[i * n + k], a[i * n + p]);
            for (std::size_t j = k + 1; j < p; ++j) std::swap(a[k * n + j], a[j * n + p]);
            for (std::size_t j = p + 1; j < n; ++j) std::swap(a[k * n + j], a[p * n + j]);
        }
        double *row = &a[k * n];
        const double pivot = std::sqrt(std::max(row[k], least));
        row[k] = pivot;
        for (std::size_t j = k + 1; j < n; ++j) row[j] /= pivot;
        for (std::size_t i = k + 1; i < n; ++i) {
            const double f = row[i];
            if (f == 0.0) continue;
            double *target = &a[i * n];
            for (std::size_t j = i; j < n; ++j) target[j] -= f * row[j];
        }
    }
    for (std::size_t i = 1; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) a[i * n + j] = 0.0;
    return nb::make_tuple(numpy_of(std::move(order), {n}), numpy_of(std::move(a), {n, n}));
}

// Depth first from the last row up; the sign nearer to the free minimiser goes first. `leaf` is
// told every sign vector cheaper than the bound and returns the new bound; false stops the walk.
template <typename Leaf>
std::pair<std::int64_t, bool> walk(const double *r, std::size_t n, const std::int8_t *fixed,
                                   double bound, std::int64_t cap, Leaf leaf) {
    if (n == 0) return {0, true};
    std::vector<double> centre(n), below(n + 1, 0.0), s(n);
    std::vector<int> left(n);
    std::int64_t nodes = 0;
    std::size_t k = n - 1;
    bool down = true;
    for (;;) {
        const double *row = r + k * n;
        if (down) {
            double sum = 0.0;
            for (std::size_t j = k + 1; j < n; ++j) sum += row[j] * s[j];
            centre[k] = sum;
            if (fixed[k] != 0) {
                s[k] = fixed[k];
                left[k] = 0;
            } else {
                s[k] = sum > 0.0 ? -1.0 : 1.0;
                left[k] = 1;
            }
        } else {
            while (left[k] == 0) {
                if (++k == n) return {nodes, true};
            }
            s[k] = -s[k];
            left[k] = 0;
            row = r + k * n;
        }
        if (++nodes > cap) return {nodes, false};
        const double e = row[k] * s[k] + centre[k];
        const double cost = below[k + 1] + e * e;
        if (cost >= bound) {
            // The other sign costs no less when this was the nearer one.
            left[k] = 0;
            down = false;
            continue;
        }
        below[k] = cost;
        if (k == 0) {
            bound = leaf(cost, s);
            if (bound < 0.0) return {nodes, false};
            down = false;
        } else {
            --k;
            down = true;
        }
    }
}

nb::tuple decode(Matrix r, Signs fixed, double bound, std::int64_t cap) {
    const std::size_t n = r.shape(0);
    agree(r.shape(1) == n && fixed.shape(0) == n);
    std::vector<std::int8_t> best(n, 0);
    double least = bound;
    auto [nodes, complete] =
        walk(r.data(), n, fixed.data(), bound, cap, [&](double cost, const std::vector<double> &s) {
            least = cost;
            for (std::size_t i = 0; i < n; ++i) best[i] = s[i] > 0.0 ? 1 : -1;
            return cost;
        });
    return nb::make_tuple(numpy_of(std::move(best), {n}), least, nodes, complete);
}

// For every entry, how much more the cheapest vector with that sign reversed costs than `best`,
// as far as vectors below `bound` show it; infinite otherwise. Also how many vectors there were.
// With weights, s and -s are the same answer: the lighter side of the difference is the reversed one.
nb::tuple margins(Matrix r, Signs fixed, Signs best, Vector weights, double least, double bound,
                  std::int64_t cap, std::int64_t most) {
    const std::size_t n = r.shape(0);
    agree(r.shape(1) == n && fixed.shape(0) == n && best.shape(0) == n);
    std::vector<double> margin(n, std::numeric_limits<double>::infinity());
    std::int64_t count = 0;
    const std::int8_t *b = best.data();
    const double *w = weights.shape(0) == n ? weights.data() : nullptr;
    double all = 0.0;
    if (w != nullptr)
        for (std::size_t i = 0; i < n; ++i) all += w[i];
    auto [nodes, complete] =
        walk(r.data(), n, fixed.data(), bound, cap, [&](double cost, const std::vector<double> &s) {
            double side = -1.0;
            if (w != nullptr) {
                double changed = 0.0;
                for (std::size_t i = 0; i < n; ++i)
                    if (s[i] * b[i] < 0.0) changed += w[i];
                if (changed > 0.5 * all) side = 1.0;
            }
            for (std::size_t i = 0; i < n; ++i)
                if (s[i] * b[i] * side > 0.0) margin[i] = std::min(margin[i], cost - least);
            return ++count >= most ? -1.0 : bound;
        });
    return nb::make_tuple(numpy_of(std::move(margin), {n}), count, nodes, complete);
}

// Every sign vector below `bound`, at most `most`, in the order met.
nb::tuple listed(Matrix r, Signs fixed, double bound, std::int64_t cap, std::int64_t most) {
    const std::size_t n = r.shape(0);
    agree(r.shape(1) == n && fixed.shape(0) == n);
    std::vector<std::int8_t> found;
    std::vector<double> costs;
    auto [nodes, complete] =
        walk(r.data(), n, fixed.data(), bound, cap, [&](double cost, const std::vector<double> &s) {
            if (static_cast<std::int64_t>(costs.size()) >= most) return -1.0;
            costs.push_back(cost);
            for (std::size_t i = 0; i < n; ++i) found.push_back(s[i] > 0.0 ? 1 : -1);
            return bound;
        });
    const std::size_t count = costs.size();
    return nb::make_tuple(numpy_of(std::move(found), {count, n}),
                          numpy_of(std::move(costs), {count}), nodes, complete);
}

// min <Q, V V'> over unit rows of V by exact coordinate descent from `start`: v_i = -g_i / |g_i|,
// g_i = sum over k != i of Q_ik v_k. Returns V and |g|, whence the dual diagonal Q_ii - |g_i|.
nb::tuple mix(Matrix q, Matrix start, std::int64_t sweeps, double tolerance) {
    const std::size_t n = q.shape(0), d = start.shape(1);
    agree(q.shape(1) == n && start.shape(0) == n && d > 0);
    std::vector<double> v(start.data(), start.data() + n * d), norms(n, 0.0), g(d);
    for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) {
        double gained = 0.0, total = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            std::fill(g.begin(), g.end(), 0.0);
            const double *row = q.data() + i * n;
            for (std::size_t k = 0; k < n; ++k) {
                if (k == i || row[k] == 0.0) continue;
                const double f = row[k], *vk = &v[k * d];
                for (std::size_t c = 0; c < d; ++c) g[c] += f * vk[c];
            }
            double square = 0.0, along = 0.0;
            for (std::size_t c = 0; c < d; ++c) {
                square += g[c] * g[c];
                along += g[c] * v[i * d + c];
            }
            const double norm = std::sqrt(square);
            norms[i] = norm;
            total += norm;
            gained += norm + along;
            if (norm > 0.0)
                for (std::size_t c = 0; c < d; ++c) v[i * d + c] = -g[c] / norm;
        }
        if (gained <= tolerance * std::max(total, 1e-300)) break;
    }
    return nb::make_tuple(numpy_of(std::move(v), {n, d}), numpy_of(std::move(norms), {n}));
}

}  // namespace

void bind_signs(nb::module_ &m) {
    m.def("sign_factor", &factor);
    m.def("sign_decode", &decode);
    m.def("sign_margins", &margins);
    m.def("sign_list", &listed);
    m.def("sign_mix", &mix);
}
