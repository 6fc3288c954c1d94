/* Which range encloses which, on each thread. */
#include <stdlib.h>
#include <string.h>

#include "arrow.h"
#include "walking.h"

/* Find the range that is open where each range starts. `last` has the last row of each thread so far (-1: none); the
 * parent of a row is the row below it on the stack of its thread. Without `order`, rows are walked as they come, and the
 * walk fails at a row that belongs before an earlier one. */
static int walk(const range_list *r, const place *order, int64_t *last, int64_t *parent, int32_t *depth) {
    memset(last, 0xff, (size_t)r->threads * sizeof *last);
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t row = order ? order[i].row : i, start = r->start[row];
        int64_t open = last[r->thread[row]];
        if (!order && open >= 0 && start <= r->start[open]
            && (start < r->start[open] || r->duration[row] > r->duration[open])) {
            return 0;
        }
        while (open >= 0 && (r->duration[open] <= 0 /* no sums, as they might overflow */
                             || (uint64_t)r->duration[open] <= (uint64_t)start - (uint64_t)r->start[open])) {
            open = depth[open] ? parent[open] : -1;
        }
        depth[row] = open < 0 ? 0 : depth[open] + 1;
        parent[row] = open < 0 ? 0 : open;
        last[r->thread[row]] = row;
    }
    return 1;
}

/* Parent (row of the enclosing range on the same thread; null at the top) and depth of ranges in any order. Threads are
 * numbers below `threads`. */
EXPORT int32_t ss_nest(struct ArrowArrayStream *thread, struct ArrowArrayStream *starts,
                       struct ArrowArrayStream *durations, int64_t rows, int64_t threads, struct ArrowArray *parents,
                       struct ArrowSchema *parent_schema, struct ArrowArray *depths, struct ArrowSchema *depth_schema) {
    struct ArrowArray held[3] = {0};
    range_list r = {take_column(thread, rows, held), take_column(starts, rows, held + 1),
                    take_column(durations, rows, held + 2), rows, threads};
    int64_t *parent = NULL, *last = NULL, nulls = 0;
    int32_t *depth = NULL, status = REFUSED;
    uint8_t *known = NULL;
    place *order = NULL;
    if (!r.thread || !r.start || !r.duration || rows < 1 || rows > INT32_MAX || threads < 1) goto fail;
    if (has_nulls(held) || has_nulls(held + 1) || has_nulls(held + 2)) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        if (r.thread[i] < 0 || r.thread[i] >= threads) goto fail;
    }
    status = NO_MEMORY;
    parent = malloc((size_t)rows * sizeof *parent);
    depth = malloc((size_t)rows * sizeof *depth);
    known = new_validity(rows);
    last = (uint64_t)threads < SIZE_MAX / sizeof *last ? malloc((size_t)threads * sizeof *last) : NULL;
    if (!parent || !depth || !known || !last) goto fail;
    if (!walk(&r, NULL, last, parent, depth)) {
        if (!(order = walking_order(&r))) goto fail;
        walk(&r, order, last, parent, depth);
    }
    for (int64_t i = 0; i < rows; i++) {
        if (depth[i]) set_valid(known, i);
        else nulls++;
    }
    release_columns(held, 3);
    free(last), free(order);
    if ((status = give_column(parents, rows, nulls, 2, (void *[]){known, parent}))) {
        free(depth);
        return status;
    }
    if ((status = give_column(depths, rows, 0, 2, (void *[]){NULL, depth}))) {
        parents->release(parents);
        return status;
    }
    describe(parent_schema, "l");
    describe(depth_schema, "i");
    return status;
fail:
    release_columns(held, 3);
    free(parent), free(depth), free(known), free(last), free(order);
    return status;
}

/* Time of each range that its direct children take, as far as they lie in it. Sums wrap around, as in Polars. */
EXPORT int32_t ss_inside(struct ArrowArrayStream *starts, struct ArrowArrayStream *durations,
                         struct ArrowArrayStream *parents, int64_t rows, struct ArrowArray *array,
                         struct ArrowSchema *schema) {
    struct ArrowArray held[3] = {0};
    const int64_t *start = take_column(starts, rows, held), *duration = take_column(durations, rows, held + 1);
    const int64_t *parent = take_column(parents, rows, held + 2);
    const uint8_t *known;
    uint64_t *spent = NULL;
    int32_t status = REFUSED;
    if (!start || !duration || !parent || rows < 1 || has_nulls(held) || has_nulls(held + 1)) goto fail;
    known = has_nulls(held + 2) ? held[2].buffers[0] : NULL;
    status = NO_MEMORY;
    if (!(spent = calloc((size_t)rows, sizeof *spent))) goto fail;
    status = REFUSED;
    for (int64_t i = 0, bit = held[2].offset; i < rows; i++, bit++) {
        int64_t outer = parent[i];
        if (known && !(known[bit >> 3] >> (bit & 7) & 1)) continue;
        if (outer < 0 || outer >= rows) goto fail;
        int64_t end = (int64_t)((uint64_t)start[i] + (uint64_t)duration[i]);
        int64_t outer_end = (int64_t)((uint64_t)start[outer] + (uint64_t)duration[outer]);
        spent[outer] += (uint64_t)(end < outer_end ? end : outer_end) - (uint64_t)start[i];
    }
    release_columns(held, 3);
    if (!(status = give_column(array, rows, 0, 2, (void *[]){NULL, spent}))) describe(schema, "l");
    return status;
fail:
    release_columns(held, 3);
    free(spent);
    return status;
}
