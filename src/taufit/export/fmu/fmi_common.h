/* What FMI 2.0 and 3.0 have in common, about one `unit`. Whoever includes this has defined

     FMI(NAME)              the name of a function of its version
     FMI_STATE              how its version spells the state of a unit in names
     FMI_STATE_SIZE         the function that says how many bytes a state has
     FMI_DESERIALIZE        the function that reads a state from bytes
     status, handle, truth, byte, OK    its types, and the status that all is well
     instance               with a `unit` and whether it `logs`
     refused(one, why)      an error, with a sentence for whoever listens

   and gets those functions that differ in names alone, and the insides of the others. */
#include <stdlib.h>
#include <string.h>

#if defined _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#define JOINED_(A, B) A##B
#define JOINED(A, B) JOINED_(A, B)
/* e.g. fmi2GetFMUstate of fmi2Get */
#define OF_STATE(VERB) JOINED(VERB, FMI_STATE)

/* A function about something this unit has none of: fine as long as nothing is asked for. */
static status absent(handle h, size_t count, const char *why) {
  return count == 0 ? OK : refused(h, why);
}

/* A new instance, or NULL where the description is of another unit. */
static instance *made(const char *token, truth logs) {
  instance *one;
  if (!token || strcmp(token, UNIT_TOKEN) != 0) return NULL;
  one = calloc(1, sizeof *one);
  if (!one) return NULL;
  unit_reset(&one->unit);
  one->logs = logs;
  return one;
}

static status got(handle h, const unsigned int *vr, size_t count, double *value) {
  return unit_get(&((instance *)h)->unit, vr, count, value)
             ? OK
             : refused(h, "a value reference is not that of a variable");
}

static status put(handle h, const unsigned int *vr, size_t count, const double *value) {
  return unit_set(&((instance *)h)->unit, vr, count, value)
             ? OK
             : refused(h, "only finite values of inputs and parameters can be set");
}

static status advanced(handle h, double at, double span) {
  return unit_advance(&((instance *)h)->unit, at, span)
             ? OK
             : refused(h, "the arm runs away, or the step is not possible");
}

EXPORTED void FMI(FreeInstance)(handle h) { free(h); }

EXPORTED status FMI(SetDebugLogging)(handle h, truth on, size_t count,
                                     const char *const categories[]) {
  (void)count, (void)categories;
  ((instance *)h)->logs = on;
  return OK;
}

EXPORTED status FMI(ExitInitializationMode)(handle h) {
  return unit_begin(&((instance *)h)->unit) ? OK : refused(h, "a start value is not possible");
}

EXPORTED status FMI(Terminate)(handle h) {
  (void)h;
  return OK;
}

EXPORTED status FMI(Reset)(handle h) {
  unit_reset(&((instance *)h)->unit);
  return OK;
}

EXPORTED status OF_STATE(FMI(Get))(handle h, void **state) {
  if (!*state) *state = malloc(sizeof(unit));
  if (!*state) return refused(h, "there is no memory for a state");
  memcpy(*state, &((instance *)h)->unit, sizeof(unit));
  return OK;
}

EXPORTED status OF_STATE(FMI(Set))(handle h, void *state) {
  memcpy(&((instance *)h)->unit, state, sizeof(unit));
  return OK;
}

EXPORTED status OF_STATE(FMI(Free))(handle h, void **state) {
  (void)h;
  free(*state);
  *state = NULL;
  return OK;
}

EXPORTED status FMI_STATE_SIZE(handle h, void *state, size_t *size) {
  (void)h, (void)state;
  *size = sizeof(unit);
  return OK;
}

EXPORTED status OF_STATE(FMI(Serialize))(handle h, void *state, byte bytes[], size_t size) {
  if (size != sizeof(unit)) return refused(h, "the bytes are not a state of this unit");
  memcpy(bytes, state, size);
  return OK;
}

EXPORTED status FMI_DESERIALIZE(handle h, const byte bytes[], size_t size, void **state) {
  if (size != sizeof(unit)) return refused(h, "the bytes are not a state of this unit");
  if (!*state) *state = malloc(size);
  if (!*state) return refused(h, "there is no memory for a state");
  memcpy(*state, bytes, size);
  return OK;
}
