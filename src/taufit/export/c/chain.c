
void arm_forward_kinematics(const double *q, double *flange) {
  double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, p[3] = {0};
  for (int i = 0; i <= N; i++) {
    double own_r[9], own_p[3], next_r[9];
    if (i < N) {
      pose(i, q[i], own_r, own_p);
    } else {
      memcpy(own_r, tip_r, sizeof own_r);
      memcpy(own_p, tip_p, sizeof own_p);
    }
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) {
        p[j] += r[3 * j + k] * own_p[k];
        next_r[3 * j + k] =
            r[3 * j] * own_r[k] + r[3 * j + 1] * own_r[3 + k] + r[3 * j + 2] * own_r[6 + k];
      }
    memcpy(r, next_r, sizeof r);
  }
  for (int j = 0; j < 3; j++) {
    for (int k = 0; k < 3; k++) flange[4 * j + k] = r[3 * j + k];
    flange[4 * j + 3] = p[j];
    flange[12 + j] = 0.0;
  }
  flange[15] = 1.0;
}

void arm_regressor(const double *q, const double *v, const double *a, double *y) {
  double r[N][9], p[N][3], twist[N][6], acc[N][6], carried[N][6];
  motion(q, v, a, pull, r, p, twist, acc);
  memset(y, 0, sizeof(double) * N * 10 * N);
  for (int b = 0; b < N; b++) {
    double columns[6][10];
    for (int i = 0; i < b; i++) {
      double moved[6];
      to_child(r[b], p[b], carried[i], moved);
      memcpy(carried[i], moved, sizeof moved);
    }
    memcpy(carried[b], screw[b], sizeof carried[b]);
    wrench_columns(twist[b], acc[b], columns);
    for (int i = 0; i <= b; i++)
      for (int c = 0; c < 10; c++)
        for (int k = 0; k < 6; k++) y[i * 10 * N + 10 * b + c] += carried[i][k] * columns[k][c];
  }
}

void arm_jacobian(const double *q, double *jacobian) {
  double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, p[3] = {0}, J[N][6], flange[16];
  arm_forward_kinematics(q, flange);
  const double tip[3] = {flange[3], flange[7], flange[11]};
  for (int i = 0; i < N; i++) {
    double own[9], moved[3], next[9];
    pose(i, q[i], own, moved);
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) {
        p[j] += r[3 * j + k] * moved[k];
        next[3 * j + k] = r[3 * j] * own[k] + r[3 * j + 1] * own[3 + k] + r[3 * j + 2] * own[6 + k];
      }
    memcpy(r, next, sizeof r);
    to_base(r, p, screw[i], J[i]);
    /* Linear velocity of the flange's origin in the place of that of the base's. */
    add_cross(J[i], tip, J[i] + 3);
    for (int k = 0; k < 6; k++) jacobian[N * k + i] = J[i][k];
  }
}

/* Torque of a body at the last link, ten parameters in its frame; v and a may be NULL for none. */
static void payload_torque(const double *m, const double *q, const double *v, const double *a,
                           double *tau) {
  double r[N][9], p[N][3], twist[N][6], acc[N][6], wrench[6];
  motion(q, v, a, pull, r, p, twist, acc);
  times_inertia(m, acc[N - 1], wrench);
  if (v) {
    double h[6], turned[6];
    times_inertia(m, twist[N - 1], h);
    cross_wrench(twist[N - 1], h, turned);
    for (int k = 0; k < 6; k++) wrench[k] += turned[k];
  }
  for (int i = N - 1; i >= 0; i--) {
    double next[6] = {0};
    tau[i] = dot6(wrench, screw[i]);
    add_to_parent(r[i], p[i], wrench, next);
    memcpy(wrench, next, sizeof next);
  }
}
