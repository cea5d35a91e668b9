
static void links_gradient(const double *q, const double *v, const double *a, double *tau,
                           double *dq, double *dv, double *da) {
  double at[B], speed[B], acc[B], torque[B];
  double by_q[B * B] = {0}, by_v[B * B] = {0}, by_a[B * B] = {0};
  bind(q, binding_offset, at);
  bind(v, NULL, speed);
  bind(a, NULL, acc);
  bodies_gradient(at, speed, acc, torque, by_q, by_v, by_a);
  project(torque, tau);
  project_matrix(by_q, dq);
  project_matrix(by_v, dv);
  project_matrix(by_a, da);
  for (int k = 0; k < N * N; k++) da[k] += rotor[k];
}

/* Pose of a link in the base frame. */
static void base_pose(int i, double links_r[B][9], double links_p[B][3], double *r, double *p) {
  memcpy(r, links_r[i], 9 * sizeof *r);
  memcpy(p, links_p[i], 3 * sizeof *p);
  for (i = parent[i]; i >= 0; i = parent[i]) {
    double r0[9], p0[3];
    memcpy(r0, r, sizeof r0);
    memcpy(p0, p, sizeof p0);
    for (int j = 0; j < 3; j++) {
      const double *row = links_r[i] + 3 * j;
      p[j] = links_p[i][j] + row[0] * p0[0] + row[1] * p0[1] + row[2] * p0[2];
      for (int k = 0; k < 3; k++)
        r[3 * j + k] = row[0] * r0[k] + row[1] * r0[3 + k] + row[2] * r0[6 + k];
    }
  }
}

void arm_forward_kinematics(const double *q, double *flange) {
  double links_r[B][9], links_p[B][3], r[9], p[3];
  poses(q, links_r, links_p);
  base_pose(tip_link, links_r, links_p, r, p);
  for (int j = 0; j < 3; j++) {
    flange[4 * j + 3] = p[j];
    flange[12 + j] = 0.0;
    for (int k = 0; k < 3; k++) {
      flange[4 * j + 3] += r[3 * j + k] * tip_p[k];
      flange[4 * j + k] =
          r[3 * j] * tip_r[k] + r[3 * j + 1] * tip_r[3 + k] + r[3 * j + 2] * tip_r[6 + k];
    }
  }
  flange[15] = 1.0;
}

void arm_regressor(const double *q, const double *v, const double *a, double *y) {
  double at[B], speed[B], rate[B];
  double r[B][9], p[B][3], twist[B][6], acc[B][6], carried[B][N][6];
  bind(q, binding_offset, at);
  bind(v, NULL, speed);
  bind(a, NULL, rate);
  motion(at, speed, rate, pull, r, p, twist, acc);
  memset(y, 0, sizeof(double) * N * 10 * B);
  for (int b = 0; b < B; b++) {
    double columns[6][10];
    wrench_columns(twist[b], acc[b], columns);
    for (int i = 0; i < N; i++) {
      double *own = carried[b][i];
      memset(own, 0, sizeof carried[b][i]);
      if (parent[b] >= 0) to_child(r[b], p[b], carried[parent[b]][i], own);
      for (int k = 0; k < 6; k++) own[k] += screw[b][k] * binding[b][i];
      for (int c = 0; c < 10; c++)
        for (int k = 0; k < 6; k++) y[i * 10 * B + 10 * b + c] += own[k] * columns[k][c];
    }
  }
}

void arm_jacobian(const double *q, double *jacobian) {
  double links_r[B][9], links_p[B][3], flange[16];
  poses(q, links_r, links_p);
  arm_forward_kinematics(q, flange);
  const double tip[3] = {flange[3], flange[7], flange[11]};
  memset(jacobian, 0, sizeof(double) * 6 * N);
  for (int b = tip_link; b >= 0; b = parent[b]) {
    double r[9], p[3], J[6];
    base_pose(b, links_r, links_p, r, p);
    to_base(r, p, screw[b], J);
    add_cross(J, tip, J + 3);
    for (int k = 0; k < 6; k++)
      for (int i = 0; i < N; i++) jacobian[N * k + i] += J[k] * binding[b][i];
  }
}

/* Torque of a body at the tip's link, ten parameters in its frame; v and a may be NULL. */
static void payload_torque(const double *m, const double *q, const double *v, const double *a,
                           double *tau) {
  double at[B], speed[B], rate[B], r[B][9], p[B][3], twist[B][6], acc[B][6], wrench[6];
  double torque[B] = {0};
  bind(q, binding_offset, at);
  if (v) bind(v, NULL, speed);
  if (a) bind(a, NULL, rate);
  motion(at, v ? speed : NULL, a ? rate : NULL, pull, r, p, twist, acc);
  times_inertia(m, acc[tip_link], wrench);
  if (v) {
    double h[6], turned[6];
    times_inertia(m, twist[tip_link], h);
    cross_wrench(twist[tip_link], h, turned);
    for (int k = 0; k < 6; k++) wrench[k] += turned[k];
  }
  for (int i = tip_link; i >= 0; i = parent[i]) {
    double next[6] = {0};
    torque[i] = dot6(wrench, screw[i]);
    add_to_parent(r[i], p[i], wrench, next);
    memcpy(wrench, next, sizeof next);
  }
  project(torque, tau);
}
