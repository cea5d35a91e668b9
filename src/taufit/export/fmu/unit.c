/* Values of a unit, read and set by reference. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "unit.h"

static const double start_value[UNIT_VARIABLES] = {@START@};

void unit_reset(unit *u) {
  memset(u, 0, sizeof *u);
  memcpy(u->value, start_value, sizeof start_value);
  u->changed = 1;
}

int unit_get(unit *u, const unsigned int *reference, size_t count, double *value) {
  if (u->changed) {
    kind_results(u);
    u->changed = 0;
  }
  for (size_t k = 0; k < count; k++) {
    if (reference[k] >= UNIT_VARIABLES) return 0;
    value[k] = u->value[reference[k]];
  }
  return 1;
}

int unit_set(unit *u, const unsigned int *reference, size_t count, const double *value) {
  const unsigned int end = u->running ? UNIT_INPUTS : UNIT_STARTS;
  for (size_t k = 0; k < count; k++)
    if (reference[k] == 0 || reference[k] >= end || !isfinite(value[k])) return 0;
  for (size_t k = 0; k < count; k++) u->value[reference[k]] = value[k];
  u->changed = 1;
  return 1;
}

int unit_begin(unit *u) {
  u->running = 1;
  u->changed = 1;
  return kind_begin(u);
}

int unit_advance(unit *u, double at, double span) {
  if (!u->running || !isfinite(at) || !(span >= 0.0) || span > @LONGEST@) return 0;
  u->changed = 0;
  if (span > 0.0 && !kind_advance(u, at, span)) return 0;
  u->value[0] = at + span;
  return 1;
}
