/* Lanes of ranges that overlap: `timeline/lanes.py` says what they are and does the same in Python. */
#include <stdlib.h>

#include "arrow.h"

/* Lanes that a caller may name: more are left to Python. */
#define MOST_LANES (1 << 16)

/* Ends of the ranges that are open on a lane, the innermost last. */
typedef struct {
    int64_t *ends, count, room;
} lane;

typedef struct {
    lane *each;
    int64_t count, room;
} lanes;

/* The lane of a number, made if it is the next one; null if there is no memory. */
static lane *lane_of(lanes *l, int64_t number) {
    if (number == l->count) {
        if (l->count == l->room) {
            int64_t room = 2 * l->room + 8;
            lane *more = realloc(l->each, (size_t)room * sizeof *more);
            if (!more) return NULL;
            l->each = more;
            l->room = room;
        }
        l->each[l->count++] = (lane){0};
    }
    return l->each + number;
}

static int open_range(lane *at, int64_t end) {
    if (at->count == at->room) {
        int64_t room = 2 * at->room + 8, *more = realloc(at->ends, (size_t)room * sizeof *more);
        if (!more) return 0;
        at->ends = more;
        at->room = room;
    }
    at->ends[at->count++] = end;
    return 1;
}

/* The first lane with room for a range, or the given one (below 0: none is given); below 0 without memory. */
static int64_t place_range(lanes *l, int64_t start, int64_t end, int64_t given, int64_t most_deep) {
    for (int64_t number = 0;; number++) {
        lane *at = lane_of(l, number);
        if (!at) return -1;
        while (at->count && at->ends[at->count - 1] <= start) at->count--;
        if (given >= 0 ? given == number : at->count < most_deep && (!at->count || at->ends[at->count - 1] >= end)) {
            return open_range(at, end) ? number : -1;
        }
    }
}

/* The lane of each range, in order of group (each on lanes of its own), start and length. A row whose `given` is below 0
 * gets the first lane with room. */
EXPORT int32_t ss_lanes(struct ArrowArrayStream *groups, struct ArrowArrayStream *starts, struct ArrowArrayStream *ends,
                        struct ArrowArrayStream *given, int64_t rows, int64_t most_deep, struct ArrowArray *array,
                        struct ArrowSchema *schema) {
    struct ArrowArray held[4] = {0};
    const int64_t *group = take_column(groups, rows, held), *start = take_column(starts, rows, held + 1);
    const int64_t *end = take_column(ends, rows, held + 2), *wanted = take_column(given, rows, held + 3);
    int64_t *found = NULL, made = 0;
    lanes all = {0};
    int32_t status = REFUSED;
    if (!group || !start || !end || !wanted || rows < 1) goto done;
    for (int i = 0; i < 4; i++) {
        if (has_nulls(held + i)) goto done;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (wanted[i] >= MOST_LANES) goto done;
    }
    status = NO_MEMORY;
    if (!(found = malloc((size_t)rows * sizeof *found))) goto done;
    for (; made < rows; made++) {
        if (made && group[made] != group[made - 1]) {
            for (int64_t i = 0; i < all.count; i++) all.each[i].count = 0;
        }
        if ((found[made] = place_range(&all, start[made], end[made], wanted[made], most_deep)) < 0) goto done;
    }
    status = 0;
done:
    release_columns(held, 4);
    for (int64_t i = 0; i < all.count; i++) free(all.each[i].ends);
    free(all.each);
    if (status) {
        free(found);
        return status;
    }
    if (!(status = give_column(array, rows, 0, 2, (void *[]){NULL, found}))) describe(schema, "l");
    return status;
}
