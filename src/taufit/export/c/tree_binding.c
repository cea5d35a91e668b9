/* Joints of the links from the recorded ones: q_b = binding q + offset; torques go back by the
   transpose. Bodies are links, each with its own joint. */
static void bind(const double *x, const double *start, double *y) {
  for (int b = 0; b < B; b++) {
    y[b] = start ? start[b] : 0.0;
    for (int k = 0; k < N; k++) y[b] += binding[b][k] * x[k];
  }
}

static void project(const double *x, double *y) {
  for (int k = 0; k < N; k++) {
    y[k] = 0.0;
    for (int b = 0; b < B; b++) y[k] += binding[b][k] * x[b];
  }
}

/* binding' m binding */
static void project_matrix(const double *m, double *y) {
  for (int i = 0; i < N; i++) {
    double row[B];
    for (int c = 0; c < B; c++) {
      row[c] = 0.0;
      for (int b = 0; b < B; b++) row[c] += binding[b][i] * m[B * b + c];
    }
    project(row, y + N * i);
  }
}

static void poses(const double *q, double r[B][9], double p[B][3]) {
  double at[B];
  bind(q, binding_offset, at);
  for (int i = 0; i < B; i++) pose(i, at[i], r[i], p[i]);
}

static void links_posed(const double *q, const double *v, const double *a, const double *gravity,
                        double r[B][9], double p[B][3], double *tau) {
  double at[B], speed[B], acc[B], torque[B];
  bind(q, binding_offset, at);
  if (v) bind(v, NULL, speed);
  if (a) bind(a, NULL, acc);
  bodies_posed(at, v ? speed : NULL, a ? acc : NULL, gravity, r, p, torque);
  project(torque, tau);
}

static void composite_mass(double r[B][9], double p[B][3], double *m) {
  double mass[B * B] = {0};
  bodies_mass(r, p, mass);
  project_matrix(mass, m);
  for (int k = 0; k < N * N; k++) m[k] += rotor[k];
}

static void links_gradient(const double *q, const double *v, const double *a, double *tau,
                           double *dq, double *dv, double *da);
