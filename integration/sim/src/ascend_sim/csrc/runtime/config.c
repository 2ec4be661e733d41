/* Settings of the simulated runtime and the error text that aclGetRecentErrMsg returns. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static char soc_name[64] = "Ascend910B1";
static int device_count = 2;
static uint64_t memory_limit = (uint64_t)8 << 30;
static double event_timeout = 5.0;
static bool tracing;

static __thread char message[1024];

void sim_configure(const char *soc, int devices, uint64_t memory_bytes, double event_timeout_s, int trace) {
    snprintf(soc_name, sizeof soc_name, "%s", soc);
    device_count = devices;
    memory_limit = memory_bytes;
    event_timeout = event_timeout_s;
    tracing = trace != 0;
}

const char *sim_soc(void) { return soc_name; }
int sim_device_count(void) { return device_count; }
uint64_t sim_memory_limit(void) { return memory_limit; }
double sim_event_timeout_s(void) { return event_timeout; }

void sim_trace(const char *format, ...) {
    if (!tracing) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("[ascend_sim] ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

aclError sim_fail(aclError code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sim_trace("error %d: %s", code, message);
    return code;
}

/* Generated stubs call this. Exported under its own name. */
long sim_unimplemented(const char *symbol) {
    sim_trace("unimplemented CANN call %s", symbol);
    return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the simulated runtime does not implement %s", symbol);
}

void sim_report(const char *text) { snprintf(message, sizeof message, "%s", text); }
const char *sim_message(void) { return message; }

/* aclGetRecentErrMsg: text of the calling thread's last error. */
const char *aclGetRecentErrMsg(void) { return message; }
