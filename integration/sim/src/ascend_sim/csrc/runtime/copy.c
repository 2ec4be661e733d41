/* Copies and fills through the ACL interface. Operators copy through the dispatch library; these serve torch_npu's own
 * transfers. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

typedef struct {
    void *destination;
    const void *source; /* NULL: fill */
    size_t size;
    int value;
} transfer;

static const char *name_of(const transfer *work) { return work->source ? "aclrtMemcpyAsync" : "aclrtMemsetAsync"; }

static aclError use(const void *address, size_t size, int writes, const char *name) {
    const int64_t sizes = (int64_t)size, strides = 1;
    const sim_access access = {address, 1, &sizes, &strides, 1, "uint8", address, size, writes, false};
    return sim_memory_use(&access, name);
}

/* For the check: what a copy or fill uses; by the work this thread does, or by the host itself. */
static aclError check_uses(const transfer *work, const char *name) {
    aclError error = work->source ? use(work->source, work->size, false, name) : ACL_SUCCESS;
    return error ? error : use(work->destination, work->size, true, name);
}
static aclError check_host_uses(const transfer *work, const char *name) {
    if (!sim_checking) return ACL_SUCCESS;
    pthread_mutex_lock(&sim_lock);
    sim_place before = sim_here();
    sim_order_return((sim_place){SIM_HOST, 0, 0});
    aclError error = check_uses(work, name);
    sim_order_return(before);
    pthread_mutex_unlock(&sim_lock);
    return error;
}

static int run(void *context) {
    const transfer *work = context;
    if (sim_checking) {
        pthread_mutex_lock(&sim_lock);
        aclError error = check_uses(work, name_of(work));
        pthread_mutex_unlock(&sim_lock);
        if (error) return error;
    }
    if (work->source) memmove(work->destination, work->source, work->size);
    else memset(work->destination, work->value, work->size);
    return ACL_SUCCESS;
}

static aclError submit(aclrtStream stream, transfer request) {
    sim_counts.copies++;
    int64_t begin = sim_trace_begin();
    bool runs = !sim_attention();
    aclError error = ACL_SUCCESS;
    if (runs) {
        error = run(&request);
    } else if (sim_stream_mode(stream) == SIM_RUNS) {
        runs = true;
        sim_place before = sim_checking ? sim_order_enter(stream) : sim_here();
        error = run(&request);
        sim_order_return(before);
    }
    if (runs) {
        if (begin) {
            pthread_mutex_lock(&sim_lock);
            sim_trace_end(sim_stream_of(stream), (sim_trace_event){.kind = SIM_TRACE_COPY, .name = name_of(&request), .bytes = request.size,
                                                                            .begin_ns = begin});
            pthread_mutex_unlock(&sim_lock);
        }
        return error;
    }
    transfer *context = malloc(sizeof *context);
    *context = request;
    return sim_submit(stream, (sim_work){name_of(&request), run, free, context, false});
}

static aclError check(size_t capacity, size_t size, const char *call) {
    return size <= capacity ? ACL_SUCCESS
                            : sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes into a destination of %zu", call, size, capacity);
}

/* aclrtMemcpy: at once; not permitted while a stream is capturing. */
aclError aclrtMemcpy(void *destination, size_t capacity, const void *source, size_t size, aclrtMemcpyKind kind) {
    (void)kind;
    if (sim_capture_forbids())
        return sim_fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "a synchronous copy is not permitted while a stream is capturing");
    aclError error = check(capacity, size, "aclrtMemcpy");
    sim_counts.copies++;
    if (!error) error = check_host_uses(&(transfer){destination, source, size, 0}, "aclrtMemcpy");
    if (!error) memmove(destination, source, size);
    return error;
}

/* aclrtMemcpyAsync: in stream order. */
aclError aclrtMemcpyAsync(void *destination, size_t capacity, const void *source, size_t size, aclrtMemcpyKind kind, aclrtStream stream) {
    aclError error = check(capacity, size, "aclrtMemcpyAsync");
    const void *host = kind == ACL_MEMCPY_HOST_TO_DEVICE ? source : kind == ACL_MEMCPY_DEVICE_TO_HOST ? destination : NULL;
    if (host && sim_attention() && sim_stream_mode(stream) == SIM_CAPTURES && !sim_is_pinned(host))
        return sim_fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                        "a copy of pageable host memory is not permitted while the stream is capturing; pin the memory");
    return error ? error : submit(stream, (transfer){destination, source, size, 0});
}

/* aclrtMemset / aclrtMemsetAsync; the former, like aclrtMemcpy and copies of pageable memory, is not permitted while a
 * stream is capturing (CANN, aclmdlRICaptureBegin). */
aclError aclrtMemset(void *destination, size_t capacity, int32_t value, size_t size) {
    if (sim_capture_forbids())
        return sim_fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "aclrtMemset is not permitted while a stream is capturing");
    aclError error = check(capacity, size, "aclrtMemset");
    if (!error) error = check_host_uses(&(transfer){destination, NULL, size, value}, "aclrtMemset");
    if (!error) memset(destination, value, size);
    return error;
}
aclError aclrtMemsetAsync(void *destination, size_t capacity, int32_t value, size_t size, aclrtStream stream) {
    aclError error = check(capacity, size, "aclrtMemsetAsync");
    return error ? error : submit(stream, (transfer){destination, NULL, size, value});
}

/* ---- host callbacks ---- */

typedef struct {
    void (*function)(void *);
    void *argument;
} callback;

static int call(void *context) {
    callback *request = context;
    request->function(request->argument);
    return ACL_SUCCESS;
}

static aclError launch(void (*function)(void *), void *argument, aclrtStream stream) {
    callback *context = malloc(sizeof *context);
    *context = (callback){function, argument};
    return sim_submit(stream, (sim_work){"host function", call, free, context, false});
}

/* aclrtLaunchCallback, aclrtLaunchHostFunc: a host function in stream order, here in the thread that runs the stream. */
aclError aclrtLaunchCallback(aclrtCallback function, void *argument, aclrtCallbackBlockType block, aclrtStream stream) {
    (void)block;
    return launch(function, argument, stream);
}
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *argument) {
    return launch(function, argument, stream);
}

/* aclrtSubscribeReport, aclrtUnSubscribeReport: callbacks need no thread that waits for them. */
aclError aclrtSubscribeReport(uint64_t thread, aclrtStream stream) {
    (void)thread, (void)stream;
    return ACL_SUCCESS;
}
aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream stream) {
    (void)thread, (void)stream;
    return ACL_SUCCESS;
}

/* aclrtProcessReport: where such a thread would wait for callbacks; it sleeps instead, at most a second. */
aclError aclrtProcessReport(int32_t timeout_ms) {
    int32_t sleep_ms = timeout_ms < 0 || timeout_ms > 1000 ? 1000 : timeout_ms;
    struct timespec time = {sleep_ms / 1000, (long)(sleep_ms % 1000) * 1000000L};
    nanosleep(&time, NULL);
    return ACL_SUCCESS;
}
