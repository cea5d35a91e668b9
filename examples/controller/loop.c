/* A control loop at 1 kHz around exported C: each line of a recording is one sample.

     cc -std=c99 -O2 -I out loop.c out/arm.c -lm -o loop
     ./loop < run.csv

   A line holds q, v and tau of every joint. What the model does not explain of tau is the residual:
   contact, payload, wear. Differences of velocity are noisy, so it goes through a low-pass of second
   order; nothing is allocated. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "arm.h"

#define N UR10E_JOINTS
#define STEP 1e-3
#define CUTOFF_HZ 5.0

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int read_row(double *row) {
  for (int k = 0; k < 3 * N; k++)
    if (scanf("%lf%*[, \n]", row + k) != 1) return 0;
  return 1;
}

int main(void) {
  double row[3 * N], before[N], a[N], residual[N], once[N] = {0}, smooth[N] = {0};
  double squares[N] = {0}, worst = 0.0, total = 0.0;
  int rows = 0, late = 0;
  ur10e_state friction;
  ur10e_start(&friction);
  const double share = 1.0 - exp(-6.283185307 * CUTOFF_HZ * STEP), begin = now();
  while (read_row(row)) {
    const double *q = row, *v = row + N, *tau = row + 2 * N;
    /* Wait for the next millisecond, as for the next packet of a drive. */
    const double due = begin + rows * STEP;
    for (double left = due - now(); left > 0.0; left = due - now()) {
      const struct timespec pause = {0, (long)(1e9 * left)};
      nanosleep(&pause, NULL);
    }
    const double start = now();
    for (int k = 0; k < N; k++) {
      a[k] = rows ? (v[k] - before[k]) / STEP : 0.0;
      before[k] = v[k];
    }
    ur10e_residual(&friction, q, v, a, NULL, STEP, tau, residual);
    for (int k = 0; k < N; k++) {
      once[k] += share * (residual[k] - once[k]);
      smooth[k] += share * (once[k] - smooth[k]);
    }
    const double spent = now() - start;
    worst = fmax(worst, spent);
    total += spent;
    late += start - due > STEP;
    for (int k = 0; k < N; k++) squares[k] += smooth[k] * smooth[k];
    rows++;
  }
  if (!rows) return 1;
  printf("%d samples at 1 kHz, %d of them late; %.2f us each, the longest %.0f us\n", rows, late,
         1e6 * total / rows, 1e6 * worst);
  printf("residual [N m, rms] below %g Hz:", CUTOFF_HZ);
  for (int k = 0; k < N; k++) printf(" %.3f", sqrt(squares[k] / rows));
  printf("\n");
  return 0;
}
