/* Dynamics of @TITLE@
   Written by taufit from a fitted model (@ORIGIN@).
   SI units; arrays hold one value per joint. No function allocates memory or keeps state of its
   own: two threads may call them at once, each with its own arm_state. */
#ifndef ARM_DYNAMICS_H
#define ARM_DYNAMICS_H

#define ARM_JOINTS @JOINTS@

#ifdef __cplusplus
extern "C" {
#endif

/* What friction remembers of the path: one per arm, set by arm_start before the first sample. */
typedef struct {
@MEMORY@
  int started;
} arm_state;

void arm_start(arm_state *state);

/* The torque of the model at the next sample, `dt` seconds after the one before: links, rotors,
   friction with its memory, offset. `temperature` of the joints in degrees Celsius may be NULL
   (@TEMPERATURE@). */
void arm_step(arm_state *state, const double *q, const double *v, const double *a,
              const double *temperature, double dt, double *tau);
/* Measured torque less that of arm_step: what nothing in the model explains, such as contact. */
void arm_residual(arm_state *state, const double *q, const double *v, const double *a,
                  const double *temperature, double dt, const double *measured, double *residual);
/* Friction and offset of the next sample alone; `rigid` is the torque of the links, for friction
   that follows the load. */
void arm_friction_step(arm_state *state, const double *q, const double *v, const double *rigid,
                       const double *temperature, double dt, double *tau);

/* The same for a sample that follows no other: friction is that of steady motion. */
void arm_torque(const double *q, const double *v, const double *a, const double *temperature,
                double *tau);
void arm_friction(const double *q, const double *v, const double *rigid,
                  const double *temperature, double *tau);

/* Links and rotors alone, without friction and offset: tau = M(q) a + c(q, v) + g(q). */
void arm_inverse_dynamics(const double *q, const double *v, const double *a, double *tau);
/* g(q), the torque that holds the arm still. */
void arm_gravity(const double *q, double *tau);
/* c(q, v), Coriolis and centrifugal torque. */
void arm_coriolis(const double *q, const double *v, double *tau);
/* M(q) with the rotors, JOINTS x JOINTS. */
void arm_mass_matrix(const double *q, double *m);
/* Solves M(q) a = tau - c - g for links and rotors alone; `tau` without friction and offset. */
void arm_acceleration(const double *q, const double *v, const double *tau, double *a);
/* Pose of the flange (the robot's tip) in the base frame: 4 x 4, row by row. */
void arm_forward_kinematics(const double *q, double *pose);
/* Y(q, v, a), JOINTS x 10 JOINTS, row by row: Y times the link parameters (m, hx, hy, hz, Ixx, Ixy,
   Iyy, Ixz, Iyz, Izz per link, about the link's origin) is the torque of the links. */
void arm_regressor(const double *q, const double *v, const double *a, double *y);

#ifdef __cplusplus
}
#endif
#endif
