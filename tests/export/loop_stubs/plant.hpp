// Plant behind the stand-in headers: the exported model itself, friction included, gravity added.
#pragma once

#include "arm.h"
#include "plant_name.h"  // ARM_OF(function) and JOINTS, written by the test

struct Plant {
  double q[JOINTS], v[JOINTS] = {};
  ARM_OF(state) friction;

  Plant() {
    for (int k = 0; k < JOINTS; k++) q[k] = 0.3 - 0.25 * k;
    ARM_OF(start)(&friction);
  }

  void advance(const double *command, double dt) {
    const int parts = 20;
    for (int part = 0; part < parts; part++) {
      double zero[JOINTS] = {}, rigid[JOINTS], lost[JOINTS], net[JOINTS], a[JOINTS];
      double gravity[JOINTS];
      ARM_OF(inverse_dynamics)(q, v, zero, rigid);
      ARM_OF(friction_step)(&friction, q, v, rigid, nullptr, dt / parts, lost);
      ARM_OF(gravity)(q, gravity);
      for (int k = 0; k < JOINTS; k++) net[k] = PLANT_GAIN * command[k] + gravity[k] - lost[k];
      ARM_OF(acceleration)(q, v, net, a);
      for (int k = 0; k < JOINTS; k++) {
        v[k] += dt / parts * a[k];
        q[k] += dt / parts * v[k];
      }
    }
  }
};
