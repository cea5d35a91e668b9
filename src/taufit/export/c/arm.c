/* Written by taufit; the header says what each function does. */
#include "@FILE@.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define N ARM_JOINTS
@BODIES@

@TABLES@

static void cross(const double *a, const double *b, double *c) {
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

static void add_cross(const double *a, const double *b, double *c) {
  c[0] += a[1] * b[2] - a[2] * b[1];
  c[1] += a[2] * b[0] - a[0] * b[2];
  c[2] += a[0] * b[1] - a[1] * b[0];
}

/* Pose of link i in its parent: R = R0 + s R1 + (1 - c) R2, p likewise and + q p3. */
static void pose(int i, double q, double *r, double *p) {
  const double s = sin(q), c = 1.0 - cos(q);
  for (int k = 0; k < 9; k++) r[k] = turn[i][k] + s * turn[i][9 + k] + c * turn[i][18 + k];
  for (int k = 0; k < 3; k++)
    p[k] = shift[i][k] + s * shift[i][3 + k] + c * shift[i][6 + k] + q * shift[i][9 + k];
}

/* A twist of the previous frame seen from the child frame. */
static void to_child(const double *r, const double *p, const double *x, double *y) {
  double l[3];
  cross(x, p, l);
  for (int k = 0; k < 3; k++) l[k] += x[3 + k];
  for (int k = 0; k < 3; k++) {
    y[k] = r[k] * x[0] + r[3 + k] * x[1] + r[6 + k] * x[2];
    y[3 + k] = r[k] * l[0] + r[3 + k] * l[1] + r[6 + k] * l[2];
  }
}

/* A wrench (moment; force) of the child frame seen from the previous one, added to y. */
static void add_to_parent(const double *r, const double *p, const double *x, double *y) {
  double f[3];
  for (int k = 0; k < 3; k++) {
    y[k] += r[3 * k] * x[0] + r[3 * k + 1] * x[1] + r[3 * k + 2] * x[2];
    f[k] = r[3 * k] * x[3] + r[3 * k + 1] * x[4] + r[3 * k + 2] * x[5];
    y[3 + k] += f[k];
  }
  add_cross(p, f, y);
}

/* Inertia of a body, ten parameters, times a twist. */
static void times_inertia(const double *m, const double *x, double *y) {
  y[0] = m[4] * x[0] + m[5] * x[1] + m[7] * x[2];
  y[1] = m[5] * x[0] + m[6] * x[1] + m[8] * x[2];
  y[2] = m[7] * x[0] + m[8] * x[1] + m[9] * x[2];
  for (int k = 0; k < 3; k++) y[3 + k] = m[0] * x[3 + k];
  add_cross(m + 1, x + 3, y);
  add_cross(x, m + 1, y + 3);
}

/* Twists and accelerations of all links; the base accelerates upwards in the place of gravity. */
static void motion(const double *q, const double *v, const double *a, const double *gravity,
                   double r[B][9], double p[B][3], double twist[B][6], double acc[B][6]) {
  double still[6] = {0}, base[6] = {0};
  if (gravity)
    for (int k = 0; k < 3; k++) base[3 + k] = -gravity[k];
  for (int i = 0; i < B; i++) {
    const int before = BEFORE(i);
    pose(i, q[i], r[i], p[i]);
    to_child(r[i], p[i], before >= 0 ? acc[before] : base, acc[i]);
    if (v) {
      double own[6];
      to_child(r[i], p[i], before >= 0 ? twist[before] : still, twist[i]);
      for (int k = 0; k < 6; k++) own[k] = screw[i][k] * v[i];
      add_cross(twist[i], own, acc[i]);
      add_cross(twist[i] + 3, own, acc[i] + 3);
      add_cross(twist[i], own + 3, acc[i] + 3);
      for (int k = 0; k < 6; k++) twist[i][k] += own[k];
    }
    if (a)
      for (int k = 0; k < 6; k++) acc[i][k] += screw[i][k] * a[i];
  }
}

/* Torque of the links and their poses; v, a and gravity may be NULL for none. */
static void bodies_posed(const double *q, const double *v, const double *a, const double *gravity,
                         double r[B][9], double p[B][3], double *tau) {
  double twist[B][6], acc[B][6], wrench[B][6];
  motion(q, v, a, gravity, r, p, twist, acc);
  for (int i = 0; i < B; i++) {
    times_inertia(link[i], acc[i], wrench[i]);
    if (v) {
      double h[6];
      times_inertia(link[i], twist[i], h);
      add_cross(twist[i], h, wrench[i]);
      add_cross(twist[i] + 3, h + 3, wrench[i]);
      add_cross(twist[i], h + 3, wrench[i] + 3);
    }
  }
  for (int i = B - 1; i >= 0; i--) {
    tau[i] = 0.0;
    for (int k = 0; k < 6; k++) tau[i] += wrench[i][k] * screw[i][k];
    if (BEFORE(i) >= 0) add_to_parent(r[i], p[i], wrench[i], wrench[BEFORE(i)]);
  }
}

/* Adds the ten parameters of a rigid body, seen from the frame before its own: turned, then shifted
   by p, about that frame's origin. */
static void add_body(const double *r, const double *p, const double *x, double *y) {
  double h[3], i[9], half[9], t[9];
  const double m = x[0], own[9] = {x[4], x[5], x[7], x[5], x[6], x[8], x[7], x[8], x[9]};
  for (int j = 0; j < 3; j++) {
    h[j] = r[3 * j] * x[1] + r[3 * j + 1] * x[2] + r[3 * j + 2] * x[3];
    for (int k = 0; k < 3; k++)
      half[3 * j + k] =
          r[3 * j] * own[k] + r[3 * j + 1] * own[3 + k] + r[3 * j + 2] * own[6 + k];
  }
  for (int j = 0; j < 3; j++)
    for (int k = j; k < 3; k++)
      i[3 * j + k] = half[3 * j] * r[3 * k] + half[3 * j + 1] * r[3 * k + 1] +
                     half[3 * j + 2] * r[3 * k + 2];
  /* I about the new origin: I + 2 h.p 1 - h p' - p h' + m (p.p 1 - p p') */
  for (int j = 0; j < 3; j++)
    for (int k = j; k < 3; k++) t[3 * j + k] = p[j] * (h[k] + m * p[k]) + h[j] * p[k];
  const double trace = t[0] + t[4] + t[8];
  y[0] += m;
  for (int k = 0; k < 3; k++) y[1 + k] += h[k] + m * p[k];
  y[4] += i[0] - t[0] + trace;
  y[5] += i[1] - t[1];
  y[6] += i[4] - t[4] + trace;
  y[7] += i[2] - t[2];
  y[8] += i[5] - t[5];
  y[9] += i[8] - t[8] + trace;
}

/* M by composite bodies: what joint i moves, as one body, and the wrench that its screw needs. */
static void bodies_mass(double r[B][9], double p[B][3], double *m) {
  double body[B][10];
  memcpy(body, link, sizeof body);
  for (int i = B - 1; i >= 0; i--) {
    double wrench[6];
    if (BEFORE(i) >= 0) add_body(r[i], p[i], body[i], body[BEFORE(i)]);
    times_inertia(body[i], screw[i], wrench);
    for (int k = i; k >= 0; k = BEFORE(k)) {
      double sum = ROTOR(i, k);
      for (int c = 0; c < 6; c++) sum += wrench[c] * screw[k][c];
      m[B * i + k] = sum;
      m[B * k + i] = sum;
      if (BEFORE(k) >= 0) {
        double next[6] = {0};
        add_to_parent(r[k], p[k], wrench, next);
        memcpy(wrench, next, sizeof next);
      }
    }
  }
}

@BINDING@

static void links(const double *q, const double *v, const double *a, const double *gravity,
                  double *tau) {
  double r[B][9], p[B][3];
  links_posed(q, v, a, gravity, r, p, tau);
}

static void add_rotors(const double *a, double *tau) {
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) tau[i] += rotor[N * i + k] * a[k];
}

void arm_inverse_dynamics(const double *q, const double *v, const double *a, double *tau) {
  links(q, v, a, pull, tau);
  add_rotors(a, tau);
}

void arm_gravity(const double *q, double *tau) { links(q, NULL, NULL, pull, tau); }

void arm_coriolis(const double *q, const double *v, double *tau) { links(q, v, NULL, NULL, tau); }

void arm_mass_matrix(const double *q, double *m) {
  double r[B][9], p[B][3];
  poses(q, r, p);
  composite_mass(r, p, m);
}

/* M a = tau by Cholesky, in the lower triangle of m. */
static void solve(double *m, double *tau) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j <= i; j++) {
      double sum = m[N * i + j];
      for (int k = 0; k < j; k++) sum -= m[N * i + k] * m[N * j + k];
      m[N * i + j] = i == j ? sqrt(sum) : sum / m[N * j + j];
    }
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < i; k++) tau[i] -= m[N * i + k] * tau[k];
    tau[i] /= m[N * i + i];
  }
  for (int i = N - 1; i >= 0; i--) {
    for (int k = i + 1; k < N; k++) tau[i] -= m[N * k + i] * tau[k];
    tau[i] /= m[N * i + i];
  }
}

void arm_acceleration(const double *q, const double *v, const double *tau, double *a) {
  double m[N * N], bias[N], r[B][9], p[B][3];
  links_posed(q, v, NULL, pull, r, p, bias);
  for (int i = 0; i < N; i++) a[i] = tau[i] - bias[i];
  composite_mass(r, p, m);
  solve(m, a);
}

@FRICTION@

void arm_start(arm_state *state) { memset(state, 0, sizeof *state); }

void arm_torque(const double *q, const double *v, const double *a, const double *temperature,
                double *tau) {
  double rigid[N];
  links(q, v, a, pull, rigid);
  arm_friction(q, v, rigid, temperature, tau);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
}

void arm_step(arm_state *state, const double *q, const double *v, const double *a,
              const double *temperature, double dt, double *tau) {
  double rigid[N];
  links(q, v, a, pull, rigid);
  arm_friction_step(state, q, v, rigid, temperature, dt, tau);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
}

void arm_residual(arm_state *state, const double *q, const double *v, const double *a,
                  const double *temperature, double dt, const double *measured,
                  double *residual) {
  double tau[N];
  arm_step(state, q, v, a, temperature, dt, tau);
  for (int i = 0; i < N; i++) residual[i] = measured[i] - tau[i];
}

void arm_contact_start(arm_contact *contact) {
  memset(contact, 0, sizeof *contact);
  arm_start(&contact->friction);
}

double arm_contact_threshold(int joint, int state) {
  return joint < 0 || joint >= N || state < 0 || state >= ARM_STATES ? HUGE_VAL
                                                                     : 6.0 * level[state][joint];
}

/* Counts are of samples; a joint stands from `settle` on until it is `displaced` away. */
static void friction_states(arm_contact *c, const double *q, const double *v, double dt,
                            int *state) {
  const int first = c->samples == 1;
  int all = 1;
  for (int i = 0; i < N; i++) {
    const double speed = fabs(v[i]);
    const int moves = speed >= standstill;
    if (first) {
      c->anchor[i] = q[i];
      c->stood[i] = !moves;
      c->still[i] = c->edge[i] = c->turn[i] = c->crept[i] = 1e9;
      c->quiet = 1e9;
    }
    const int before = c->stood[i];
    c->still[i] = moves ? 0.0 : c->still[i] + 1.0;
    const int stops = !before && c->still[i] >= settle / dt - 1e-9;
    const int starts = before && fabs(q[i] - c->anchor[i]) > displaced;
    if (stops) c->anchor[i] = q[i];
    c->stood[i] = (before || stops) && !starts;
    all = all && c->stood[i];
    c->edge[i] = stops || starts ? 0.0 : c->edge[i] + 1.0;
    const double way = moves ? (v[i] > 0.0) - (v[i] < 0.0) : c->way[i];
    c->turn[i] = way * c->way[i] < 0.0 ? 0.0 : c->turn[i] + 1.0;
    c->way[i] = way;
    c->crept[i] = speed < slow ? 0.0 : c->crept[i] + 1.0;
  }
  c->quiet = all ? c->quiet + 1.0 : 0.0;
  for (int i = 0; i < N; i++) {
    const int turns = c->turn[i] < reversal / dt - 1e-9 || c->still[i] > 0.0;
    state[i] = c->crept[i] <= slow_for / dt - 1e-9 ? ARM_SLOW : ARM_FAST;
    if (!c->stood[i] && turns) state[i] = ARM_TURNING;
    if (c->stood[i]) state[i] = c->quiet >= quiet / dt - 1e-9 ? ARM_REST : ARM_STANDING;
    if (c->edge[i] < change / dt - 1e-9) state[i] = ARM_TURNING;
  }
}

int arm_external_torque(arm_contact *contact, const double *q, const double *v,
                        const double *measured, const double *temperature, double dt,
                        double *external, int *state) {
  arm_contact *const c = contact;
  double at[N], speed[N], a[N], warm[N], tau[N], rigid[N];
  const double share = -expm1(-gain * dt);
  const int known = c->samples > 0;
  for (int i = 0; i < N; i++) {
    at[i] = 0.5 * (q[i] + c->q[i]);
    speed[i] = 0.5 * (v[i] + c->v[i]);
    a[i] = (v[i] - c->v[i]) / dt;
    tau[i] = 0.5 * (measured[i] + c->measured[i]);
    warm[i] = temperature == NULL ? 0.0 : 0.5 * (temperature[i] + c->temperature[i]);
    c->q[i] = q[i];
    c->v[i] = v[i];
    c->measured[i] = measured[i];
    c->temperature[i] = temperature == NULL ? 0.0 : temperature[i];
    external[i] = 0.0;
    state[i] = ARM_REST;
  }
  if (known) {
    double rubs[N], turned[N] = {0};
    links(at, speed, a, pull, rigid);
    friction_states(c, at, speed, dt, state);
    arm_friction_step(&c->friction, at, speed, rigid, temperature == NULL ? NULL : warm, dt, rubs);
    add_rotors(a, turned);
    for (int i = 0; i < N; i++) {
      const double felt =
          rigid[i] + turned[i] + (c->stood[i] ? offset[i] : rubs[i]) - tau[i];
      if (c->samples == 1) c->lag[i] = felt;
      c->lag[i] += share * (felt - c->lag[i]);
      external[i] = c->lag[i];
    }
  }
  if (c->samples < 2) c->samples++;
  return known;
}

/* The wrench (moment; force) a link needs, per unit of each of its ten parameters. */
static void wrench_columns(const double *twist, const double *acc6, double out[6][10]) {
  const double *w = twist, *al = acc6;
  double f[3];
  cross(w, twist + 3, f);
  for (int k = 0; k < 3; k++) f[k] += acc6[3 + k];
  const double ww = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
  const double ha[9] = {0, -al[2], al[1], al[2], 0, -al[0], -al[1], al[0], 0};
  const double hf[9] = {0, -f[2], f[1], f[2], 0, -f[0], -f[1], f[0], 0};
  memset(out, 0, sizeof(double) * 60);
  for (int j = 0; j < 3; j++) {
    out[3 + j][0] = f[j];
    for (int k = 0; k < 3; k++) {
      out[3 + j][1 + k] = ha[3 * j + k] + w[j] * w[k] - (j == k) * ww;
      out[j][1 + k] = -hf[3 * j + k];
    }
  }
  static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
  for (int c = 0; c < 6; c++) {
    double iw[3] = {0, 0, 0}, ia[3] = {0, 0, 0}, g[3];
    iw[row[c]] += w[column[c]];
    ia[row[c]] += al[column[c]];
    if (row[c] != column[c]) {
      iw[column[c]] += w[row[c]];
      ia[column[c]] += al[row[c]];
    }
    cross(w, iw, g);
    for (int k = 0; k < 3; k++) out[k][4 + c] = ia[k] + g[k];
  }
}
