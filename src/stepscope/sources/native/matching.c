/* Which row of another column belongs to each value: the one with the same key, or the one that holds the time. */
#include <stdlib.h>
#include <string.h>

#include "arrow.h"

#define NEXT_TRIED 8
#define SPREAD 0x9e3779b97f4a7c15ull

/* Keys that rise by one, as ids do, lie side by side; others are spread. */
static uint64_t slot_of(int64_t key, int bits) {
    return ((uint64_t)key + ((uint64_t)key >> bits) * SPREAD) & ((1ull << bits) - 1);
}

/* The first of `among` with each key; null for null and if there is none. */
EXPORT int32_t ss_match(struct ArrowArrayStream *keys, int64_t count, struct ArrowArrayStream *among, int64_t others,
                        struct ArrowArray *array, struct ArrowSchema *schema) {
    struct ArrowArray held[2] = {0};
    const int64_t *key = take_column(keys, count, held), *other = take_column(among, others, held + 1);
    int32_t *slots = NULL, status = REFUSED;
    int64_t *found = NULL;
    uint64_t mask;
    int bits = 4;
    if (!key || !other || count < 1 || others < 1 || others >= INT32_MAX) goto done;
    while (1ll << bits < 2 * others) bits++;
    mask = (1ull << bits) - 1;
    status = NO_MEMORY;
    slots = malloc((size_t)(mask + 1) * sizeof *slots);
    found = malloc((size_t)count * sizeof *found);
    if (!slots || !found) goto done;
    memset(slots, 0xff, (size_t)(mask + 1) * sizeof *slots);
    for (int64_t i = 0; i < others; i++) {
        uint64_t slot = slot_of(other[i], bits);
        if (!is_known(held + 1, i)) continue;
        while (slots[slot] != NO_ROW && other[slots[slot]] != other[i]) slot = (slot + 1) & mask;
        if (slots[slot] == NO_ROW) slots[slot] = (int32_t)i;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t slot = slot_of(key[i], bits);
        found[i] = NO_ROW;
        if (!is_known(held, i)) continue;
        while (slots[slot] != NO_ROW && other[slots[slot]] != key[i]) slot = (slot + 1) & mask;
        found[i] = slots[slot];
    }
    status = give_rows(array, schema, found, count);
    found = NULL;
done:
    release_columns(held, 2);
    free(slots), free(found);
    return status;
}

static int same_pair(const int64_t *const *keys, const struct ArrowArray *held, int64_t a, int64_t b) {
    for (int k = 0; k < 2; k++) {
        int known = is_known(held + k, a);
        if (known != is_known(held + k, b) || (known && keys[k][a] != keys[k][b])) return 0;
    }
    return 1;
}

/* The last row before each one with the same two keys, and the first one behind it; null if there is none. Nulls are equal
 * to each other. */
EXPORT int32_t ss_neighbours(struct ArrowArrayStream *first, struct ArrowArrayStream *second, int64_t rows,
                             struct ArrowArray *before, struct ArrowSchema *before_schema, struct ArrowArray *behind,
                             struct ArrowSchema *behind_schema) {
    struct ArrowArray held[2] = {0};
    const int64_t *keys[] = {take_column(first, rows, held), take_column(second, rows, held + 1)};
    int32_t *slots = NULL, status = REFUSED;
    int64_t *previous = NULL, *next = NULL;
    int bits = 4;
    if (!keys[0] || !keys[1] || rows < 1 || rows >= INT32_MAX) goto done;
    while (1ll << bits < 2 * rows) bits++;
    status = NO_MEMORY;
    slots = malloc(sizeof *slots << bits);
    previous = malloc((size_t)rows * sizeof *previous);
    next = malloc((size_t)rows * sizeof *next);
    if (!slots || !previous || !next) goto done;
    memset(slots, 0xff, sizeof *slots << bits);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t hash = is_known(held, i) ? (uint64_t)keys[0][i] * SPREAD + 1 : 0, slot;
        hash = (hash ^ (is_known(held + 1, i) ? (uint64_t)keys[1][i] : 0)) * SPREAD;
        for (slot = hash >> (64 - bits); slots[slot] != NO_ROW && !same_pair(keys, held, slots[slot], i);)
            slot = (slot + 1) & ((1ull << bits) - 1);
        previous[i] = slots[slot];
        next[i] = NO_ROW;
        if (slots[slot] != NO_ROW) next[slots[slot]] = i;
        slots[slot] = (int32_t)i;
    }
    status = give_rows(before, before_schema, previous, rows);
    previous = NULL;
    if (status) goto done;
    if ((status = give_rows(behind, behind_schema, next, rows))) before->release(before);
    next = NULL;
done:
    release_columns(held, 2);
    free(slots), free(previous), free(next);
    return status;
}

/* The last range that starts at a time or before it, of ranges in order of their starts; `near` and the next ones are
 * tried first. */
static int64_t last_started(const int64_t *start, int64_t ranges, int64_t time, int64_t near) {
    int64_t low = 0, high = ranges;
    if (time >= start[near]) {
        for (int64_t end = near + NEXT_TRIED < ranges ? near + NEXT_TRIED : ranges; near + 1 < end; near++) {
            if (time < start[near + 1]) return near;
        }
        low = near;
    } else {
        high = near;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (start[middle] <= time) low = middle + 1;
        else high = middle;
    }
    return low ? low - 1 : NO_ROW;
}

/* Of ranges in order of their starts, the last one that starts at each time or before it, if it ends later; null for null
 * and if there is none. */
EXPORT int32_t ss_hold(struct ArrowArrayStream *times, int64_t count, struct ArrowArrayStream *starts,
                       struct ArrowArrayStream *ends, int64_t ranges, struct ArrowArray *array,
                       struct ArrowSchema *schema) {
    struct ArrowArray held[3] = {0};
    const int64_t *time = take_column(times, count, held), *start = take_column(starts, ranges, held + 1);
    const int64_t *end = take_column(ends, ranges, held + 2);
    int64_t *found = NULL, near = 0;
    int32_t status = REFUSED;
    if (!time || !start || !end || count < 1 || ranges < 1 || has_nulls(held + 1) || has_nulls(held + 2)) goto done;
    for (int64_t i = 1; i < ranges; i++) {
        if (start[i] < start[i - 1]) goto done;
    }
    status = NO_MEMORY;
    if (!(found = malloc((size_t)count * sizeof *found))) goto done;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = last_started(start, ranges, time[i], near);
        if (row != NO_ROW) near = row;
        found[i] = row != NO_ROW && time[i] < end[row] && is_known(held, i) ? row : NO_ROW;
    }
    status = give_rows(array, schema, found, count);
    found = NULL;
done:
    release_columns(held, 3);
    free(found);
    return status;
}
