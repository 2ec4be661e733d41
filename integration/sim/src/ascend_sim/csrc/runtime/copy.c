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

static void perform(const transfer *work) {
    if (work->source) memmove(work->destination, work->source, work->size);
    else memset(work->destination, work->value, work->size);
}
static int run(void *context) {
    perform(context);
    return ACL_SUCCESS;
}

static aclError submit(aclrtStream stream, transfer request, const char *name) {
    sim_counts.copies++;
    if (!sim_attention() || sim_stream_mode(stream) == SIM_RUNS) {
        perform(&request);
        return ACL_SUCCESS;
    }
    transfer *context = malloc(sizeof *context);
    *context = request;
    return sim_submit(stream, (sim_work){name, run, free, context});
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
    if (!error) memmove(destination, source, size);
    return error;
}

/* aclrtMemcpyAsync: in stream order. */
aclError aclrtMemcpyAsync(void *destination, size_t capacity, const void *source, size_t size, aclrtMemcpyKind kind, aclrtStream stream) {
    (void)kind;
    aclError error = check(capacity, size, "aclrtMemcpyAsync");
    return error ? error : submit(stream, (transfer){destination, source, size, 0}, "aclrtMemcpyAsync");
}

/* aclrtMemset / aclrtMemsetAsync. */
aclError aclrtMemset(void *destination, size_t capacity, int32_t value, size_t size) {
    aclError error = check(capacity, size, "aclrtMemset");
    if (!error) memset(destination, value, size);
    return error;
}
aclError aclrtMemsetAsync(void *destination, size_t capacity, int32_t value, size_t size, aclrtStream stream) {
    aclError error = check(capacity, size, "aclrtMemsetAsync");
    return error ? error : submit(stream, (transfer){destination, NULL, size, value}, "aclrtMemsetAsync");
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
    return sim_submit(stream, (sim_work){"host function", call, free, context});
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
