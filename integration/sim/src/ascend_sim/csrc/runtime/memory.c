/* Device and pinned host memory. Each block carries a header with its size and device, so that freeing it returns
 * exactly what allocating it took; the cap of a device is ASCEND_SIM_MEMORY. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

#define ALIGNMENT 512 /* the runtime's allocation granularity */
#define MAGIC 0x5349414dU

typedef struct {
    uint32_t magic;
    int device;
    size_t size;
} block_header;

static atomic_size_t used[SIM_MAX_DEVICES];

uint64_t sim_memory_used(int device) { return used[device]; }

static aclError take(int device, size_t size) {
    size_t before = atomic_fetch_add(&used[device], size);
    if (before + size <= sim_memory_limit()) return ACL_SUCCESS;
    atomic_fetch_sub(&used[device], size);
    return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                    "device %d is out of memory: %zu bytes asked, %zu of %llu in use (ASCEND_SIM_MEMORY)", device, size,
                    before, (unsigned long long)sim_memory_limit());
}

static size_t rounded(size_t size) { return (size ? size + ALIGNMENT - 1 : ALIGNMENT) / ALIGNMENT * ALIGNMENT; }

static aclError allocate(void **pointer, size_t size) {
    size = rounded(size);
    int device = sim_current_device();
    aclError error = take(device, size);
    if (error) return error;
    char *base = NULL;
    if (posix_memalign((void **)&base, ALIGNMENT, size + ALIGNMENT)) {
        atomic_fetch_sub(&used[device], size);
        return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host is out of memory: %zu bytes asked", size);
    }
    *(block_header *)base = (block_header){MAGIC, device, size};
    *pointer = base + ALIGNMENT;
    sim_block_add(*pointer, size, false);
    return ACL_SUCCESS;
}

/* aclrtMalloc, aclrtMallocAlign32, aclrtMallocWithCfg: device memory of the current device, 512-byte aligned. Allowed
 * inside a capture, where torch_npu's allocator grows the graph's pool with it. */
aclError aclrtMalloc(void **pointer, size_t size, aclrtMemMallocPolicy policy) {
    (void)policy;
    return allocate(pointer, size);
}
aclError aclrtMallocAlign32(void **pointer, size_t size, aclrtMemMallocPolicy policy) {
    return aclrtMalloc(pointer, size, policy);
}
aclError aclrtMallocWithCfg(void **pointer, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *config) {
    (void)config;
    return aclrtMalloc(pointer, size, policy);
}

/* Memory that queued work refers to must not go away before it has run. */
static void finish_work(void) {
    if (!sim_random) return;
    pthread_mutex_lock(&sim_lock);
    sim_finish();
    pthread_mutex_unlock(&sim_lock);
}

/* aclrtFree: returns a block of aclrtMalloc. */
aclError aclrtFree(void *pointer) {
    if (!pointer) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtFree of a null pointer");
    block_header *header = (block_header *)((char *)pointer - ALIGNMENT);
    if (header->magic != MAGIC) return sim_fail(ACL_ERROR_RT_MEMORY_FREE, "aclrtFree of %p, which is no device memory", pointer);
    finish_work();
    sim_block_remove(pointer);
    header->magic = 0;
    atomic_fetch_sub(&used[header->device], header->size);
    free(header);
    return ACL_SUCCESS;
}

/* aclrtMallocHost(WithCfg) / aclrtFreeHost: pinned host memory; it does not count against the device. */
aclError aclrtMallocHost(void **pointer, size_t size) {
    if (posix_memalign(pointer, ALIGNMENT, rounded(size)))
        return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host is out of memory: %zu bytes asked", size);
    sim_block_add(*pointer, rounded(size), true);
    return ACL_SUCCESS;
}
aclError aclrtMallocHostWithCfg(void **pointer, uint64_t size, aclrtMallocConfig *config) {
    (void)config;
    return aclrtMallocHost(pointer, size);
}
aclError aclrtFreeHost(void *pointer) {
    finish_work();
    sim_block_remove(pointer);
    free(pointer);
    return ACL_SUCCESS;
}

/* aclrtGetMemInfo: free and total bytes of the current device. */
aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free_bytes, size_t *total_bytes) {
    (void)attribute;
    size_t in_use = used[sim_current_device()], limit = sim_memory_limit();
    *total_bytes = limit;
    *free_bytes = in_use < limit ? limit - in_use : 0;
    return ACL_SUCCESS;
}

/* ---- virtual memory (expandable segments): address ranges are reserved without being charged, physical handles are
 * charged, mapping makes the range usable ---- */

typedef struct reservation {
    char *base;
    size_t size;
    struct reservation *next;
} reservation;

typedef struct {
    int device;
    size_t size;
} physical;

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static reservation *ranges;

/* aclrtReserveMemAddress: a range of addresses, without memory behind it. */
aclError aclrtReserveMemAddress(void **pointer, size_t size, size_t alignment, void *expected, uint64_t flags) {
    (void)alignment, (void)expected, (void)flags;
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "cannot reserve %zu bytes of addresses", size);
    reservation *range = malloc(sizeof *range);
    pthread_mutex_lock(&ranges_lock);
    *range = (reservation){base, size, ranges};
    ranges = range;
    pthread_mutex_unlock(&ranges_lock);
    sim_block_add(base, size, false);
    *pointer = base;
    return ACL_SUCCESS;
}

/* aclrtReleaseMemAddress: gives a range of aclrtReserveMemAddress back. */
aclError aclrtReleaseMemAddress(void *pointer) {
    pthread_mutex_lock(&ranges_lock);
    reservation **link = &ranges;
    while (*link && (*link)->base != pointer) link = &(*link)->next;
    reservation *range = *link;
    if (range) *link = range->next;
    pthread_mutex_unlock(&ranges_lock);
    if (!range) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p was not reserved", pointer);
    finish_work();
    sim_block_remove(range->base);
    munmap(range->base, range->size);
    free(range);
    return ACL_SUCCESS;
}

/* aclrtMallocPhysical / aclrtFreePhysical: memory without an address; this is what the cap counts. */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size, const aclrtPhysicalMemProp *properties, uint64_t flags) {
    (void)flags;
    int device = properties ? (int)properties->location.id : sim_current_device();
    aclError error = take(device, size);
    if (error) return error;
    physical *memory = malloc(sizeof *memory);
    *memory = (physical){device, size};
    *handle = memory;
    return ACL_SUCCESS;
}
aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
    physical *memory = handle;
    atomic_fetch_sub(&used[memory->device], memory->size);
    free(memory);
    return ACL_SUCCESS;
}

/* aclrtMapMem / aclrtUnmapMem: put physical memory behind a range and take it away again. */
aclError aclrtMapMem(void *pointer, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t flags) {
    (void)offset, (void)handle, (void)flags;
    if (mprotect(pointer, size, PROT_READ | PROT_WRITE))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "cannot map %zu bytes at %p: not a reserved range", size, pointer);
    return ACL_SUCCESS;
}
aclError aclrtUnmapMem(void *pointer) {
    /* The call names no size: the allocator unmaps one granule (the size it mapped) at a time, and the pages of the
     * whole range go when it is released. Their contents are undefined from here on, which keeping them satisfies. */
    (void)pointer;
    return ACL_SUCCESS;
}

/* aclrtMemSetAccess: access of other devices to a mapped range; all of them have it. */
aclError aclrtMemSetAccess(void *pointer, size_t size, aclrtMemAccessDesc *description, size_t count) {
    (void)pointer, (void)size, (void)description, (void)count;
    return ACL_SUCCESS;
}

/* aclrtMemGetAllocationGranularity: unit of physical allocations. */
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *properties, aclrtMemGranularityOptions option, size_t *granularity) {
    (void)properties, (void)option;
    *granularity = 2 << 20;
    return ACL_SUCCESS;
}

/* aclrtPointerGetAttributes: where a pointer lives. Host and device memory are the same here, so only blocks of the
 * virtual-memory interface can be told apart; others report device memory of the current device. */
aclError aclrtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes) {
    (void)pointer;
    memset(attributes, 0, sizeof *attributes);
    attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attributes->location.id = (uint32_t)sim_current_device();
    return ACL_SUCCESS;
}
