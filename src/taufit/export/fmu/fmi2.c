/* The functions of FMI 2.0 for co-simulation, about one `unit`. Declared here as the standard has
   them, so that the sources need no header of another. */
#include <string.h>

#include "unit.h"

typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char *fmi2String;
typedef char fmi2Byte;
typedef void *fmi2Component;

typedef struct {
  void (*logger)(void *, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
  void *(*allocateMemory)(size_t, size_t);
  void (*freeMemory)(void *);
  void (*stepFinished)(void *, fmi2Status);
  void *componentEnvironment;
} fmi2CallbackFunctions;

typedef struct {
  unit unit;
  fmi2Boolean logs;
  const fmi2CallbackFunctions *callbacks;
  fmi2Char name[256];
} instance;

/* fmi2Error with a sentence for whoever listens. */
static fmi2Status refused(instance *one, const char *why) {
  if (one && one->logs && one->callbacks && one->callbacks->logger)
    one->callbacks->logger(one->callbacks->componentEnvironment, one->name, fmi2Error,
                           "logStatusError", "%s", why);
  return fmi2Error;
}

#define FMI(NAME) fmi2##NAME
#define FMI_STATE FMUstate
#define FMI_STATE_SIZE fmi2SerializedFMUstateSize
#define FMI_DESERIALIZE fmi2DeSerializeFMUstate
#define OK fmi2OK
typedef fmi2Status status;
typedef fmi2Component handle;
typedef fmi2Boolean truth;
typedef fmi2Byte byte;

#include "fmi_common.h"

EXPORTED const char *fmi2GetTypesPlatform(void) { return "default"; }

EXPORTED const char *fmi2GetVersion(void) { return "2.0"; }

EXPORTED fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String token,
                                       fmi2String resources,
                                       const fmi2CallbackFunctions *callbacks, fmi2Boolean visible,
                                       fmi2Boolean logs) {
  instance *one = type == fmi2CoSimulation ? made(token, logs) : NULL;
  (void)resources, (void)visible;
  if (!one) return NULL;
  one->callbacks = callbacks;
  if (name) strncpy(one->name, name, sizeof one->name - 1);
  return one;
}

EXPORTED fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerant, fmi2Real tolerance,
                                        fmi2Real begin, fmi2Boolean ends, fmi2Real end) {
  (void)tolerant, (void)tolerance, (void)ends, (void)end;
  ((instance *)c)->unit.value[0] = begin;
  return fmi2OK;
}

EXPORTED fmi2Status fmi2EnterInitializationMode(fmi2Component c) {
  (void)c;
  return fmi2OK;
}

EXPORTED fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference vr[], size_t count,
                                fmi2Real value[]) {
  return got(c, vr, count, value);
}

EXPORTED fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference vr[], size_t count,
                                const fmi2Real value[]) {
  return put(c, vr, count, value);
}

/* All variables are real. */
#define OTHER_TYPE(TYPE)                                                                       \
  EXPORTED fmi2Status fmi2Get##TYPE(fmi2Component c, const fmi2ValueReference vr[],            \
                                    size_t count, fmi2##TYPE value[]) {                        \
    (void)vr, (void)value;                                                                     \
    return absent(c, count, "all variables are real");                                         \
  }                                                                                            \
  EXPORTED fmi2Status fmi2Set##TYPE(fmi2Component c, const fmi2ValueReference vr[],            \
                                    size_t count, const fmi2##TYPE value[]) {                  \
    (void)vr, (void)value;                                                                     \
    return absent(c, count, "all variables are real");                                         \
  }

OTHER_TYPE(Integer)
OTHER_TYPE(Boolean)
OTHER_TYPE(String)

EXPORTED fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference of[],
                                                 size_t many, const fmi2ValueReference by[],
                                                 size_t count, const fmi2Real known[],
                                                 fmi2Real unknown[]) {
  (void)of, (void)many, (void)by, (void)count, (void)known, (void)unknown;
  return refused(c, "derivatives are not given");
}

EXPORTED fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[],
                                                size_t count, const fmi2Integer order[],
                                                const fmi2Real value[]) {
  (void)vr, (void)order, (void)value;
  return absent(c, count, "inputs are held over a step");
}

EXPORTED fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[],
                                                 size_t count, const fmi2Integer order[],
                                                 fmi2Real value[]) {
  (void)vr, (void)order, (void)value;
  return absent(c, count, "derivatives are not given");
}

EXPORTED fmi2Status fmi2DoStep(fmi2Component c, fmi2Real at, fmi2Real span, fmi2Boolean keeps) {
  (void)keeps;
  return advanced(c, at, span);
}

EXPORTED fmi2Status fmi2CancelStep(fmi2Component c) { return refused(c, "no step is under way"); }

/* Steps end before fmi2DoStep returns, so there is never one to ask about. */
#define STATUS(NAME, TYPE)                                                                     \
  EXPORTED fmi2Status fmi2Get##NAME(fmi2Component c, const int kind, TYPE *value) {            \
    (void)kind, (void)value;                                                                   \
    return c ? fmi2Discard : fmi2Error;                                                        \
  }

STATUS(Status, fmi2Status)
STATUS(RealStatus, fmi2Real)
STATUS(IntegerStatus, fmi2Integer)
STATUS(BooleanStatus, fmi2Boolean)
STATUS(StringStatus, fmi2String)
