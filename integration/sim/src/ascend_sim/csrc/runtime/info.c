/* What the runtime says about itself: SoC, core counts, versions, options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define CANN_VERSION "8.5.0" /* the newest series whose features torch_npu 2.13 asks for and this runtime has */

/* Core counts of the SoC: public product data; 910B and 910_93 have one cube core and two vector cores per AI core. */
static int64_t cube_cores(void) {
    const char *soc = sim_soc();
    if (strstr(soc, "910B1") || strstr(soc, "910B2") || strstr(soc, "910_9391") || strstr(soc, "910_9392")) return 24;
    if (strstr(soc, "910B3") || strstr(soc, "910B4") || strstr(soc, "910_93")) return 20;
    if (strstr(soc, "310P")) return 8;
    if (strstr(soc, "950")) return 32;
    return 24;
}
static int64_t vector_cores(void) { return strstr(sim_soc(), "310P") ? 8 : 2 * cube_cores(); }

/* aclrtGetSocName. */
const char *aclrtGetSocName(void) { return sim_soc(); }

/* aclGetDeviceCapability: core counts and L2 size of a device. */
aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo info, int64_t *value) {
    (void)device;
    switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM: *value = cube_cores(); return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = vector_cores(); return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE: *value = (int64_t)192 << 20; return ACL_SUCCESS;
    default: return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "aclGetDeviceCapability: unknown item %d", (int)info);
    }
}

/* aclrtGetDeviceInfo: attributes of a device. */
aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t *value) {
    (void)device;
    switch ((int)attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = cube_cores(); return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = vector_cores(); return ACL_SUCCESS;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = 192 << 10; return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = (int64_t)sim_memory_limit(); return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = (int64_t)192 << 20; return ACL_SUCCESS;
    case ACL_DEV_ATTR_PHY_CHIP_ID: *value = (int64_t)device; return ACL_SUCCESS;
    case ACL_DEV_ATTR_IS_VIRTUAL: *value = 0; return ACL_SUCCESS;
    default: return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtGetDeviceInfo: attribute %d is not simulated", (int)attribute);
    }
}

/* aclrtGetDeviceResLimit, aclrtGetStreamResLimit, aclrtGetResInCurrentThread: cores a stream may use; never limited. */
static aclError limit(aclrtDevResLimitType type, uint32_t *value) {
    *value = (uint32_t)(type == ACL_RT_DEV_RES_CUBE_CORE ? cube_cores() : vector_cores());
    return ACL_SUCCESS;
}
aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t *value) {
    (void)device;
    return limit(type, value);
}
aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value) {
    (void)stream;
    return limit(type, value);
}
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) { return limit(type, value); }

/* aclrtDeviceGetUuid: an identifier per device of this host. */
aclError aclrtDeviceGetUuid(int32_t device, aclrtUuid *uuid) {
    memset(uuid, 0, sizeof *uuid);
    snprintf((char *)uuid, sizeof *uuid, "ascend-sim-%d", device);
    return ACL_SUCCESS;
}

/* aclrtDeviceGetBareTgid: the process id. */
aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    *pid = getpid();
    return ACL_SUCCESS;
}

/* aclsysGetVersionStr, aclsysGetCANNVersion. */
aclError aclsysGetVersionStr(char *package, char *version) {
    (void)package;
    strcpy(version, CANN_VERSION);
    return ACL_SUCCESS;
}
aclError aclsysGetCANNVersion(aclCANNPackageName package, aclCANNPackageVersion *version) {
    (void)package;
    memset(version, 0, sizeof *version);
    strcpy(version->version, CANN_VERSION);
    return ACL_SUCCESS;
}

/* aclrtPeekAtLastError, aclrtGetLastError: errors are returned by the call that fails, so none is left behind. */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    (void)level;
    return ACL_SUCCESS;
}
aclError aclrtGetLastError(aclrtLastErrLevel level) {
    (void)level;
    return ACL_SUCCESS;
}

/* aclAppLog: CANN's log; nothing is written. */
void aclAppLog(aclLogLevel level, const char *function, const char *file, uint32_t line, const char *format, ...) {
    (void)level, (void)function, (void)file, (void)line, (void)format;
}

/* Options that steer the hardware or the operator compiler; accepted without effect. */
aclError aclrtSetOpWaitTimeout(uint32_t seconds) {
    (void)seconds;
    return ACL_SUCCESS;
}
aclError aclrtSetOpExecuteTimeOut(uint32_t seconds) {
    (void)seconds;
    return ACL_SUCCESS;
}
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    (void)mode;
    return ACL_SUCCESS;
}
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
    (void)option, (void)value;
    return ACL_SUCCESS;
}
aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
    (void)option, (void)value;
    return ACL_SUCCESS;
}
aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t *value) {
    (void)option;
    *value = 0;
    return ACL_SUCCESS;
}

/* aclSetCompileopt, aclGetCompileopt, aclGetCompileoptSize: operator compiler options (acl_op_compiler.h). */
aclError aclSetCompileopt(int option, const char *value) {
    (void)option, (void)value;
    return ACL_SUCCESS;
}
aclError aclGetCompileopt(int option, char *value, size_t length) {
    (void)option;
    if (length) value[0] = 0;
    return ACL_SUCCESS;
}
size_t aclGetCompileoptSize(int option) {
    (void)option;
    return 8;
}

/* HcclSetConfig (hccl.h): options of collectives; they do not run on HCCL here. */
int HcclSetConfig(int config, const void *value) {
    (void)config, (void)value;
    return 0;
}
