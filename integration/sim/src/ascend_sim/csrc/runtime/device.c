/* Devices and contexts: each thread has a current device; a context is the device's only (primary) one. */
#include <string.h>

#include "sim.h"

static __thread int current = -1; /* -1: the thread has chosen no device yet */
static char contexts[SIM_MAX_DEVICES];
static atomic_bool active[SIM_MAX_DEVICES];

int sim_current_device(void) { return current < 0 ? 0 : current; }

static aclError check(int32_t device) {
    if (device >= 0 && device < sim_device_count()) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "device %d does not exist: %d simulated device(s), see ASCEND_SIM_DEVICES",
                    device, sim_device_count());
}

/* aclInit / aclFinalize: start and end of the runtime. */
aclError aclInit(const char *config_path) {
    (void)config_path;
    return ACL_SUCCESS;
}
aclError aclFinalize(void) { return ACL_SUCCESS; }

/* aclrtGetDeviceCount: number of simulated devices. */
aclError aclrtGetDeviceCount(uint32_t *count) {
    *count = (uint32_t)sim_device_count();
    return ACL_SUCCESS;
}

/* aclrtSetDevice: selects the thread's device and activates its primary context. */
aclError aclrtSetDevice(int32_t device) {
    aclError error = check(device);
    if (error) return error;
    current = device;
    active[device] = true;
    return ACL_SUCCESS;
}

/* aclrtGetDevice: the thread's device; an error if it has chosen none, as CANN does. */
aclError aclrtGetDevice(int32_t *device) {
    *device = sim_current_device();
    return current < 0 ? ACL_ERROR_RT_CONTEXT_NULL : ACL_SUCCESS;
}

/* aclrtResetDevice: releases the device in this process. */
aclError aclrtResetDevice(int32_t device) {
    aclError error = check(device);
    if (!error) active[device] = false;
    return error;
}

/* aclrtGetCurrentContext / aclrtSetCurrentContext. */
aclError aclrtGetCurrentContext(aclrtContext *context) {
    if (current < 0) return ACL_ERROR_RT_CONTEXT_NULL;
    *context = &contexts[current];
    return ACL_SUCCESS;
}
aclError aclrtSetCurrentContext(aclrtContext context) {
    ptrdiff_t device = (char *)context - contexts;
    if (device < 0 || device >= SIM_MAX_DEVICES) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "not a context: %p", context);
    return aclrtSetDevice((int32_t)device);
}

/* aclrtGetPrimaryCtxState: whether the device's context is in use in this process. */
aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *is_active) {
    aclError error = check(device);
    if (error) return error;
    if (flags) *flags = 0;
    if (is_active) *is_active = active[device];
    return ACL_SUCCESS;
}

/* aclrtDeviceCanAccessPeer / aclrtDeviceEnablePeerAccess: all simulated devices share the host's memory. */
aclError aclrtDeviceCanAccessPeer(int32_t *can_access, int32_t device, int32_t peer) {
    aclError error = check(device);
    if (!error) error = check(peer);
    if (!error) *can_access = 1;
    return error;
}
aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
    (void)flags;
    return check(peer);
}
