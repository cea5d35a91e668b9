/* Inverse dynamics: each step takes the motion given at its beginning as the next sample. */
#include <stddef.h>

#include "unit.h"

/* The torque of the sample that the inputs are, `dt` seconds after the one before. */
static void sample(unit *u, arm_state *friction, double dt) {
  double *x = u->value;
  arm_step(friction, x + POSITION, x + VELOCITY, x + ACCELERATION, @TEMPERATURE@, dt, x + TORQUE);
}

int kind_begin(unit *u) {
  arm_start(&u->friction);
  return 1;
}

int kind_advance(unit *u, double at, double span) {
  sample(u, &u->friction, u->samples ? at - u->sampled : span);
  u->sampled = at;
  u->samples = 1;
  return 1;
}

/* As if the inputs were the next sample; friction does not move on. */
void kind_results(unit *u) {
  arm_state friction = u->friction;
  sample(u, &friction, u->samples ? u->value[0] - u->sampled : 0.0);
}
