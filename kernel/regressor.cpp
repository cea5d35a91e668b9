// Binds the batch loops: a `Chain` holds a robot's constants, its methods run over arrays of states.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine.h"

namespace nb = nanobind;

namespace {

using namespace taufit;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutCube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OutRow = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Poses = nb::ndarray<double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

bool runs(const Loops& loops) {
#ifdef TAUFIT_X86
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (&loops == &loops_avx2) return v3;
    if (&loops == &loops_avx512)
        return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    return &loops == &loops_plain;
}

const Loops& best_loops() {
#ifdef TAUFIT_X86
    if (runs(loops_avx512)) return loops_avx512;
    if (runs(loops_avx2)) return loops_avx2;
#endif
    return loops_plain;
}

struct Aligned {
    explicit Aligned(std::size_t count)
        : data(static_cast<double*>(::operator new(8 * count, std::align_val_t(64)))), size(count) {}
    ~Aligned() { ::operator delete(data, std::align_val_t(64)); }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    double* data;
    std::size_t size;
};

void multiply(const double* a, const double* b, double* out) {
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            out[3 * r + c] = a[3 * r] * b[c] + a[3 * r + 1] * b[3 + c] + a[3 * r + 2] * b[6 + c];
}

void apply(const double* a, const double* x, double scale, double* out) {
    for (int r = 0; r < 3; ++r)
        out[r] = scale * (a[3 * r] * x[0] + a[3 * r + 1] * x[1] + a[3 * r + 2] * x[2]);
}

// M exp([S] q) in powers of sin q, 1 - cos q and q.
Joint prepare(const double* placement, const double* screw, const double* parameters) {
    Joint j{};
    for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c) j.a0[3 * r + c] = placement[4 * r + c];
        j.p0[r] = placement[4 * r + 3];
    }
    const double *w = screw, *u = screw + 3;
    const double hat[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
    multiply(j.a0, hat, j.a1);
    multiply(j.a1, hat, j.a2);
    // Translation of the exponential: (1 - R)(w x u) + w w'u q; without rotation it is u q.
    const double moment[3] = {w[1] * u[2] - w[2] * u[1], w[2] * u[0] - w[0] * u[2],
                              w[0] * u[1] - w[1] * u[0]};
    apply(j.a1, moment, -1.0, j.p1);
    apply(j.a2, moment, -1.0, j.p2);
    if (w[0] == 0.0 && w[1] == 0.0 && w[2] == 0.0)
        apply(j.a0, u, 1.0, j.p3);
    else
        apply(j.a0, w, w[0] * u[0] + w[1] * u[1] + w[2] * u[2], j.p3);
    for (int k = 0; k < 3; ++k) j.angular[k] = w[k], j.linear[k] = u[k];
    for (int k = 0; k < 10; ++k) j.parameters[k] = parameters[k];
    return j;
}

class Engine : public Prepared {
public:
    Engine(Cube placements, Matrix screws, Row gravity, Matrix parameters)
        : Prepared{&best_loops(), {}, {}} {
        const std::size_t j = screws.shape(0);
        if (j == 0 || placements.shape(0) != j || placements.shape(1) != 4 ||
            placements.shape(2) != 4 || screws.shape(1) != 6 || gravity.shape(0) != 3 ||
            parameters.shape(0) != j || parameters.shape(1) != 10)
            throw std::invalid_argument(
                "a chain has placements (j, 4, 4), screws (j, 6), gravity (3,) and parameters (j, 10)");
        for (std::size_t i = 0; i < j; ++i)
            joint.push_back(prepare(placements.data() + 16 * i, screws.data() + 6 * i,
                                     parameters.data() + 10 * i));
        chain.joints = static_cast<std::ptrdiff_t>(j);
        for (int k = 0; k < 3; ++k) chain.gravity[k] = gravity.data()[k];
        chain.joint = joint.data();
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    void regressor(Matrix q, Matrix v, Matrix a, OutCube out, int threads, bool past_caches) const {
        const std::ptrdiff_t n = samples(q, v, a), j = chain.joints;
        check(out.shape(0) == static_cast<std::size_t>(n) &&
                  out.shape(1) == static_cast<std::size_t>(j) &&
                  out.shape(2) == static_cast<std::size_t>(10 * j),
              "the regressor is (n, j, 10 j)");
        const States x = {q.data(), v.data(), a.data()};
        double* to = out.data();
        nb::gil_scoped_release free;
        split(n, threads, [&](std::ptrdiff_t first, std::ptrdiff_t last, double* work) {
            loops->regressor(chain, x, first, last, past_caches, to, work);
        });
    }

    // One sample, as little around it as possible.
    void regressor_once(Row q, Row v, Row a, OutMatrix out) const {
        const std::size_t j = static_cast<std::size_t>(chain.joints);
        check(q.shape(0) == j && v.shape(0) == j && a.shape(0) == j && out.shape(0) == j &&
                  out.shape(1) == 10 * j,
              "one sample has q, v, a of (j,) and a regressor of (j, 10 j)");
        loops->regressor(chain, {q.data(), v.data(), a.data()}, 0, 1, false, out.data(),
                          workspace(loops->work_size(chain.joints)));
    }

    void torque(Matrix q, Matrix v, Matrix a, OutMatrix out, int threads) const {
        const std::ptrdiff_t n = samples(q, v, a);
        check(same(q, out), "torque is (n, j)");
        const States x = {q.data(), v.data(), a.data()};
        double* to = out.data();
        nb::gil_scoped_release free;
        split(n, threads, [&](std::ptrdiff_t first, std::ptrdiff_t last, double* work) {
            loops->torque(chain, x, first, last, to, work);
        });
    }

    void adjoint(Matrix q, Matrix v, Matrix a, Cube gradient, OutMatrix dq, OutMatrix dv,
                 OutMatrix da, int threads) const {
        const std::ptrdiff_t n = samples(q, v, a), j = chain.joints;
        check(gradient.shape(0) == static_cast<std::size_t>(n) &&
                  gradient.shape(1) == static_cast<std::size_t>(j) &&
                  gradient.shape(2) == static_cast<std::size_t>(10 * j) && same(q, dq) &&
                  same(q, dv) && same(q, da),
              "the gradient is (n, j, 10 j), its images (n, j)");
        const States x = {q.data(), v.data(), a.data()};
        const double* g = gradient.data();
        double *to_q = dq.data(), *to_v = dv.data(), *to_a = da.data();
        nb::gil_scoped_release free;
        split(n, threads, [&](std::ptrdiff_t first, std::ptrdiff_t last, double* work) {
            loops->adjoint(chain, x, first, last, g, to_q, to_v, to_a, work);
        });
    }

    // Weights as large as the positions, held by `given`; null if there are none.
    static const double* weights_or_null(nb::object weights, Matrix q, Matrix& given) {
        if (weights.is_none()) return nullptr;
        given = nb::cast<Matrix>(weights);
        check(same(q, given), "weights are (n, j)");
        return given.data();
    }

    // Columns of samples first <= s < last; out has one stretch of `last - first` per placed column.
    void columns(Matrix q, Matrix v, Matrix a, std::ptrdiff_t first, std::ptrdiff_t last,
                 Places place, nb::object weights, OutRow out) const {
        const std::ptrdiff_t n = samples(q, v, a), j = chain.joints;
        check(0 <= first && first <= last && last <= n, "samples outside the array");
        check(place.shape(0) == static_cast<std::size_t>(j) &&
                  place.shape(1) == static_cast<std::size_t>(10 * j),
              "places are (j, 10 j)");
        const std::int64_t room = static_cast<std::int64_t>(out.shape(0)) - (last - first);
        for (std::ptrdiff_t k = 0; k < 10 * j * j; ++k)
            check(place.data()[k] <= room, "a column is placed outside the output");
        Matrix given;
        const double* scale = weights_or_null(weights, q, given);
        const States x = {q.data(), v.data(), a.data()};
        nb::gil_scoped_release free;
        loops->columns(chain, x, first, last, place.data(), scale, out.data(),
                       workspace(loops->work_size(j)));
    }

    // W'W of every joint, added to `out`; place and extra_row are rows, widths multiples of four.
    void grams(Matrix q, Matrix v, Matrix a, Places place, nb::object weights, Matrix extra,
               Indices extra_row, Indices widths, OutRow out) const {
        const std::ptrdiff_t n = samples(q, v, a), j = chain.joints;
        const std::size_t entries = 10 * j, extras = extra.shape(0);
        check(place.shape(0) == static_cast<std::size_t>(j) && place.shape(1) == entries &&
                  widths.shape(0) == static_cast<std::size_t>(j) && extra_row.shape(0) == extras &&
                  extra.shape(1) == static_cast<std::size_t>(n),
              "places are (j, 10 j), widths (j), further rows (e, n)");
        std::int64_t rows = 0, squares = 0;
        for (std::ptrdiff_t i = 0; i < j; ++i) {
            check(widths.data()[i] >= 0 && widths.data()[i] % 4 == 0, "widths are multiples of four");
            rows += widths.data()[i];
            squares += widths.data()[i] * widths.data()[i];
        }
        check(out.shape(0) == static_cast<std::size_t>(squares), "one square per joint");
        std::vector<std::int64_t> at(place.data(), place.data() + j * entries);
        for (std::int64_t& row : at) {
            check(row < rows, "a column is placed outside the rows");
            row = row < 0 ? -1 : row * loops->gram_block;
        }
        for (std::size_t e = 0; e < extras; ++e)
            check(extra_row.data()[e] >= 0 && extra_row.data()[e] < rows, "a row is outside");
        Matrix given;
        const double* scale = weights_or_null(weights, q, given);
        const States x = {q.data(), v.data(), a.data()};
        nb::gil_scoped_release free;
        loops->grams(chain, x, n, at.data(), scale, extra.data(),
                     static_cast<std::ptrdiff_t>(extras), extra_row.data(), widths.data(), out.data(),
                     workspace(loops->work_size(j) + rows * loops->gram_block));
    }

    // Poses of the links in the base frame, n x j x 4 x 4.
    void poses(Matrix q, Poses out) const {
        const std::size_t n = q.shape(0), j = static_cast<std::size_t>(chain.joints);
        check(q.shape(1) == j && out.shape(0) == n && out.shape(1) == j && out.shape(2) == 4 &&
                  out.shape(3) == 4,
              "poses are (n, j, 4, 4), q is (n, j)");
        for (std::size_t s = 0; s < n; ++s) {
            double turned[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, placed[3] = {};
            for (std::size_t i = 0; i < j; ++i) {
                const Joint& one = joint[i];
                const double x = q.data()[s * j + i], sine = std::sin(x), rest = 1.0 - std::cos(x);
                double turn[9], next[9], move[3], moved[3];
                for (int k = 0; k < 9; ++k) turn[k] = one.a0[k] + sine * one.a1[k] + rest * one.a2[k];
                for (int k = 0; k < 3; ++k)
                    move[k] = one.p0[k] + sine * one.p1[k] + rest * one.p2[k] + x * one.p3[k];
                apply(turned, move, 1.0, moved);
                multiply(turned, turn, next);
                double* to = out.data() + (s * j + i) * 16;
                for (int r = 0; r < 3; ++r) {
                    placed[r] += moved[r];
                    for (int c = 0; c < 3; ++c) to[4 * r + c] = turned[3 * r + c] = next[3 * r + c];
                    to[4 * r + 3] = placed[r];
                    to[12 + r] = 0.0;
                }
                to[15] = 1.0;
            }
        }
    }

    std::ptrdiff_t joints() const { return chain.joints; }
    std::string instructions() const { return loops->name; }
    void use(const std::string& name) {
        for (const Loops* one : {
                 &loops_plain,
#ifdef TAUFIT_X86
                 &loops_avx2,
                 &loops_avx512,
#endif
             })
            if (name == one->name && runs(*one)) {
                loops = one;
                return;
            }
        throw std::invalid_argument("this processor does not run '" + name + "'");
    }

private:
    static void check(bool right, const char* message) {
        if (!right) throw std::invalid_argument(message);
    }

    template <class A, class B>
    static bool same(const A& a, const B& b) {
        return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
    }

    std::ptrdiff_t samples(const Matrix& q, const Matrix& v, const Matrix& a) const {
        check(q.shape(1) == static_cast<std::size_t>(chain.joints) && same(q, v) && same(q, a),
              "q, v and a are (n, j), j the robot's joints");
        return static_cast<std::ptrdiff_t>(q.shape(0));
    }

    template <class Loop>
    void split(std::ptrdiff_t n, int threads, const Loop& loop) const {
        const std::ptrdiff_t least = 512;  // below this a thread costs more than it saves
        const std::ptrdiff_t parts =
            std::max<std::ptrdiff_t>(1, std::min<std::ptrdiff_t>(threads, n / least));
        const std::ptrdiff_t size = loops->work_size(chain.joints);
        const std::ptrdiff_t share = (n / parts + 63) / 64 * 64;
        std::vector<std::thread> others;
        for (std::ptrdiff_t k = 1; k < parts; ++k)
            others.emplace_back([&, k] {
                loop(std::min(n, k * share), std::min(n, (k + 1) * share), workspace(size));
            });
        loop(0, parts == 1 ? n : std::min(n, share), workspace(size));
        for (auto& other : others) other.join();
        if (parts > 1 && parts * share < n) loop(parts * share, n, workspace(size));
    }
};

}  // namespace

double* taufit::workspace(std::ptrdiff_t size) {
    thread_local std::unique_ptr<Aligned> work;
    if (!work || work->size < static_cast<std::size_t>(size)) work.reset(new Aligned(size));
    return work->data;
}

void bind_regressor(nb::module_& m) {
    nb::class_<Prepared>(m, "Prepared", "What an `Engine` has prepared.");
    nb::class_<Engine, Prepared>(m, "Engine", "A serial chain's constants, ready for batches of states.")
        .def(nb::init<Cube, Matrix, Row, Matrix>(), nb::arg("placements"), nb::arg("screws"),
             nb::arg("gravity"), nb::arg("parameters"))
        .def_prop_ro("joints", &Engine::joints)
        .def_prop_ro("instructions", &Engine::instructions)
        .def("use", &Engine::use, "Run on 'plain', 'avx2' or 'avx512' instructions.")
        // An output that had to be converted would be a copy nobody sees.
        .def("regressor", &Engine::regressor, nb::arg("q"), nb::arg("v"), nb::arg("a"),
             nb::arg("out").noconvert(), nb::arg("threads"), nb::arg("past_caches"))
        .def("regressor_once", &Engine::regressor_once, nb::arg("q"), nb::arg("v"), nb::arg("a"),
             nb::arg("out").noconvert())
        .def("torque", &Engine::torque, nb::arg("q"), nb::arg("v"), nb::arg("a"),
             nb::arg("out").noconvert(), nb::arg("threads"))
        .def("adjoint", &Engine::adjoint, nb::arg("q"), nb::arg("v"), nb::arg("a"),
             nb::arg("gradient"), nb::arg("dq").noconvert(), nb::arg("dv").noconvert(),
             nb::arg("da").noconvert(), nb::arg("threads"))
        .def("poses", &Engine::poses, nb::arg("q"), nb::arg("out").noconvert())
        .def("columns", &Engine::columns, nb::arg("q"), nb::arg("v"), nb::arg("a"), nb::arg("first"),
             nb::arg("last"), nb::arg("place"), nb::arg("weights").none(),
             nb::arg("out").noconvert())
        .def("grams", &Engine::grams, nb::arg("q"), nb::arg("v"), nb::arg("a"), nb::arg("place"),
             nb::arg("weights").none(), nb::arg("extra"), nb::arg("extra_row"), nb::arg("widths"),
             nb::arg("out").noconvert());
}
