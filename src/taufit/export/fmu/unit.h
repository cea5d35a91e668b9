/* One unit: its numbers by value reference, and the state of the arm between two steps. */
#ifndef UNIT_H
#define UNIT_H

#include <stddef.h>

#include "arm.h"

#define UNIT_TOKEN "@TOKEN@"

/* Value reference 0 is time. Those below UNIT_INPUTS may be set at any time, those below
   UNIT_STARTS until initialization ends; the others are results. */
#define UNIT_VARIABLES @VARIABLES@
#define UNIT_INPUTS @INPUTS@
#define UNIT_STARTS @STARTS@
@PLACES@

typedef struct {
  double value[UNIT_VARIABLES];
  int running; /* Whether initialization is over. */
  int changed; /* Whether a value was set since results were computed. */
@STATE@
} unit;

/* Start values, at the beginning of everything. */
void unit_reset(unit *u);
/* Each returns whether all went well. */
int unit_get(unit *u, const unsigned int *reference, size_t count, double *value);
int unit_set(unit *u, const unsigned int *reference, size_t count, const double *value);
int unit_begin(unit *u);
int unit_advance(unit *u, double at, double span);

/* Of the kind of unit: its first state, its step, its results as they are between two steps. */
int kind_begin(unit *u);
int kind_advance(unit *u, double at, double span);
void kind_results(unit *u);

#endif
