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
/* What a joint's friction is doing. */
enum { ARM_FAST, ARM_SLOW, ARM_TURNING, ARM_STANDING, ARM_REST, ARM_STATES };

/* What external torque remembers: one per arm, set by arm_contact_start before the first sample. */
typedef struct {
  arm_state friction;
  double q[ARM_JOINTS], v[ARM_JOINTS], measured[ARM_JOINTS], temperature[ARM_JOINTS];
  double lag[ARM_JOINTS], anchor[ARM_JOINTS], way[ARM_JOINTS];
  double still[ARM_JOINTS], edge[ARM_JOINTS], turn[ARM_JOINTS], crept[ARM_JOINTS];
  double quiet;
  int stood[ARM_JOINTS], samples;
} arm_contact;

void arm_contact_start(arm_contact *contact);

/* What the outside does to the joints, from the balance of momentum over the step from the sample
   before to this one, behind a first-order observer; no acceleration is needed. `state` gets one of
   the enum above per joint; friction of a joint that stands may be anything within its band and is
   left out. Returns 0 at the first sample, of which nothing is known yet, and 1 from then on. */
int arm_external_torque(arm_contact *contact, const double *q, const double *v,
                        const double *measured, const double *temperature, double dt,
                        double *external, int *state);
/* Six standard deviations of external torque in contact-free motion, by friction state (@STATES@).
   Not a safety function: not rated, and blind to forces through the axes. */
double arm_contact_threshold(int joint, int state);
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
