/* Forward dynamics: the arm under the torque of its drives, by leapfrog steps

     a_k = forward dynamics(q_k, v_k),  v_{k+1/2} = v_{k-1/2} + h a_k,  q_{k+1} = q_k + h v_{k+1/2}

   with v_k predicted half a step ahead by the last acceleration. Friction of each drive has its
   level of steady motion times a bristle, which turns over along a small displacement, and parts
   that build up over larger ones; both follow Dahl's law exactly along the path of the step. */
#include <math.h>
#include <stddef.h>

#include "unit.h"

#define N ARM_JOINTS
/* Longest step of the integration [s], and speed beyond which the arm has run away. */
#define TICK 1e-3
#define RUNAWAY 200.0

@TABLES@

static int sign(double x) { return (x > 0.0) - (x < 0.0); }

@LEVEL@

static void times(const double *matrix, const double *x, double *y) {
  for (int i = 0; i < N; i++) {
    y[i] = 0.0;
    for (int k = 0; k < N; k++) y[i] += matrix[N * i + k] * x[k];
  }
}

/* Friction and offset at the joints; bristles and slow parts move on to where the drives are. */
static void rubbing(unit *u, double *drag) {
  double at[N], speed[N], load[N], motor[N], turned[N], heights[N];
  times(coupling, u->value + POSITION, at);
  times(coupling, u->value + VELOCITY, speed);
  times(to_motors, u->load, load);
  for (int i = 0; i < N; i++) {
    const double moved = at[i] - u->before[i];
    const double way = sign(moved);
    if (moved != 0.0) {
      u->bristle[i] = way + (u->bristle[i] - way) * exp(-fabs(moved) / u->value[PRESLIDING + i]);
      for (int k = 0; k < SLOW; k++)
        u->slow[i][k] = way + (u->slow[i][k] - way) * exp(-fabs(moved) / slow_width[k]);
    }
    u->before[i] = at[i];
    turned[i] = (u->bristle[i] >= 0.0 ? 1.0 : -1.0) * fmax(fabs(speed[i]), 1e-9);
  }
  level(turned, load, @TEMPERATURE@, heights);
  ripple(at, @TEMPERATURE@, motor);
  for (int i = 0; i < N; i++) {
    motor[i] += fmax(sign(turned[i]) * heights[i], 0.0) * u->bristle[i];
    for (int k = 0; k < SLOW; k++)
      motor[i] += slow_torque[i][k] * (u->slow[i][k] - u->bristle[i]);
  }
  for (int i = 0; i < N; i++) {
    drag[i] = offset[i];
    for (int k = 0; k < N; k++) drag[i] += coupling[N * k + i] * motor[k];
  }
}

/* Torque of the drives: what is given, and that of the servo `late` seconds into a step. */
static void servo(unit *u, double late, double h) {
  double *x = u->value;
  for (int i = 0; i < N; i++) {
    const double reference = x[REFERENCE_POSITION + i] + late * x[REFERENCE_VELOCITY + i];
    const double error = reference - x[POSITION + i];
    x[DRIVE_TORQUE + i] = x[TORQUE + i] + x[STIFFNESS + i] * error +
                          x[DAMPING + i] * (x[REFERENCE_VELOCITY + i] - x[VELOCITY + i]) +
                          u->integral[i];
    u->integral[i] += x[INTEGRAL_GAIN + i] * error * h;
  }
}

/* Friction and acceleration under the torque of the drives. */
static void accelerate(unit *u) {
  double *x = u->value, net[N];
  rubbing(u, x + FRICTION);
  for (int i = 0; i < N; i++) net[i] = x[DRIVE_TORQUE + i] - x[FRICTION + i];
  arm_acceleration(x + POSITION, x + VELOCITY, net, x + ACCELERATION);
  for (int i = 0; i < N; i++) {
    u->load[i] = net[i];
    for (int k = 0; k < N; k++) u->load[i] -= rotor[N * i + k] * x[ACCELERATION + k];
  }
}

static int tick(unit *u, double late, double h) {
  double *x = u->value;
  if (h != u->h) {
    for (int i = 0; i < N; i++) u->half[i] = x[VELOCITY + i] - 0.5 * h * u->last[i];
    u->h = h;
  }
  for (int i = 0; i < N; i++) x[VELOCITY + i] = u->half[i] + 0.5 * h * u->last[i];
  servo(u, late, h);
  accelerate(u);
  for (int i = 0; i < N; i++) {
    u->half[i] += h * x[ACCELERATION + i];
    if (!(fabs(u->half[i]) < RUNAWAY)) return 0;
    x[POSITION + i] += h * u->half[i];
    u->last[i] = x[ACCELERATION + i];
    x[VELOCITY + i] = u->half[i] + 0.5 * h * u->last[i];
  }
  return 1;
}

int kind_begin(unit *u) {
  const double none[N] = {0};
  double speed[N];
  times(coupling, u->value + POSITION, u->before);
  times(coupling, u->value + VELOCITY, speed);
  arm_inverse_dynamics(u->value + POSITION, u->value + VELOCITY, none, u->load);
  for (int i = 0; i < N; i++) {
    if (!(u->value[PRESLIDING + i] > 0.0)) return 0;
    u->bristle[i] = sign(speed[i]);
    for (int k = 0; k < SLOW; k++) u->slow[i][k] = sign(speed[i]);
  }
  return 1;
}

int kind_advance(unit *u, double at, double span) {
  const int ticks = (int)ceil(span / TICK - 1e-6);
  (void)at;
  for (int k = 0; k < ticks; k++)
    if (!tick(u, k * span / ticks, span / ticks)) return 0;
  return 1;
}

/* Position and velocity are the state; what the drives do now needs no step. */
void kind_results(unit *u) {
  unit now = *u;
  if (!now.running) (void)kind_begin(&now);
  servo(&now, 0.0, 0.0);
  accelerate(&now);
  for (int i = 0; i < N; i++) {
    u->value[DRIVE_TORQUE + i] = now.value[DRIVE_TORQUE + i];
    u->value[FRICTION + i] = now.value[FRICTION + i];
    u->value[ACCELERATION + i] = now.value[ACCELERATION + i];
  }
}
