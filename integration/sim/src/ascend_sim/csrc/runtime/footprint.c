/* Which bytes a strided tensor covers, and whether two tensors have bytes in common. */
#include "order.h"

sim_footprint sim_footprint_of(const sim_access *access) {
    sim_footprint result = {.start = (uintptr_t)access->address, .run = access->item_size};
    int order[SIM_FOOTPRINT_DIMS], count = 0;
    for (int i = 0; i < access->dims && count < SIM_FOOTPRINT_DIMS; i++) {
        if (access->sizes[i] == 0) return (sim_footprint){0};
        if (access->sizes[i] == 1 || access->strides[i] == 0) continue; /* one element, or the same one repeated */
        int at = count++;
        for (; at > 0 && access->strides[order[at - 1]] > access->strides[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    result.end = result.start + result.run;
    for (int i = 0; i < count; i++) {
        size_t size = (size_t)access->sizes[order[i]], stride = (size_t)access->strides[order[i]] * access->item_size;
        result.end += (size - 1) * stride;
        if (result.dims == 0 && stride <= result.run) {
            result.run += (size - 1) * stride; /* adjoining or overlapping pieces are one piece */
        } else if (result.dims && result.dim[result.dims - 1].count * result.dim[result.dims - 1].stride == stride) {
            result.dim[result.dims - 1].count *= size;
        } else {
            result.dim[result.dims].count = size;
            result.dim[result.dims++].stride = stride;
        }
    }
    return result;
}

static bool bounds_meet(const sim_footprint *a, const sim_footprint *b) { return a->start < b->end && b->start < a->end; }

/* Whether one of the pieces of a footprint of at most one dimension meets the bytes from `start` to `end`. */
static bool piece_meets(const sim_footprint *a, uintptr_t start, uintptr_t end) {
    if (a->end <= start || end <= a->start) return false;
    if (a->dims == 0) return true;
    size_t stride = a->dim[0].stride, piece = 0;
    if (start >= a->start + a->run) piece = (start - a->run - a->start) / stride + 1; /* first that ends behind start */
    return piece < a->dim[0].count && a->start + piece * stride < end;
}

bool sim_footprints_meet(const sim_footprint *a, const sim_footprint *b) {
    if (!bounds_meet(a, b)) return false;
    if (a->dims == 0 && b->dims == 0) return true;
    if (a->dims < b->dims || (a->dims == b->dims && a->dims && a->dim[a->dims - 1].count > b->dim[b->dims - 1].count)) {
        const sim_footprint *other = a;
        a = b, b = other;
    }
    if (b->dims == 0 && a->dims == 1) return piece_meets(a, b->start, b->end);
    if (a->dims == 1) { /* and so is b */
        for (size_t i = 0; i < a->dim[0].count; i++) {
            uintptr_t start = a->start + i * a->dim[0].stride;
            if (piece_meets(b, start, start + a->run)) return true;
        }
        return false;
    }
    sim_footprint slice = *a; /* slice by slice along the outermost dimension */
    slice.dims--;
    size_t count = a->dim[slice.dims].count, stride = a->dim[slice.dims].stride;
    slice.end = a->end - (count - 1) * stride;
    for (size_t i = 0; i < count; i++, slice.start += stride, slice.end += stride)
        if (sim_footprints_meet(&slice, b)) return true;
    return false;
}

static bool equal(const sim_footprint *a, const sim_footprint *b) {
    if (a->start != b->start || a->run != b->run || a->dims != b->dims) return false;
    for (int i = 0; i < a->dims; i++)
        if (a->dim[i].count != b->dim[i].count || a->dim[i].stride != b->dim[i].stride) return false;
    return true;
}

/* Exact for dense `a`, for equal footprints and for rows of one stride; false where it would take more to find out. */
bool sim_footprint_covers(const sim_footprint *a, const sim_footprint *b) {
    if (b->start < a->start || b->end > a->end) return false;
    if (a->dims == 0 || equal(a, b)) return true;
    if (a->dims != 1 || b->dims > 1 || (b->dims == 1 && b->dim[0].stride != a->dim[0].stride)) return false;
    size_t offset = b->start - a->start, stride = a->dim[0].stride;
    size_t rows = b->dims ? b->dim[0].count : 1;
    return offset % stride + b->run <= a->run && offset / stride + rows <= a->dim[0].count;
}
