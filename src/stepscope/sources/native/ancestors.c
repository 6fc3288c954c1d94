/* Ancestors of ranges, along their parents as `nesting.c` finds them. */
#include <stdlib.h>
#include <string.h>

#include "arrow.h"
#include "walking.h"

#define UNKNOWN (-2)

/* The parent of each row, NO_ROW at the top; null if one is no row, or there is no memory. */
static int64_t *checked_parents(const int64_t *parent, const struct ArrowArray *held, int64_t rows) {
    int64_t *checked = malloc((size_t)rows * sizeof *checked);
    for (int64_t i = 0; checked && i < rows; i++) {
        checked[i] = is_known(held, i) ? parent[i] : NO_ROW;
        if (checked[i] < NO_ROW || checked[i] >= rows || (checked[i] == NO_ROW && is_known(held, i))) {
            free(checked);
            return NULL;
        }
    }
    return checked;
}

/* The nearest wanted row to each of `rows` (or null): itself or an ancestor; null if there is none. Refused if parents go
 * in a circle. */
EXPORT int32_t ss_climb(struct ArrowArrayStream *rows, int64_t count, struct ArrowArrayStream *parents, int64_t ranges,
                        struct ArrowArrayStream *wanted, int64_t wishes, struct ArrowArray *array,
                        struct ArrowSchema *schema) {
    struct ArrowArray held[3] = {0};
    const int64_t *from = take_column(rows, count, held), *above = take_column(parents, ranges, held + 1);
    const int64_t *wish = take_column(wanted, wishes, held + 2);
    int64_t *parent = NULL, *nearest = NULL, *found = NULL;
    int32_t status = REFUSED;
    if (!from || !above || !wish || count < 1 || ranges < 1 || wishes < 1 || has_nulls(held + 2)) goto done;
    if (!(parent = checked_parents(above, held + 1, ranges))) goto done;
    status = NO_MEMORY;
    nearest = malloc((size_t)ranges * sizeof *nearest);
    found = malloc((size_t)count * sizeof *found);
    if (!nearest || !found) goto done;
    status = REFUSED;
    for (int64_t i = 0; i < ranges; i++) nearest[i] = UNKNOWN;
    for (int64_t i = 0; i < wishes; i++) {
        if (wish[i] < 0 || wish[i] >= ranges) goto done;
        nearest[wish[i]] = wish[i];
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t row = from[i], steps = 0, answer;
        if (!is_known(held, i)) {
            found[i] = NO_ROW;
            continue;
        }
        if (row < 0 || row >= ranges) goto done;
        while (row != NO_ROW && nearest[row] == UNKNOWN) {
            if (++steps > ranges) goto done;
            row = parent[row];
        }
        found[i] = answer = row == NO_ROW ? NO_ROW : nearest[row];
        for (row = from[i]; steps--; row = parent[row]) nearest[row] = answer; /* each row is passed once */
    }
    status = give_rows(array, schema, found, count);
    found = NULL;
done:
    release_columns(held, 3);
    free(parent), free(nearest), free(found);
    return status;
}

/* Moments on threads. */
typedef struct {
    const int64_t *thread, *time;
    int64_t count;
} moment_list;

/* For each moment the last of the ranges that started before it on its thread, or then, in walking order; NO_ROW if there
 * is none. */
static int find_last(const range_list *r, const moment_list *m, int64_t *found) {
    place *order = walking_order(r), *moments = malloc((size_t)m->count * sizeof *moments);
    place *spare = malloc((size_t)m->count * sizeof *spare);
    int64_t *last = (uint64_t)r->threads < SIZE_MAX / sizeof *last ? malloc((size_t)r->threads * sizeof *last) : NULL;
    int has_room = order && moments && spare && last;
    if (has_room) {
        memset(last, 0xff, (size_t)r->threads * sizeof *last);
        for (int64_t i = 0; i < m->count; i++) moments[i] = (place){time_key(m->time[i]), i};
        sort_places(moments, spare, m->count);
        for (int64_t i = 0, next = 0; i < m->count; i++) {
            int64_t row = moments[i].row;
            for (; next < r->rows && r->start[order[next].row] <= m->time[row]; next++) {
                last[r->thread[order[next].row]] = order[next].row;
            }
            found[row] = last[m->thread[row]];
        }
    }
    free(order), free(moments), free(spare), free(last);
    return has_room;
}

/* The innermost of the first `wanted` ranges that is running at each moment on its thread; null if there is none. Threads
 * are numbers below `threads`. */
EXPORT int32_t ss_running(struct ArrowArrayStream *threads_of, struct ArrowArrayStream *starts,
                          struct ArrowArrayStream *durations, struct ArrowArrayStream *parents, int64_t rows,
                          int64_t wanted, struct ArrowArrayStream *moment_threads, struct ArrowArrayStream *times,
                          int64_t count, int64_t threads, struct ArrowArray *array, struct ArrowSchema *schema) {
    struct ArrowArray held[6] = {0};
    range_list r = {take_column(threads_of, rows, held), take_column(starts, rows, held + 1),
                    take_column(durations, rows, held + 2), wanted, threads};
    const int64_t *above = take_column(parents, rows, held + 3);
    moment_list m = {take_column(moment_threads, count, held + 4), take_column(times, count, held + 5), count};
    int64_t *parent = NULL, *found = NULL;
    int32_t status = REFUSED;
    if (!r.thread || !r.start || !r.duration || !above || !m.thread || !m.time || threads < 1) goto done;
    if (rows < 1 || wanted < 1 || wanted > rows || count < 1) goto done;
    for (int i = 0; i < 6; i++) {
        if (i != 3 && has_nulls(held + i)) goto done;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (r.thread[i] < 0 || r.thread[i] >= threads) goto done;
    }
    for (int64_t i = 0; i < count; i++) {
        if (m.thread[i] < 0 || m.thread[i] >= threads) goto done;
    }
    if (!(parent = checked_parents(above, held + 3, rows))) goto done;
    status = NO_MEMORY;
    if (!(found = malloc((size_t)count * sizeof *found)) || !find_last(&r, &m, found)) goto done;
    status = REFUSED;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = found[i], steps = 0;
        for (; row != NO_ROW; row = parent[row]) { /* ends wrap around, as in Polars */
            if (row < wanted && (int64_t)((uint64_t)r.start[row] + (uint64_t)r.duration[row]) >= m.time[i]) break;
            if (++steps > rows) goto done;
        }
        found[i] = row;
    }
    status = give_rows(array, schema, found, count);
    found = NULL;
done:
    release_columns(held, 6);
    free(parent), free(found);
    return status;
}
