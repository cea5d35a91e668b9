// Operations of model/friction_tape.py on several samples side by side; included after
// regressor_loops.h, once per instruction set.

static inline Pack per_lane(Pack x, double (*f)(double)) {
    double at[LANES];
    store(at, x);
    for (std::ptrdiff_t l = 0; l < LANES; ++l) at[l] = f(at[l]);
    return load(at);
}

// 2^k (p + 1) with p = e^r - 1, |r| <= ln 2 / 2: the Taylor series, whose first dropped term is below
// 1e-17 of r. Returns 2^k p + (2^k - subtracted).
static inline Pack exponential(Pack x, double subtracted) {
    if (!all_within(x, 700.0)) {  // large, infinite or not a number
        double at[LANES];
        store(at, x);
        for (std::ptrdiff_t l = 0; l < LANES; ++l)
            at[l] = subtracted == 0.0 ? ::exp(at[l]) : ::expm1(at[l]);
        return load(at);
    }
    const double round = 6755399441055744.0;
    const Pack shifted = x * 1.44269504088896340736 + round;
    const Pack k = shifted - round;
    Pack r = x - k * 0x1.62e42fefa3800p-1;
    r = r - k * 0x1.ef35793c76730p-45;
    Pack p = fill(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = r + r * r * p;
    const Pack scale = unbits((bits(shifted) + 1023) << 52);
    return scale * p + (scale - subtracted);
}

static inline Pack magnitude(Pack x) { return unbits(bits(x) & 0x7fffffffffffffffLL); }

static inline Pack hyperbolic_tangent(Pack x) {
    const Pack far = fill(40.0), twice = 2.0 * magnitude(x);
    const Pack e = exponential(twice < far ? twice : far, 1.0);
    const Pack t = e / (e + 2.0);
    return x < 0.0 ? -t : (x >= 0.0 ? t : x);
}

static void operations(const std::int32_t* list, std::ptrdiff_t steps, std::ptrdiff_t width,
                       double* registers) {
    const Pack one = fill(1.0), none = Pack{};
    for (std::ptrdiff_t k = 0; k < steps; ++k, list += 5) {
        const double *first = registers + list[1] * width, *second = registers + list[2] * width;
        const double* third = registers + list[3] * width;
        double* to = registers + list[4] * width;
        const auto each = [&](auto operation) {
            for (std::ptrdiff_t l = 0; l < width; l += LANES)
                store(to + l, operation(load(first + l), load(second + l)));
        };
        switch (list[0]) {
            case ADD: each([](Pack a, Pack b) { return a + b; }); break;
            case SUBTRACT: each([](Pack a, Pack b) { return a - b; }); break;
            case MULTIPLY: each([](Pack a, Pack b) { return a * b; }); break;
            case DIVIDE: each([](Pack a, Pack b) { return a / b; }); break;
            case GREATER: each([&](Pack a, Pack b) { return a > b ? one : none; }); break;
            case GREATER_EQUAL: each([&](Pack a, Pack b) { return a >= b ? one : none; }); break;
            case LESS: each([&](Pack a, Pack b) { return a < b ? one : none; }); break;
            case LESS_EQUAL: each([&](Pack a, Pack b) { return a <= b ? one : none; }); break;
            case MAXIMUM: each([](Pack a, Pack b) { return a >= b ? a : b; }); break;
            case MINIMUM: each([](Pack a, Pack b) { return a <= b ? a : b; }); break;
            case POWER:
                for (std::ptrdiff_t l = 0; l < width; ++l) to[l] = ::pow(first[l], second[l]);
                break;
            case WHERE:
                for (std::ptrdiff_t l = 0; l < width; ++l)
                    to[l] = first[l] != 0.0 ? second[l] : third[l];
                break;
            case NEGATIVE: each([](Pack a, Pack) { return -a; }); break;
            case ABSOLUTE: each([](Pack a, Pack) { return magnitude(a); }); break;
            case TANH: each([](Pack a, Pack) { return hyperbolic_tangent(a); }); break;
            case EXP: each([](Pack a, Pack) { return exponential(a, 0.0); }); break;
            case LOG: each([](Pack a, Pack) { return per_lane(a, ::log); }); break;
            case SQRT: each([](Pack a, Pack) { return per_lane(a, ::sqrt); }); break;
            case SIN:
                each([](Pack a, Pack) {
                    Pack s, c;
                    sine(a, s, c);
                    return s;
                });
                break;
            case COS:
                each([](Pack a, Pack) {
                    Pack s, c;
                    sine(a, s, c);
                    return 1.0 - c;
                });
                break;
            case ARCTAN: each([](Pack a, Pack) { return per_lane(a, ::atan); }); break;
            case SIGN:
                each([&](Pack a, Pack) { return a > 0.0 ? one : (a < 0.0 ? -one : none); });
                break;
            case SQUARE: each([](Pack a, Pack) { return a * a; }); break;
            case EXPM1: each([](Pack a, Pack) { return exponential(a, 1.0); }); break;
            case LOG1P: each([](Pack a, Pack) { return per_lane(a, ::log1p); }); break;
        }
    }
}
