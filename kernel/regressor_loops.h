// The batch loops, several samples side by side in one SIMD register. Included once per instruction
// set, inside a namespace of its own, with TAUFIT_LANES the samples per register.
//
// Twists are (angular; linear), everything of link i in its own frame, as in dynamics/recursion.py.

#if TAUFIT_LANES > 1
typedef double Pack __attribute__((vector_size(8 * TAUFIT_LANES)));
typedef std::int64_t Bits __attribute__((vector_size(8 * TAUFIT_LANES)));
#else
typedef double Pack;
typedef std::int64_t Bits;
#endif

constexpr std::ptrdiff_t LANES = TAUFIT_LANES;

// GCC before 12 knows vectors but not this builtin.
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define TAUFIT_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#elif defined(__GNUC__)
typedef std::int64_t Order __attribute__((vector_size(TAUFIT_LANES == 2 ? 16 : 32)));
#define TAUFIT_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Order{__VA_ARGS__})
#endif

static inline Pack load(const double* from) {
    Pack x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

static inline void store(double* to, Pack x) { std::memcpy(to, &x, sizeof x); }

static inline Bits bits(Pack x) {
    Bits b;
    std::memcpy(&b, &x, sizeof b);
    return b;
}

static inline Pack unbits(Bits b) {
    Pack x;
    std::memcpy(&x, &b, sizeof x);
    return x;
}

static inline Pack fill(double x) { return Pack{} + x; }

struct Vec {
    Pack x, y, z;
};

static inline Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline Vec operator*(Vec a, Pack s) { return {a.x * s, a.y * s, a.z * s}; }
static inline Pack dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline Vec cross(Vec a, Vec b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline Vec fill3(const double* c) { return {fill(c[0]), fill(c[1]), fill(c[2])}; }

struct Twist {
    Vec angular, linear;
};

static inline Twist operator+(Twist a, Twist b) {
    return {a.angular + b.angular, a.linear + b.linear};
}

struct Pose {
    Pack r[9];
    Vec p;
};

// R'x and R x.
static inline Vec back(const Pose& t, Vec x) {
    return {t.r[0] * x.x + t.r[3] * x.y + t.r[6] * x.z, t.r[1] * x.x + t.r[4] * x.y + t.r[7] * x.z,
            t.r[2] * x.x + t.r[5] * x.y + t.r[8] * x.z};
}
static inline Vec turn(const Pose& t, Vec x) {
    return {t.r[0] * x.x + t.r[1] * x.y + t.r[2] * x.z, t.r[3] * x.x + t.r[4] * x.y + t.r[5] * x.z,
            t.r[6] * x.x + t.r[7] * x.y + t.r[8] * x.z};
}

// A twist of the previous frame seen from this one: X = Ad of the inverse pose.
static inline Twist to_child(const Pose& t, Twist x) {
    return {back(t, x.angular), back(t, x.linear - cross(t.p, x.angular))};
}

// X': a wrench (moment; force) of this frame seen from the previous one.
static inline Twist to_parent(const Pose& t, Twist x) {
    Vec force = turn(t, x.linear);
    return {turn(t, x.angular) + cross(t.p, force), force};
}

// Whether |x| <= bound in every lane.
static inline bool all_within(Pack x, double bound) {
#if TAUFIT_LANES == 1
    return x <= bound && x >= -bound;
#else
    const Bits in = (x <= bound) & (x >= -bound);
    std::int64_t all = in[0];
    for (std::ptrdiff_t l = 1; l < LANES; ++l) all &= in[l];
    return all != 0;
#endif
}

// sin and 1 - cos. Reduction by pi/2 in three parts of 33 bits, exact up to 2^20 quarter turns, then
// the Taylor series on |r| <= pi/4, whose first dropped term is below 1e-17.
static inline void sine(Pack x, Pack& s, Pack& one_minus_c) {
    const double round = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves a whole number
    Pack shifted = x * 0.63661977236758134308 + round;
    Bits quarter = bits(shifted);
    Pack k = shifted - round;
    Pack r = x - k * 0x1.921fb544p+0;
    r = r - k * 0x1.0b4611a6p-34;
    r = r - k * 0x1.3198a2e037073p-69;
    Pack z = r * r;
    Pack sin_r = fill(1.0 / 355687428096000.0);
    sin_r = sin_r * z - 1.0 / 1307674368000.0;
    sin_r = sin_r * z + 1.0 / 6227020800.0;
    sin_r = sin_r * z - 1.0 / 39916800.0;
    sin_r = sin_r * z + 1.0 / 362880.0;
    sin_r = sin_r * z - 1.0 / 5040.0;
    sin_r = sin_r * z + 1.0 / 120.0;
    sin_r = sin_r * z - 1.0 / 6.0;
    sin_r = r + r * (z * sin_r);
    Pack cos_r = fill(1.0 / 20922789888000.0);
    cos_r = cos_r * z - 1.0 / 87178291200.0;
    cos_r = cos_r * z + 1.0 / 479001600.0;
    cos_r = cos_r * z - 1.0 / 3628800.0;
    cos_r = cos_r * z + 1.0 / 40320.0;
    cos_r = cos_r * z - 1.0 / 720.0;
    cos_r = cos_r * z + 1.0 / 24.0;
    cos_r = 1.0 - z * (0.5 - z * cos_r);

    Bits odd = -(quarter & 1);
    Bits sb = bits(sin_r), cb = bits(cos_r);
    Bits flip_s = (quarter & 2) << 62, flip_c = ((quarter + 1) & 2) << 62;
    s = unbits(((cb & odd) | (sb & ~odd)) ^ flip_s);
    one_minus_c = 1.0 - unbits(((sb & odd) | (cb & ~odd)) ^ flip_c);

    if (!all_within(x, 1e5)) {  // far away, infinite or not a number
        double at[LANES], sv[LANES], cv[LANES];
        store(at, x);
        for (std::ptrdiff_t l = 0; l < LANES; ++l) sv[l] = ::sin(at[l]), cv[l] = 1.0 - ::cos(at[l]);
        s = load(sv);
        one_minus_c = load(cv);
    }
}

static inline Pose pose_of(const Joint& j, Pack q) {
    Pack s, c;
    sine(q, s, c);
    Pose t;
    for (int k = 0; k < 9; ++k) t.r[k] = j.a0[k] + s * j.a1[k] + c * j.a2[k];
    Pack p[3];
    for (int k = 0; k < 3; ++k) p[k] = j.p0[k] + s * j.p1[k] + c * j.p2[k] + q * j.p3[k];
    t.p = {p[0], p[1], p[2]};
    return t;
}

// Column i of the rows s, s+1, ... of an n x j array; past the end the last row repeats.
static inline Pack gather(const double* from, std::ptrdiff_t j, std::ptrdiff_t i, std::ptrdiff_t s,
                          std::ptrdiff_t valid) {
    const double* row = from + s * j + i;
#if TAUFIT_LANES == 8
    if (valid >= LANES)
        return Pack{row[0],     row[j],     row[2 * j], row[3 * j],
                    row[4 * j], row[5 * j], row[6 * j], row[7 * j]};
#elif TAUFIT_LANES == 4
    if (valid >= LANES) return Pack{row[0], row[j], row[2 * j], row[3 * j]};
#elif TAUFIT_LANES == 2
    if (valid >= LANES) return Pack{row[0], row[j]};
#endif
    double x[LANES];
    for (std::ptrdiff_t l = 0; l < LANES; ++l) x[l] = row[(l < valid ? l : valid - 1) * j];
    return load(x);
}

static inline void scatter(double* to, std::ptrdiff_t j, std::ptrdiff_t i, std::ptrdiff_t s,
                           std::ptrdiff_t valid, Pack value) {
    double x[LANES];
    store(x, value);
    for (std::ptrdiff_t l = 0; l < LANES && l < valid; ++l) to[(s + l) * j + i] = x[l];
}

// Twist and acceleration of a link from those of the one before; gravity enters at the base.
struct Motion {
    Twist v, a;
};

static inline Motion at_rest(const Chain& chain) {
    Vec zero = {Pack{}, Pack{}, Pack{}};
    return {{zero, zero}, {zero, zero - fill3(chain.gravity)}};
}

static inline Motion moved(const Joint& j, const Pose& t, const Motion& m, Pack v, Pack a) {
    Vec w = fill3(j.angular), u = fill3(j.linear);
    Twist vt = to_child(t, m.v), at = to_child(t, m.a);
    Vec wv = w * v, uv = u * v;
    Motion out;
    out.v = {vt.angular + wv, vt.linear + uv};
    out.a = {at.angular + cross(vt.angular, wv) + w * a,
             at.linear + cross(vt.linear, wv) + cross(vt.angular, uv) + u * a};
    return out;
}

// The wrench a link needs is linear in its ten parameters:
//     force  = m acc + d h,              d = [alpha] + [w][w]
//     moment = -[acc] h + e (Ixx ...),   e = L(alpha) + [w] L(w),   acc = linear acceleration
struct Wrench {
    Vec acc;
    Pack d[9];
    Pack e[18];
};

static inline Wrench wrench_of(const Motion& m) {
    Vec w = m.v.angular, al = m.a.angular;
    Wrench out;
    out.acc = m.a.linear + cross(w, m.v.linear);
    Pack xx = w.x * w.x, yy = w.y * w.y, zz = w.z * w.z;
    Pack xy = w.x * w.y, xz = w.x * w.z, yz = w.y * w.z;
    out.d[0] = -yy - zz, out.d[1] = xy - al.z, out.d[2] = xz + al.y;
    out.d[3] = xy + al.z, out.d[4] = -xx - zz, out.d[5] = yz - al.x;
    out.d[6] = xz - al.y, out.d[7] = yz + al.x, out.d[8] = -xx - yy;
    Pack* e = out.e;
    e[0] = al.x, e[1] = al.y - xz, e[2] = -yz, e[3] = al.z + xy, e[4] = yy - zz, e[5] = yz;
    e[6] = xz, e[7] = al.x + yz, e[8] = al.y, e[9] = zz - xx, e[10] = al.z - xy, e[11] = -xz;
    e[12] = -xy, e[13] = xx - yy, e[14] = xy, e[15] = al.x - yz, e[16] = al.y + xz, e[17] = al.z;
    return out;
}

// One row of a block: the screw of joint i, carried to the link, times the wrench matrix.
static inline void row_of(const Twist& c, const Wrench& f, Pack* y) {
    const Vec &s = c.angular, &u = c.linear;
    Vec ms = cross(f.acc, s);
    y[0] = dot(u, f.acc);
    y[1] = u.x * f.d[0] + u.y * f.d[3] + u.z * f.d[6] + ms.x;
    y[2] = u.x * f.d[1] + u.y * f.d[4] + u.z * f.d[7] + ms.y;
    y[3] = u.x * f.d[2] + u.y * f.d[5] + u.z * f.d[8] + ms.z;
    for (int k = 0; k < 6; ++k) y[4 + k] = s.x * f.e[k] + s.y * f.e[6 + k] + s.z * f.e[12 + k];
}

#if TAUFIT_LANES == 4
typedef Pack Quad;
#elif TAUFIT_LANES == 8
typedef double Quad __attribute__((vector_size(32)));
static inline Quad low(Pack x) {
    Quad y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}
static inline Quad high(Pack x) {
    Quad y;
    std::memcpy(&y, reinterpret_cast<const char*>(&x) + sizeof y, sizeof y);
    return y;
}
static inline Pack joined(Quad a, Quad b) {
    return Pack{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
}
#endif

#if TAUFIT_LANES >= 4
// Four registers of four samples become four samples of four values, and back.
static inline void transpose4(Quad& a, Quad& b, Quad& c, Quad& d) {
    const Quad p = TAUFIT_SHUFFLE(a, b, 0, 4, 2, 6);
    const Quad q = TAUFIT_SHUFFLE(a, b, 1, 5, 3, 7);
    const Quad r = TAUFIT_SHUFFLE(c, d, 0, 4, 2, 6);
    const Quad s = TAUFIT_SHUFFLE(c, d, 1, 5, 3, 7);
    a = TAUFIT_SHUFFLE(p, r, 0, 1, 4, 5), b = TAUFIT_SHUFFLE(q, s, 0, 1, 4, 5);
    c = TAUFIT_SHUFFLE(p, r, 2, 3, 6, 7), d = TAUFIT_SHUFFLE(q, s, 2, 3, 6, 7);
}

static inline void put4(double* to, std::ptrdiff_t step, const Quad* y) {
    for (int k = 0; k < 8; k += 4) {
        Quad t[4] = {y[k], y[k + 1], y[k + 2], y[k + 3]};
        transpose4(t[0], t[1], t[2], t[3]);
        for (int l = 0; l < 4; ++l) std::memcpy(to + l * step + k, &t[l], sizeof(Quad));
    }
    const Quad p = TAUFIT_SHUFFLE(y[8], y[9], 0, 4, 2, 6);
    const Quad q = TAUFIT_SHUFFLE(y[8], y[9], 1, 5, 3, 7);
    std::memcpy(to + 8, &p, 16);
    std::memcpy(to + step + 8, &q, 16);
    std::memcpy(to + 2 * step + 8, reinterpret_cast<const char*>(&p) + 16, 16);
    std::memcpy(to + 3 * step + 8, reinterpret_cast<const char*>(&q) + 16, 16);
}

static inline void get4(const double* from, std::ptrdiff_t step, Quad* g) {
    for (int k = 0; k < 8; k += 4) {
        for (int l = 0; l < 4; ++l) std::memcpy(&g[k + l], from + l * step + k, sizeof(Quad));
        transpose4(g[k], g[k + 1], g[k + 2], g[k + 3]);
    }
    for (int k = 8; k < 10; ++k)
        g[k] = Quad{from[k], from[step + k], from[2 * step + k], from[3 * step + k]};
}
#endif

// Ten packs to `valid` samples that lie `step` doubles apart.
static inline void put10(double* to, std::ptrdiff_t step, std::ptrdiff_t valid, const Pack* y) {
#if TAUFIT_LANES == 8
    if (valid >= LANES) {
        Quad half[10];
        for (int k = 0; k < 10; ++k) half[k] = low(y[k]);
        put4(to, step, half);
        for (int k = 0; k < 10; ++k) half[k] = high(y[k]);
        put4(to + 4 * step, step, half);
        return;
    }
#elif TAUFIT_LANES == 4
    if (valid >= LANES) {
        put4(to, step, y);
        return;
    }
#elif TAUFIT_LANES == 2
    if (valid >= LANES) {
        for (int k = 0; k < 10; k += 2) {
            store(to + k, TAUFIT_SHUFFLE(y[k], y[k + 1], 0, 2));
            store(to + step + k, TAUFIT_SHUFFLE(y[k], y[k + 1], 1, 3));
        }
        return;
    }
#endif
    double x[10 * LANES];
    for (int k = 0; k < 10; ++k) store(x + k * LANES, y[k]);
    for (std::ptrdiff_t l = 0; l < LANES && l < valid; ++l)
        for (int k = 0; k < 10; ++k) to[l * step + k] = x[k * LANES + l];
}

// The reverse: ten values each of `valid` samples; past the end the last sample repeats.
static inline void get10(const double* from, std::ptrdiff_t step, std::ptrdiff_t valid, Pack* g) {
#if TAUFIT_LANES == 8
    if (valid >= LANES) {
        Quad a[10], b[10];
        get4(from, step, a);
        get4(from + 4 * step, step, b);
        for (int k = 0; k < 10; ++k) g[k] = joined(a[k], b[k]);
        return;
    }
#elif TAUFIT_LANES == 4
    if (valid >= LANES) {
        get4(from, step, g);
        return;
    }
#endif
    double x[LANES];
    for (int k = 0; k < 10; ++k) {
        for (std::ptrdiff_t l = 0; l < LANES; ++l)
            x[l] = from[(l < valid ? l : valid - 1) * step + k];
        g[k] = load(x);
    }
}

// What the adjoint keeps of every link on the way out, for the way back.
struct Kept {
    Pose pose;
    Motion motion, before;  // of the link; of the one before, seen from the link
    Wrench wrench;
};

// What the gradient keeps of every link: its motion in all lanes, its momentum, the wrench it hands on.
struct Linear {
    Pose pose;
    Motion motion, before;
    Vec wh, iw;     // w x h, I w
    Twist wrench;   // with those of the links after it
};

static std::ptrdiff_t work_size(std::ptrdiff_t joints) {
    std::ptrdiff_t packs = joints * joints * (sizeof(Twist) / sizeof(Pack)) +
                           joints * (2 * sizeof(Twist) + sizeof(Kept)) / sizeof(Pack) +
                           10 * joints * joints;
    const std::ptrdiff_t gradient = joints * (sizeof(Linear) + sizeof(Twist)) / sizeof(Pack) +
                                    (6 * joints + 2 * LANES) / LANES + 1;
    return (packs > gradient ? packs : gradient) * LANES;
}

// Past the caches: whole lines go to memory without being read first.
static inline void copy_past_caches(double* to, const double* from, std::ptrdiff_t count) {
#if TAUFIT_LANES >= 4
    std::ptrdiff_t k = 0;
    while (k < count && reinterpret_cast<std::uintptr_t>(to + k) % sizeof(Pack)) to[k] = from[k], ++k;
    for (; k + LANES <= count; k += LANES) {
#if TAUFIT_LANES == 8
        _mm512_stream_pd(to + k, _mm512_loadu_pd(from + k));
#else
        _mm256_stream_pd(to + k, _mm256_loadu_pd(from + k));
#endif
    }
    for (; k < count; ++k) to[k] = from[k];
#else
    std::memcpy(to, from, sizeof(double) * count);
#endif
}

// The blocks below the diagonal are zero: joint i does not feel the links before it.
static inline void clear_below(double* to, std::ptrdiff_t j, std::ptrdiff_t samples) {
    for (std::ptrdiff_t l = 0; l < samples; ++l)
        for (std::ptrdiff_t i = 1; i < j; ++i) {
            double* row = to + (l * j + i) * 10 * j;
            const std::ptrdiff_t end = 10 * i - LANES;  // the last pack may overlap the one before
            for (std::ptrdiff_t k = 0; k < end; k += LANES) store(row + k, Pack{});
            store(row + end, Pack{});
        }
}

static void regressor(const Chain& chain, const States& x, std::ptrdiff_t first,
                      std::ptrdiff_t last, bool past_caches, double* out, double* work) {
    const std::ptrdiff_t j = chain.joints, width = 10 * j, step = j * width;
    Twist* carried = reinterpret_cast<Twist*>(work);
    double* apart = reinterpret_cast<double*>(carried + j);
    if (past_caches) clear_below(apart, j, LANES);
    for (std::ptrdiff_t s = first; s < last; s += LANES) {
        const std::ptrdiff_t valid = last - s, samples = valid < LANES ? valid : LANES;
        double* to = past_caches ? apart : out + s * step;
        Motion motion = at_rest(chain);
        for (std::ptrdiff_t b = 0; b < j; ++b) {
            const Joint& joint = chain.joint[b];
            const Pose t = pose_of(joint, gather(x.q, j, b, s, valid));
            motion = moved(joint, t, motion, gather(x.v, j, b, s, valid),
                           gather(x.a, j, b, s, valid));
            const Wrench f = wrench_of(motion);
            carried[b] = {fill3(joint.angular), fill3(joint.linear)};
            for (std::ptrdiff_t i = 0; i <= b; ++i) {
                const Twist c = i < b ? to_child(t, carried[i]) : carried[b];
                carried[i] = c;
                Pack y[10];
                row_of(c, f, y);
                put10(to + i * width + 10 * b, step, valid, y);
            }
        }
        if (past_caches)
            copy_past_caches(out + s * step, apart, samples * step);
        else
            clear_below(to, j, samples);
    }
#if TAUFIT_LANES >= 4
    if (past_caches) _mm_sfence();
#endif
}

static void columns(const Chain& chain, const States& x, std::ptrdiff_t first, std::ptrdiff_t last,
                    const std::int64_t* place, const double* weights, double* out, double* work) {
    const std::ptrdiff_t j = chain.joints, width = 10 * j;
    Twist* carried = reinterpret_cast<Twist*>(work);
    for (std::ptrdiff_t s = first; s < last; s += LANES) {
        const std::ptrdiff_t valid = last - s, at = s - first;
        Motion motion = at_rest(chain);
        for (std::ptrdiff_t b = 0; b < j; ++b) {
            const Joint& joint = chain.joint[b];
            const Pose t = pose_of(joint, gather(x.q, j, b, s, valid));
            motion = moved(joint, t, motion, gather(x.v, j, b, s, valid),
                           gather(x.a, j, b, s, valid));
            const Wrench f = wrench_of(motion);
            carried[b] = {fill3(joint.angular), fill3(joint.linear)};
            for (std::ptrdiff_t i = 0; i <= b; ++i) {
                const Twist c = i < b ? to_child(t, carried[i]) : carried[b];
                carried[i] = c;
                Pack y[10];
                row_of(c, f, y);
                if (weights) {
                    const Pack weight = gather(weights, j, i, s, valid);
                    for (int k = 0; k < 10; ++k) y[k] = y[k] * weight;
                }
                const std::int64_t* slot = place + i * width + 10 * b;
                if (valid >= LANES) {
                    for (int k = 0; k < 10; ++k)
                        if (slot[k] >= 0) store(out + slot[k] + at, y[k]);
                } else {
                    for (int k = 0; k < 10; ++k)
                        if (slot[k] >= 0) std::memcpy(out + slot[k] + at, &y[k], 8 * valid);
                }
            }
        }
    }
}

// Samples per block of `grams`: all columns of a long arm then stay in a core's second cache.
constexpr std::ptrdiff_t GRAM_BLOCK = 128;

// Adds the dot products of `width` rows of `samples` each, a multiple of LANES, at or above the
// diagonal. Tiles of dot products stay in registers.
static void add_products(const double* rows, std::ptrdiff_t width, std::ptrdiff_t samples,
                         double* out) {
    constexpr std::ptrdiff_t high = 4, wide = LANES == 8 ? 4 : 2;
    for (std::ptrdiff_t i = 0; i < width; i += high)
        for (std::ptrdiff_t k = i; k < width; k += wide) {
            const double *left = rows + i * GRAM_BLOCK, *right = rows + k * GRAM_BLOCK;
            Pack sum[high][wide] = {};
            for (std::ptrdiff_t s = 0; s < samples; s += LANES) {
                Pack a[high], b[wide];
                for (std::ptrdiff_t p = 0; p < high; ++p) a[p] = load(left + p * GRAM_BLOCK + s);
                for (std::ptrdiff_t r = 0; r < wide; ++r) b[r] = load(right + r * GRAM_BLOCK + s);
                for (std::ptrdiff_t p = 0; p < high; ++p)
                    for (std::ptrdiff_t r = 0; r < wide; ++r) sum[p][r] = sum[p][r] + a[p] * b[r];
            }
            for (std::ptrdiff_t p = 0; p < high; ++p)
                for (std::ptrdiff_t r = 0; r < wide; ++r) {
                    double lanes[LANES], total = 0.0;
                    store(lanes, sum[p][r]);
                    for (double lane : lanes) total += lane;
                    out[(i + p) * width + k + r] += total;
                }
        }
}

static void grams(const Chain& chain, const States& x, std::ptrdiff_t n, const std::int64_t* place,
                  const double* weights, const double* extra, std::ptrdiff_t extras,
                  const std::int64_t* extra_row, const std::int64_t* widths, double* out,
                  double* work) {
    const std::ptrdiff_t j = chain.joints;
    std::ptrdiff_t rows = 0;
    for (std::ptrdiff_t i = 0; i < j; ++i) rows += widths[i];
    double* block = work + work_size(j);
    std::memset(block, 0, 8 * rows * GRAM_BLOCK);
    for (std::ptrdiff_t s = 0; s < n; s += GRAM_BLOCK) {
        const std::ptrdiff_t valid = n - s < GRAM_BLOCK ? n - s : GRAM_BLOCK;
        if (valid < GRAM_BLOCK) std::memset(block, 0, 8 * rows * GRAM_BLOCK);
        columns(chain, x, s, s + valid, place, weights, block, work);
        for (std::ptrdiff_t e = 0; e < extras; ++e)
            std::memcpy(block + extra_row[e] * GRAM_BLOCK, extra + e * n + s, 8 * valid);
        const std::ptrdiff_t samples = (valid + LANES - 1) / LANES * LANES;
        const double* from = block;
        double* to = out;
        for (std::ptrdiff_t i = 0; i < j; ++i) {
            add_products(from, widths[i], samples, to);
            from += widths[i] * GRAM_BLOCK;
            to += widths[i] * widths[i];
        }
    }
}

static void torque(const Chain& chain, const States& x, std::ptrdiff_t first, std::ptrdiff_t last,
                   double* out, double* work) {
    const std::ptrdiff_t j = chain.joints;
    Kept* kept = reinterpret_cast<Kept*>(work);
    for (std::ptrdiff_t s = first; s < last; s += LANES) {
        const std::ptrdiff_t valid = last - s;
        Motion motion = at_rest(chain);
        for (std::ptrdiff_t b = 0; b < j; ++b) {
            kept[b].pose = pose_of(chain.joint[b], gather(x.q, j, b, s, valid));
            motion = moved(chain.joint[b], kept[b].pose, motion, gather(x.v, j, b, s, valid),
                           gather(x.a, j, b, s, valid));
            kept[b].motion = motion;
        }
        Vec zero = {Pack{}, Pack{}, Pack{}};
        Twist wrench = {zero, zero};
        for (std::ptrdiff_t b = j - 1; b >= 0; --b) {
            const double* p = chain.joint[b].parameters;
            const Vec w = kept[b].motion.v.angular, al = kept[b].motion.a.angular;
            const Vec acc = kept[b].motion.a.linear + cross(w, kept[b].motion.v.linear);
            const Vec h = fill3(p + 1);
            const Vec iw = {w.x * p[4] + w.y * p[5] + w.z * p[7], w.x * p[5] + w.y * p[6] + w.z * p[8],
                            w.x * p[7] + w.y * p[8] + w.z * p[9]};
            const Vec ia = {al.x * p[4] + al.y * p[5] + al.z * p[7],
                            al.x * p[5] + al.y * p[6] + al.z * p[8],
                            al.x * p[7] + al.y * p[8] + al.z * p[9]};
            wrench.linear = wrench.linear + acc * fill(p[0]) + cross(al, h) + cross(w, cross(w, h));
            wrench.angular = wrench.angular + cross(h, acc) + ia + cross(w, iw);
            const Pack tau = dot(wrench.angular, fill3(chain.joint[b].angular)) +
                             dot(wrench.linear, fill3(chain.joint[b].linear));
            scatter(out, j, b, s, valid, tau);
            wrench = to_parent(kept[b].pose, wrench);
        }
    }
}

// Adjoint of the cross-product matrix: <m, [y]> = unhat(m)'y.
static inline Vec unhat(const Pack* m) { return {m[7] - m[5], m[2] - m[6], m[3] - m[1]}; }

// Adjoint of L, 3 x 6: <m, L(y)> = unmap(m)'y.
static inline Vec unmap(const Pack* m) {
    return {m[0] + m[7] + m[15], m[1] + m[8] + m[16], m[3] + m[10] + m[17]};
}

// Adjoint of `wrench_of`: from the gradient with respect to acc, d, e, what the link's motion gets.
static inline Motion motion_gradient(const Motion& m, Vec acc, const Pack* d, const Pack* e) {
    const Vec w = m.v.angular;
    const Pack wv[3] = {w.x, w.y, w.z};
    // d = [alpha] + w w' - w'w 1
    const Pack trace = d[0] + d[4] + d[8];
    Pack gw[3];
    for (int r = 0; r < 3; ++r) {
        gw[r] = -2.0 * trace * wv[r];
        for (int k = 0; k < 3; ++k) gw[r] = gw[r] + (d[3 * r + k] + d[3 * k + r]) * wv[k];
    }
    // e = L(alpha) + [w] L(w): [w] gets e L(w)', L(w) gets [w]' e.
    Pack hat[9];
    for (int r = 0; r < 3; ++r) {
        const Pack* x = e + 6 * r;
        hat[3 * r] = x[0] * w.x + x[1] * w.y + x[3] * w.z;
        hat[3 * r + 1] = x[1] * w.x + x[2] * w.y + x[4] * w.z;
        hat[3 * r + 2] = x[3] * w.x + x[4] * w.y + x[5] * w.z;
    }
    Pack map[18];
    for (int k = 0; k < 6; ++k) {
        map[k] = w.z * e[6 + k] - w.y * e[12 + k];
        map[6 + k] = w.x * e[12 + k] - w.z * e[k];
        map[12 + k] = w.y * e[k] - w.x * e[6 + k];
    }
    Motion out;
    out.a.angular = unhat(d) + unmap(e);
    out.a.linear = acc;
    out.v.angular =
        Vec{gw[0], gw[1], gw[2]} + unhat(hat) + unmap(map) + cross(m.v.linear, acc);
    out.v.linear = cross(acc, w);
    return out;
}

static void adjoint(const Chain& chain, const States& x, std::ptrdiff_t first, std::ptrdiff_t last,
                    const double* g, double* dq, double* dv, double* da, double* work) {
    const std::ptrdiff_t j = chain.joints, width = 10 * j, step = j * width;
    Kept* kept = reinterpret_cast<Kept*>(work);
    Twist* carried = reinterpret_cast<Twist*>(kept + j);  // carried[b * j + i]: screw i at link b
    Twist* bar = carried + j * j;                         // gradient of the screws carried so far
    const Vec zero = {Pack{}, Pack{}, Pack{}};
    for (std::ptrdiff_t s = first; s < last; s += LANES) {
        const std::ptrdiff_t valid = last - s;
        Motion motion = at_rest(chain);
        for (std::ptrdiff_t b = 0; b < j; ++b) {
            Kept& k = kept[b];
            k.pose = pose_of(chain.joint[b], gather(x.q, j, b, s, valid));
            k.before = {to_child(k.pose, motion.v), to_child(k.pose, motion.a)};
            motion = moved(chain.joint[b], k.pose, motion, gather(x.v, j, b, s, valid),
                           gather(x.a, j, b, s, valid));
            k.motion = motion;
            k.wrench = wrench_of(motion);
            for (std::ptrdiff_t i = 0; i < b; ++i)
                carried[b * j + i] = to_child(k.pose, carried[(b - 1) * j + i]);
            carried[b * j + b] = {fill3(chain.joint[b].angular), fill3(chain.joint[b].linear)};
            bar[b] = {zero, zero};
        }
        Motion up = {{zero, zero}, {zero, zero}};  // gradient of the link's motion
        for (std::ptrdiff_t b = j - 1; b >= 0; --b) {
            const Kept& k = kept[b];
            const Wrench& f = k.wrench;
            Vec acc = zero;
            Pack d[9] = {}, n[9] = {}, e[18] = {};
            for (std::ptrdiff_t i = 0; i <= b; ++i) {
                Pack y[10];
                get10(g + s * step + i * width + 10 * b, step, valid, y);
                const Twist& c = carried[b * j + i];
                const Vec h = {y[1], y[2], y[3]};
                const Pack su[3] = {c.linear.x, c.linear.y, c.linear.z};
                const Pack sw[3] = {c.angular.x, c.angular.y, c.angular.z};
                acc = acc + c.linear * y[0];
                for (int r = 0; r < 3; ++r) {
                    for (int q = 0; q < 3; ++q) {
                        d[3 * r + q] = d[3 * r + q] + su[r] * y[1 + q];
                        n[3 * r + q] = n[3 * r + q] + sw[r] * y[1 + q];
                    }
                    for (int q = 0; q < 6; ++q) e[6 * r + q] = e[6 * r + q] + sw[r] * y[4 + q];
                }
                Pack lin[3], ang[3];
                for (int r = 0; r < 3; ++r) {
                    lin[r] = f.d[3 * r] * y[1] + f.d[3 * r + 1] * y[2] + f.d[3 * r + 2] * y[3];
                    ang[r] = f.e[6 * r] * y[4];
                    for (int q = 1; q < 6; ++q) ang[r] = ang[r] + f.e[6 * r + q] * y[4 + q];
                }
                bar[i].linear = bar[i].linear + f.acc * y[0] + Vec{lin[0], lin[1], lin[2]};
                bar[i].angular = bar[i].angular + Vec{ang[0], ang[1], ang[2]} + cross(h, f.acc);
            }
            const Motion own = motion_gradient(k.motion, acc - unhat(n), d, e);
            up = {up.v + own.v, up.a + own.a};

            const Vec w = fill3(chain.joint[b].angular), u = fill3(chain.joint[b].linear);
            const Pack v = gather(x.v, j, b, s, valid);
            const Twist &vt = k.before.v, &at = k.before.a;
            const Twist &va = up.v, &aa = up.a;
            scatter(da, j, b, s, valid, dot(w, aa.angular) + dot(u, aa.linear));
            scatter(dv, j, b, s, valid,
                    dot(w, va.angular) + dot(u, va.linear) +
                        dot(aa.angular, cross(vt.angular, w)) +
                        dot(aa.linear, cross(vt.linear, w) + cross(vt.angular, u)));
            Twist vb = va;
            vb.angular = vb.angular + cross(w * v, aa.angular) + cross(u * v, aa.linear);
            vb.linear = vb.linear + cross(w * v, aa.linear);
            // d(X x)/dq = -ad_S X x, for everything that was carried over this joint.
            Vec about = cross(vt.angular, vb.angular) + cross(vt.linear, vb.linear) +
                        cross(at.angular, aa.angular) + cross(at.linear, aa.linear);
            Vec along = cross(vt.angular, vb.linear) + cross(at.angular, aa.linear);
            for (std::ptrdiff_t i = 0; i < b; ++i) {
                const Twist& c = carried[b * j + i];
                about = about + cross(c.angular, bar[i].angular) + cross(c.linear, bar[i].linear);
                along = along + cross(c.angular, bar[i].linear);
                bar[i] = to_parent(k.pose, bar[i]);
            }
            scatter(dq, j, b, s, valid, -(dot(w, about) + dot(u, along)));
            up = {to_parent(k.pose, vb), to_parent(k.pose, aa)};
        }
    }
}

// (S, of a joint) seen from a moving frame: -ad_S x.
static inline Twist bracket(const Twist& x, const Vec& w, const Vec& u) {
    return {cross(x.angular, w), cross(x.linear, w) + cross(x.angular, u)};
}

static inline Vec inertia_times(const double* p, const Vec& w) {
    return {w.x * p[4] + w.y * p[5] + w.z * p[7], w.x * p[5] + w.y * p[6] + w.z * p[8],
            w.x * p[7] + w.y * p[8] + w.z * p[9]};
}

static inline Twist times(const Twist& x, Pack s) { return {x.angular * s, x.linear * s}; }

// One sample in all lanes, and beside each other its derivatives in the directions q_1 ... a_j.
static void gradient(const Chain& chain, const States& x, std::ptrdiff_t first, std::ptrdiff_t last,
                     double* out, double* work) {
    const std::ptrdiff_t j = chain.joints, all = 3 * j;
    Linear* link = reinterpret_cast<Linear*>(work);
    Twist* force = reinterpret_cast<Twist*>(link + j);
    double* hot = reinterpret_cast<double*>(force + j);  // a one among zeros
    const std::ptrdiff_t middle = all + LANES;
    for (std::ptrdiff_t k = 0; k < 2 * middle; ++k) hot[k] = k == middle ? 1.0 : 0.0;
    const Vec zero = {Pack{}, Pack{}, Pack{}};
    for (std::ptrdiff_t s = first; s < last; ++s) {
        Motion motion = at_rest(chain);
        for (std::ptrdiff_t b = 0; b < j; ++b) {
            Linear& k = link[b];
            const double* p = chain.joint[b].parameters;
            k.pose = pose_of(chain.joint[b], fill(x.q[s * j + b]));
            k.before = {to_child(k.pose, motion.v), to_child(k.pose, motion.a)};
            motion = moved(chain.joint[b], k.pose, motion, fill(x.v[s * j + b]),
                           fill(x.a[s * j + b]));
            k.motion = motion;
            const Vec w = motion.v.angular, al = motion.a.angular, h = fill3(p + 1);
            const Vec acc = motion.a.linear + cross(w, motion.v.linear);
            k.wh = cross(w, h), k.iw = inertia_times(p, w);
            k.wrench = {cross(h, acc) + inertia_times(p, al) + cross(w, k.iw),
                        acc * fill(p[0]) + cross(al, h) + cross(w, k.wh)};
        }
        for (std::ptrdiff_t b = j - 1; b > 0; --b)
            link[b - 1].wrench = link[b - 1].wrench + to_parent(link[b].pose, link[b].wrench);
        for (std::ptrdiff_t d = 0; d < all; d += LANES) {
            Twist dv = {zero, zero}, da = {zero, zero};
            const double* at = hot + middle + d;
            for (std::ptrdiff_t b = 0; b < j; ++b) {
                const Linear& k = link[b];
                const double* p = chain.joint[b].parameters;
                const Vec sw = fill3(chain.joint[b].angular), su = fill3(chain.joint[b].linear);
                const Pack eq = load(at - b), ev = load(at - b - j), ea = load(at - b - 2 * j);
                const Pack v = fill(x.v[s * j + b]);
                const Twist vt = bracket(k.before.v, sw, su);
                dv = to_child(k.pose, dv) + times(vt, eq);
                da = to_child(k.pose, da) + times(bracket(k.before.a, sw, su), eq) +
                     times(bracket(dv, sw, su), v) + times(vt, ev);
                da = {da.angular + sw * ea, da.linear + su * ea};
                dv = {dv.angular + sw * ev, dv.linear + su * ev};
                const Vec w = k.motion.v.angular, dw = dv.angular, h = fill3(p + 1);
                const Vec dacc =
                    da.linear + cross(dw, k.motion.v.linear) + cross(w, dv.linear);
                force[b] = {cross(h, dacc) + inertia_times(p, da.angular) + cross(dw, k.iw) +
                                cross(w, inertia_times(p, dw)),
                            dacc * fill(p[0]) + cross(da.angular, h) + cross(dw, k.wh) +
                                cross(w, cross(dw, h))};
            }
            Twist sum = {zero, zero};
            for (std::ptrdiff_t b = j - 1; b >= 0; --b) {
                const Linear& k = link[b];
                const Vec sw = fill3(chain.joint[b].angular), su = fill3(chain.joint[b].linear);
                sum = sum + force[b];
                double row[LANES];
                store(row, dot(sum.angular, sw) + dot(sum.linear, su));
                double* to = out + (s * j + b) * all + d;
                for (std::ptrdiff_t l = 0; l < LANES && d + l < all; ++l) to[l] = row[l];
                // A turn of the joint turns what it hands on: d(X'f)/dq = X' (S x* f).
                const Pack eq = load(at - b);
                const Twist turned = {cross(sw, k.wrench.angular) + cross(su, k.wrench.linear),
                                      cross(sw, k.wrench.linear)};
                sum = to_parent(k.pose, sum + times(turned, eq));
            }
        }
    }
}
