/* The functions of FMI 3.0 for co-simulation, about one `unit`. Declared here as the standard has
   them, so that the sources need no header of another. */
#include <stdbool.h>
#include <stdint.h>
#include "unit.h"

typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef bool fmi3Clock;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean,
                                               fmi3Boolean, fmi3Boolean, fmi3Boolean,
                                               fmi3Boolean *, fmi3Float64 *);

typedef struct {
  unit unit;
  fmi3Boolean logs;
  fmi3LogMessageCallback log;
  fmi3InstanceEnvironment environment;
} instance;

/* fmi3Error with a sentence for whoever listens. */
static fmi3Status refused(instance *one, const char *why) {
  if (one && one->logs && one->log) one->log(one->environment, fmi3Error, "logStatusError", why);
  return fmi3Error;
}

#define FMI(NAME) fmi3##NAME
#define FMI_STATE FMUState
#define FMI_STATE_SIZE fmi3SerializedFMUStateSize
#define FMI_DESERIALIZE fmi3DeserializeFMUState
#define OK fmi3OK
typedef fmi3Status status;
typedef fmi3Instance handle;
typedef fmi3Boolean truth;
typedef fmi3Byte byte;

#include "fmi_common.h"

EXPORTED const char *fmi3GetVersion(void) { return "3.0"; }

EXPORTED fmi3Instance fmi3InstantiateCoSimulation(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logs,
    fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference wanted[], size_t count,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update) {
  instance *one = events ? NULL : made(token, logs);
  (void)name, (void)resources, (void)visible, (void)early, (void)wanted, (void)count, (void)update;
  if (!one) return NULL;
  one->log = log;
  one->environment = environment;
  return one;
}

EXPORTED fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token,
                                                   fmi3String resources, fmi3Boolean visible,
                                                   fmi3Boolean logs,
                                                   fmi3InstanceEnvironment environment,
                                                   fmi3LogMessageCallback log) {
  (void)name, (void)token, (void)resources, (void)visible, (void)logs, (void)environment, (void)log;
  return NULL;
}

EXPORTED fmi3Instance fmi3InstantiateScheduledExecution(
    fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logs,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    void (*clock)(fmi3InstanceEnvironment), void (*lock)(void), void (*unlock)(void)) {
  (void)name, (void)token, (void)resources, (void)visible, (void)logs, (void)environment, (void)log;
  (void)clock, (void)lock, (void)unlock;
  return NULL;
}

EXPORTED fmi3Status fmi3EnterInitializationMode(fmi3Instance i, fmi3Boolean tolerant,
                                                fmi3Float64 tolerance, fmi3Float64 begin,
                                                fmi3Boolean ends, fmi3Float64 end) {
  (void)tolerant, (void)tolerance, (void)ends, (void)end;
  ((instance *)i)->unit.value[0] = begin;
  return fmi3OK;
}

EXPORTED fmi3Status fmi3GetFloat64(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                   fmi3Float64 value[], size_t values) {
  return values == count ? got(i, vr, count, value)
                         : refused(i, "every variable has one value");
}

EXPORTED fmi3Status fmi3SetFloat64(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                   const fmi3Float64 value[], size_t values) {
  return values == count ? put(i, vr, count, value)
                         : refused(i, "every variable has one value");
}

/* All variables are Float64. */
#define OTHER_TYPE(TYPE)                                                                       \
  EXPORTED fmi3Status fmi3Get##TYPE(fmi3Instance i, const fmi3ValueReference vr[],             \
                                    size_t count, fmi3##TYPE value[], size_t values) {         \
    (void)vr, (void)value, (void)values;                                                       \
    return absent(i, count, "all variables are Float64");                                      \
  }                                                                                            \
  EXPORTED fmi3Status fmi3Set##TYPE(fmi3Instance i, const fmi3ValueReference vr[],             \
                                    size_t count, const fmi3##TYPE value[], size_t values) {   \
    (void)vr, (void)value, (void)values;                                                       \
    return absent(i, count, "all variables are Float64");                                      \
  }

OTHER_TYPE(Float32)
OTHER_TYPE(Int8)
OTHER_TYPE(UInt8)
OTHER_TYPE(Int16)
OTHER_TYPE(UInt16)
OTHER_TYPE(Int32)
OTHER_TYPE(UInt32)
OTHER_TYPE(Int64)
OTHER_TYPE(UInt64)
OTHER_TYPE(Boolean)
OTHER_TYPE(String)

EXPORTED fmi3Status fmi3GetBinary(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                  size_t sizes[], fmi3Binary value[], size_t values) {
  (void)vr, (void)sizes, (void)value, (void)values;
  return absent(i, count, "all variables are Float64");
}

EXPORTED fmi3Status fmi3SetBinary(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                  const size_t sizes[], const fmi3Binary value[], size_t values) {
  (void)vr, (void)sizes, (void)value, (void)values;
  return absent(i, count, "all variables are Float64");
}

EXPORTED fmi3Status fmi3GetClock(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                 fmi3Clock value[]) {
  (void)vr, (void)value;
  return absent(i, count, "there are no clocks");
}

EXPORTED fmi3Status fmi3SetClock(fmi3Instance i, const fmi3ValueReference vr[], size_t count,
                                 const fmi3Clock value[]) {
  (void)vr, (void)value;
  return absent(i, count, "there are no clocks");
}

EXPORTED fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance i, fmi3ValueReference vr,
                                                        size_t *count) {
  (void)vr, (void)count;
  return refused(i, "dependencies are those of the description");
}

EXPORTED fmi3Status fmi3GetVariableDependencies(fmi3Instance i, fmi3ValueReference of,
                                                size_t of_index[], fmi3ValueReference by[],
                                                size_t by_index[], int kinds[], size_t count) {
  (void)of, (void)of_index, (void)by, (void)by_index, (void)kinds, (void)count;
  return refused(i, "dependencies are those of the description");
}

/* Functions with (instance, references, count, ...) about what this unit does not have. */
#define NOT_HERE(NAME, WHY, ...)                                                               \
  EXPORTED fmi3Status fmi3##NAME(fmi3Instance i, __VA_ARGS__) { return refused(i, WHY); }

#if defined __GNUC__
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

NOT_HERE(GetDirectionalDerivative, "derivatives are not given", const fmi3ValueReference of[],
         size_t many, const fmi3ValueReference by[], size_t count, const fmi3Float64 seed[],
         size_t seeds, fmi3Float64 out[], size_t outs)
NOT_HERE(GetAdjointDerivative, "derivatives are not given", const fmi3ValueReference of[],
         size_t many, const fmi3ValueReference by[], size_t count, const fmi3Float64 seed[],
         size_t seeds, fmi3Float64 out[], size_t outs)
NOT_HERE(GetOutputDerivatives, "derivatives are not given", const fmi3ValueReference vr[],
         size_t count, const fmi3Int32 order[], fmi3Float64 out[], size_t outs)
NOT_HERE(GetIntervalDecimal, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         fmi3Float64 interval[], int kind[])
NOT_HERE(GetIntervalFraction, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         fmi3UInt64 counter[], fmi3UInt64 resolution[], int kind[])
NOT_HERE(GetShiftDecimal, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         fmi3Float64 shift[])
NOT_HERE(GetShiftFraction, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         fmi3UInt64 counter[], fmi3UInt64 resolution[])
NOT_HERE(SetIntervalDecimal, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         const fmi3Float64 interval[])
NOT_HERE(SetIntervalFraction, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         const fmi3UInt64 counter[], const fmi3UInt64 resolution[])
NOT_HERE(SetShiftDecimal, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         const fmi3Float64 shift[])
NOT_HERE(SetShiftFraction, "there are no clocks", const fmi3ValueReference vr[], size_t count,
         const fmi3UInt64 counter[], const fmi3UInt64 resolution[])
NOT_HERE(ActivateModelPartition, "there are no clocks", fmi3ValueReference clock, fmi3Float64 at)
NOT_HERE(SetTime, "this unit is for co-simulation", fmi3Float64 at)
NOT_HERE(SetContinuousStates, "this unit is for co-simulation", const fmi3Float64 x[], size_t count)
NOT_HERE(GetContinuousStateDerivatives, "this unit is for co-simulation", fmi3Float64 x[],
         size_t count)
NOT_HERE(GetEventIndicators, "this unit is for co-simulation", fmi3Float64 x[], size_t count)
NOT_HERE(GetContinuousStates, "this unit is for co-simulation", fmi3Float64 x[], size_t count)
NOT_HERE(GetNominalsOfContinuousStates, "this unit is for co-simulation", fmi3Float64 x[],
         size_t count)
NOT_HERE(GetNumberOfEventIndicators, "this unit is for co-simulation", size_t *count)
NOT_HERE(GetNumberOfContinuousStates, "this unit is for co-simulation", size_t *count)
NOT_HERE(CompletedIntegratorStep, "this unit is for co-simulation", fmi3Boolean keeps,
         fmi3Boolean *event, fmi3Boolean *ends)
NOT_HERE(UpdateDiscreteStates, "this unit has no events", fmi3Boolean *again, fmi3Boolean *ends,
         fmi3Boolean *nominals, fmi3Boolean *values, fmi3Boolean *next, fmi3Float64 *at)

EXPORTED fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance i) {
  return refused(i, "this unit is for co-simulation");
}

EXPORTED fmi3Status fmi3EnterEventMode(fmi3Instance i) {
  return refused(i, "this unit has no events");
}

EXPORTED fmi3Status fmi3EnterStepMode(fmi3Instance i) {
  (void)i;
  return fmi3OK;
}

EXPORTED fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance i) {
  (void)i;
  return fmi3OK;
}

EXPORTED fmi3Status fmi3EnterConfigurationMode(fmi3Instance i) {
  return refused(i, "this unit has no structure to choose");
}

EXPORTED fmi3Status fmi3ExitConfigurationMode(fmi3Instance i) {
  return refused(i, "this unit has no structure to choose");
}

EXPORTED fmi3Status fmi3DoStep(fmi3Instance i, fmi3Float64 at, fmi3Float64 span, fmi3Boolean keeps,
                               fmi3Boolean *event, fmi3Boolean *ends, fmi3Boolean *early,
                               fmi3Float64 *last) {
  status done;
  (void)keeps;
  *event = *ends = *early = false;
  done = advanced(i, at, span);
  *last = done == OK ? at + span : at;
  return done;
}
