
static double bounded(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

@PARTS@

void arm_controller_start(arm_controller *controller) {
  memset(controller, 0, sizeof *controller);
  for (int i = 0; i < N; i++) controller->level[i] = 1.0;
}

void arm_controller_payload(arm_controller *controller, double mass, const double *centre,
                            const double *inertia) {
  const double *c = centre;
  double *p = controller->payload;
  /* Without an inertia, that of an aluminium sphere. */
  const double radius = pow(mass / (2700.0 * 4.18879020478639098), 1.0 / 3.0);
  const double sphere = inertia ? 0.0 : 0.4 * mass * radius * radius;
  p[0] = mass;
  for (int k = 0; k < 3; k++) p[1 + k] = mass * c[k];
  p[4] = mass * (c[1] * c[1] + c[2] * c[2]) + sphere;
  p[5] = -mass * c[0] * c[1];
  p[6] = mass * (c[0] * c[0] + c[2] * c[2]) + sphere;
  p[7] = -mass * c[0] * c[2];
  p[8] = -mass * c[1] * c[2];
  p[9] = mass * (c[0] * c[0] + c[1] * c[1]) + sphere;
  if (inertia)
    for (int k = 0; k < 6; k++) p[4 + k] += inertia[k];
}

void arm_feed_forward(arm_controller *controller, const double *q, const double *v,
                      const double *a, const double *temperature, double dt, double *tau) {
  arm_controller *const c = controller;
  double rigid[N], carried[N], total[N], compensated[N];
  links(q, v, a, pull, rigid);
  if (c->payload[0] != 0.0) {
    payload_torque(c->payload, q, v, a, carried);
    for (int i = 0; i < N; i++) rigid[i] += carried[i];
  }
  friction_parts(&c->commanded, q, v, rigid, temperature, dt, total, c->friction, compensated);
  add_rotors(a, rigid);
  for (int i = 0; i < N; i++) {
    c->other[i] = rigid[i] + total[i] - c->friction[i];
    c->speed[i] = v[i];
    tau[i] = c->other[i] + bounded(c->level[i], ARM_LEVEL_LOW, ARM_LEVEL_HIGH) * c->friction[i];
  }
}

void arm_track_friction(arm_controller *controller, const double *applied, double dt) {
  arm_controller *const c = controller;
  const double kept = exp(-dt / 3.0);
  for (int i = 0; i < N; i++) {
    const double x = c->friction[i], y = applied[i] - c->other[i];
    if (fabs(c->speed[i]) < slow || x == 0.0) continue;
    c->product[i] = kept * c->product[i] + dt * x * y;
    c->square[i] = kept * c->square[i] + dt * x * x;
    c->weight[i] = kept * c->weight[i] + dt;
    c->tracked[i] += dt;
    /* The model itself counts like 50 ms of motion. */
    const double prior = 0.05 * c->square[i] / c->weight[i];
    c->level[i] = bounded((c->product[i] + prior) / (c->square[i] + prior), ARM_LEVEL_LOW,
                          ARM_LEVEL_HIGH);
  }
}

double arm_guiding_fraction(const arm_controller *controller, int joint) {
  if (joint < 0 || joint >= N) return 0.0;
  return controller->tracked[joint] >= ARM_TRACKED_S ? ARM_FRACTION_TRACKED : ARM_FRACTION;
}

void arm_guide(arm_controller *controller, const double *q, const double *v,
               const double *temperature, double dt, double *tau) {
  arm_controller *const c = controller;
  double rigid[N], carried[N], total[N], friction[N], compensated[N];
  links(q, NULL, NULL, pull, rigid);
  if (c->payload[0] != 0.0) {
    payload_torque(c->payload, q, NULL, NULL, carried);
    for (int i = 0; i < N; i++) rigid[i] += carried[i];
  }
  friction_parts(&c->measured, q, v, rigid, temperature, dt, total, friction, compensated);
  for (int i = 0; i < N; i++) {
    /* Let go, a joint comes to rest: after half a second its compensation fades, so that an error
       of gravity cannot carry it away. */
    const double scale = bounded(c->level[i], ARM_LEVEL_LOW, ARM_LEVEL_HIGH);
    c->rest[i] = fabs(v[i]) < ARM_REST_SPEED ? c->rest[i] + dt : 0.0;
    const double fade = c->rest[i] > 0.5 ? exp(-(c->rest[i] - 0.5) / 0.2) : 1.0;
    tau[i] = rigid[i] + total[i] - friction[i] +
             fade * arm_guiding_fraction(c, i) * scale * compensated[i];
  }
}
