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
/* Twist of the flange (angular; linear velocity of its origin) in base axes per joint velocity,
   6 x JOINTS, row by row. */
void arm_jacobian(const double *q, double *jacobian);
/* Y(q, v, a), JOINTS x 10 @LINKS@, row by row: Y times the link parameters (m, hx, hy, hz, Ixx, Ixy,
   Iyy, Ixz, Iyz, Izz per link, about the link's origin) is the torque of the links. */
void arm_regressor(const double *q, const double *v, const double *a, double *y);

/* Torque and its gradient for planning: friction of steady motion, sign(v) smoothed to
   tanh(v / @WIDTH@), so that it has a derivative everywhere. */
void arm_smooth_torque(const double *q, const double *v, const double *a,
                       const double *temperature, double *tau);
/* d tau_i / d q_k in dq[JOINTS * i + k], likewise dv and da; `tau` is that of arm_smooth_torque. */
void arm_torque_gradient(const double *q, const double *v, const double *a,
                         const double *temperature, double *tau, double *dq, double *dv,
                         double *da);

/* Reference controller: what to add to a position loop, and how to guide the arm by hand. One per
   arm, set by arm_controller_start. Every call does the same work whatever the state. */
#define ARM_LEVEL_LOW 0.5
#define ARM_LEVEL_HIGH 1.6
/* Compensated fraction of friction: as stated, and where the level was tracked in free motion for
   ARM_TRACKED_S seconds. Above 0.8 of the true friction an arm creeps or runs away by itself
   (chosen on simulated arms: UR10e, Panda, iiwa14). */
#define ARM_FRACTION 0.6
#define ARM_FRACTION_TRACKED 0.8
#define ARM_TRACKED_S 2.0
#define ARM_REST_SPEED 0.004

typedef struct {
  arm_state commanded, measured; /* friction along the commanded and the measured path */
  double level[ARM_JOINTS];      /* friction relative to the model's: 1, or tracked, or yours */
  double tracked[ARM_JOINTS];    /* seconds of free motion behind it */
  double payload[10];
  double product[ARM_JOINTS], square[ARM_JOINTS], weight[ARM_JOINTS], rest[ARM_JOINTS];
  double friction[ARM_JOINTS], other[ARM_JOINTS], speed[ARM_JOINTS];
} arm_controller;

void arm_controller_start(arm_controller *controller);
/* What the arm carries: mass, centre of mass in the last link's frame, inertia about it (Ixx, Ixy,
   Iyy, Ixz, Iyz, Izz, or NULL for an aluminium sphere). Mass 0 puts it down. */
void arm_controller_payload(arm_controller *controller, double mass, const double *centre,
                            const double *inertia);
/* Torque for a commanded motion, friction with memory along the command times `level`. Give the
   command that is due when the torque acts: q(t + delay), v(t + delay), a(t + delay). */
void arm_feed_forward(arm_controller *controller, const double *q, const double *v,
                      const double *a, const double *temperature, double dt, double *tau);
/* Follows the friction level in free motion, after arm_feed_forward: `applied` is the whole torque
   given to the drives in that step. Never call it while somebody touches the arm: a hand looks like
   friction. */
void arm_track_friction(arm_controller *controller, const double *applied, double dt);
/* Fraction of the friction that arm_guide compensates. */
double arm_guiding_fraction(const arm_controller *controller, int joint);
/* Torque for hand guiding, from the measured state: gravity, offset and a fraction of friction that
   is too small to drive the arm; drag counts half. Not a safety function. */
void arm_guide(arm_controller *controller, const double *q, const double *v,
               const double *temperature, double dt, double *tau);

#ifdef __cplusplus
}
#endif
#endif
