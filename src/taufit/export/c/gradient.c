
/* Gradient of the links' torque, everything in base axes about the base's origin. With screws J,
   twists V and accelerations A of the links, c = V x J and g = A x J + V x c,

     d f_i / d q_j = J_j x* f_i + I_i g_j + K_i c_j,     d f_i / d v_j = 2 I_i c_j + K_i J_j

   for links i behind joint j, and f_i is the wrench that link i needs. K x = x x* I V + V x* I x -
   I (V x x). Sums over all links behind a joint give its torque. */
static void cross_twist(const double *x, const double *y, double *z) {
  cross(x, y, z);
  cross(x + 3, y, z + 3);
  add_cross(x, y + 3, z + 3);
}

static void cross_wrench(const double *x, const double *f, double *y) {
  cross(x, f, y);
  add_cross(x + 3, f + 3, y);
  cross(x, f + 3, y + 3);
}

static double dot6(const double *x, const double *y) {
  return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5];
}

/* A twist of a frame with pose r, p, seen from the base. */
static void to_base(const double *r, const double *p, const double *x, double *y) {
  for (int k = 0; k < 3; k++) {
    y[k] = r[3 * k] * x[0] + r[3 * k + 1] * x[1] + r[3 * k + 2] * x[2];
    y[3 + k] = r[3 * k] * x[3] + r[3 * k + 1] * x[4] + r[3 * k + 2] * x[5];
  }
  add_cross(p, y, y + 3);
}

/* Adds K of one link: H - X - X', X = I [V x], H x = x x* I V. */
static void add_gyroscopic(const double *m, const double *v, const double *momentum,
                           double k[6][6]) {
  double x[6][6];
  for (int c = 0; c < 6; c++) {
    double unit[6] = {0}, turned[6], column[6];
    unit[c] = 1.0;
    cross_twist(v, unit, turned);
    times_inertia(m, turned, column);
    for (int j = 0; j < 6; j++) x[j][c] = column[j];
    cross_wrench(unit, momentum, turned);
    for (int j = 0; j < 6; j++) k[j][c] += turned[j];
  }
  for (int j = 0; j < 6; j++)
    for (int c = 0; c < 6; c++) k[j][c] -= x[j][c] + x[c][j];
}

static void bodies_gradient(const double *q, const double *v, const double *a, double *tau,
                            double *dq, double *dv, double *da) {
  double r[B][9], p[B][3], J[B][6], c[B][6], g[B][6], f[B][6], body[B][10], K[B][6][6];
  double twists[B][6], accs[B][6];
  for (int i = 0; i < B; i++) {
    const int before = BEFORE(i);
    double own[9], moved[3], bias[6], momentum[6], *twist = twists[i], *acc = accs[i];
    if (before < 0) {
      pose(i, q[i], r[i], p[i]);
      for (int k = 0; k < 6; k++) {
        twist[k] = 0.0;
        acc[k] = k < 3 ? 0.0 : -pull[k - 3];
      }
    } else {
      memcpy(twist, twists[before], sizeof twists[i]);
      memcpy(acc, accs[before], sizeof accs[i]);
      pose(i, q[i], own, moved);
      for (int j = 0; j < 3; j++) {
        p[i][j] = p[before][j];
        for (int k = 0; k < 3; k++) {
          p[i][j] += r[before][3 * j + k] * moved[k];
          r[i][3 * j + k] = r[before][3 * j] * own[k] + r[before][3 * j + 1] * own[3 + k] +
                            r[before][3 * j + 2] * own[6 + k];
        }
      }
    }
    to_base(r[i], p[i], screw[i], J[i]);
    cross_twist(twist, J[i], c[i]);
    for (int k = 0; k < 6; k++) {
      acc[k] += J[i][k] * a[i] + c[i][k] * v[i];
      twist[k] += J[i][k] * v[i];
    }
    cross_twist(acc, J[i], g[i]);
    cross_twist(twist, c[i], bias);
    for (int k = 0; k < 6; k++) g[i][k] += bias[k];
    memset(body[i], 0, sizeof body[i]);
    add_body(r[i], p[i], link[i], body[i]);
    times_inertia(body[i], twist, momentum);
    times_inertia(body[i], acc, f[i]);
    cross_wrench(twist, momentum, bias);
    for (int k = 0; k < 6; k++) f[i][k] += bias[k];
    memset(K[i], 0, sizeof K[i]);
    add_gyroscopic(body[i], twist, momentum, K[i]);
  }
  for (int i = B - 1; i >= 0; i--) {
    const int before = BEFORE(i);
    double inertia[6], slope_q[6], slope_v[6], turned[6], back[6], twice[6];
    if (before >= 0) {
      for (int k = 0; k < 10; k++) body[before][k] += body[i][k];
      for (int k = 0; k < 6; k++) f[before][k] += f[i][k];
      for (int j = 0; j < 6; j++)
        for (int k = 0; k < 6; k++) K[before][j][k] += K[i][j][k];
    }
    tau[i] = dot6(J[i], f[i]);
    times_inertia(body[i], J[i], inertia);
    times_inertia(body[i], g[i], slope_q);
    times_inertia(body[i], c[i], twice);
    cross_wrench(J[i], f[i], turned);
    for (int k = 0; k < 6; k++) {
      slope_q[k] += turned[k] + dot6(K[i][k], c[i]);
      slope_v[k] = 2.0 * twice[k] + dot6(K[i][k], J[i]);
      back[k] = 0.0;
      for (int j = 0; j < 6; j++) back[k] += K[i][j][k] * J[i][j];
    }
    for (int k = i; k >= 0; k = BEFORE(k)) {
      const double mass = dot6(J[k], inertia) + ROTOR(i, k);
      da[B * k + i] = mass;
      da[B * i + k] = mass;
      dq[B * i + k] = dot6(inertia, g[k]) + dot6(back, c[k]);
      dv[B * i + k] = 2.0 * dot6(inertia, c[k]) + dot6(back, J[k]);
      if (k < i) {
        dq[B * k + i] = dot6(J[k], slope_q);
        dv[B * k + i] = dot6(J[k], slope_v);
      }
    }
  }
}

@GRADIENT@

@SMOOTH@

void arm_smooth_torque(const double *q, const double *v, const double *a,
                       const double *temperature, double *tau) {
  double rigid[N];
  links(q, v, a, pull, rigid);
  smooth_friction(q, v, rigid, temperature, tau, NULL, NULL, NULL);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
}

void arm_torque_gradient(const double *q, const double *v, const double *a,
                         const double *temperature, double *tau, double *dq, double *dv,
                         double *da) {
  double rigid[N], by_q[N * N], by_v[N * N], by_load[N * N], by_a[N * N] = {0};
  links_gradient(q, v, a, rigid, dq, dv, da);
  smooth_friction(q, v, rigid, temperature, tau, by_q, by_v, by_load);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
  (void)by_a;
@LOADED@
  for (int k = 0; k < N * N; k++) {
    dq[k] += by_q[k];
    dv[k] += by_v[k];
  }
}
