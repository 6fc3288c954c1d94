/* Ranges of time by rank: joined where they touch or overlap, and the sets of them that are active in windows. */
#include <stdlib.h>
#include <string.h>

#include "arrow.h"

#define NEVER INT64_MAX
#define STEPS_PER_ROW 16 /* by which ranges may be out of order, on average */
#define FREE_STEPS 4096
#define MOST_LAYERS 62
#define MOST_COLUMNS 5

/* Columns of numbers that grow together. */
typedef struct {
    int64_t *values[MOST_COLUMNS], count, capacity;
    int columns;
} number_rows;

static int64_t add_numbers(number_rows *rows) {
    if (rows->count == rows->capacity) {
        int64_t capacity = rows->capacity ? rows->capacity * 2 : 256;
        for (int i = 0; i < rows->columns; i++) {
            int64_t *grown = realloc(rows->values[i], (size_t)capacity * sizeof *grown);
            if (!grown) return NO_MEMORY;
            rows->values[i] = grown;
        }
        rows->capacity = capacity;
    }
    return rows->count++;
}

static void free_numbers(number_rows *rows) {
    for (int i = 0; i < rows->columns; i++) free(rows->values[i]);
}

/* Hand over the columns; they are freed also if there is no memory. */
static int32_t give_numbers(number_rows *rows, struct ArrowArray **arrays, struct ArrowSchema **schemas) {
    for (int i = 0; i < rows->columns; i++) {
        int64_t *values = rows->values[i], *fitted = realloc(values, (size_t)(rows->count + 1) * sizeof *values);
        rows->values[i] = NULL;
        if (give_column(arrays[i], rows->count, 0, 2, (void *[]){NULL, fitted ? fitted : values})) {
            while (i--) arrays[i]->release(arrays[i]);
            free_numbers(rows);
            return NO_MEMORY;
        }
    }
    for (int i = 0; i < rows->columns; i++) describe(schemas[i], "l");
    return DONE;
}

/* Put a range among those of its rank, from row `first` of `joined` on, and join it with those that it touches or
 * overlaps. There is one at least; moving those that are later takes some of `steps`. */
static int join(number_rows *joined, int64_t first, int64_t start, int64_t end, int64_t *steps) {
    int64_t *starts = joined->values[1], *ends = joined->values[2], after = joined->count, place;
    while (after > first && starts[after - 1] > end) after--; /* from here on later ones */
    for (place = after; place > first && ends[place - 1] >= start; place--) {
        if (starts[place - 1] < start) start = starts[place - 1];
        if (ends[place - 1] > end) end = ends[place - 1];
    }
    *steps -= joined->count - place;
    if (*steps < 0) return REFUSED;
    if (place == after) { /* it joins none */
        if (add_numbers(joined) < 0) return NO_MEMORY;
        starts = joined->values[1], ends = joined->values[2];
        joined->values[0][joined->count - 1] = joined->values[0][joined->count - 2];
        memmove(starts + place + 1, starts + place, (size_t)(joined->count - 1 - place) * sizeof *starts);
        memmove(ends + place + 1, ends + place, (size_t)(joined->count - 1 - place) * sizeof *ends);
    } else if (after - place > 1) {
        memmove(starts + place + 1, starts + after, (size_t)(joined->count - after) * sizeof *starts);
        memmove(ends + place + 1, ends + after, (size_t)(joined->count - after) * sizeof *ends);
        joined->count -= after - place - 1;
    }
    starts[place] = start;
    ends[place] = end;
    return DONE;
}

/* The ranges of each rank, joined where they touch or overlap, in order: rank, start and end. Ranks must not fall, and
 * ranges be nearly in order of their starts. */
EXPORT int32_t ss_union(struct ArrowArrayStream **given, int64_t rows, struct ArrowArray **arrays,
                        struct ArrowSchema **schemas) {
    struct ArrowArray held[3] = {0};
    number_rows joined = {.columns = 3};
    const int64_t *columns[3];
    int64_t first = 0, steps = rows * STEPS_PER_ROW + FREE_STEPS;
    int32_t status = REFUSED;
    for (int i = 0; i < 3; i++) {
        if (!(columns[i] = take_column(given[i], rows, held + i)) || has_nulls(held + i)) goto fail;
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t rank = columns[0][i], start = columns[1][i], end = columns[2][i], last = joined.count - 1;
        if (end <= start) continue;
        if (last >= first && rank == joined.values[0][last]) {
            if (start >= joined.values[1][last] && start <= joined.values[2][last]) { /* by far the most */
                if (end > joined.values[2][last]) joined.values[2][last] = end;
            } else if ((status = join(&joined, first, start, end, &steps))) goto fail;
            status = REFUSED;
            continue;
        }
        if (last >= 0 && rank < joined.values[0][last]) goto fail;
        first = add_numbers(&joined);
        status = NO_MEMORY;
        if (first < 0) goto fail;
        status = REFUSED;
        joined.values[0][first] = rank;
        joined.values[1][first] = start;
        joined.values[2][first] = end;
    }
    release_columns(held, 3);
    return give_numbers(&joined, arrays, schemas);
fail:
    release_columns(held, 3);
    free_numbers(&joined);
    return status;
}

/* Ranges of a layer: those of the current rank are before `until`. */
typedef struct {
    const int64_t *rank, *start, *end;
    int64_t rows, until, opening, closing, open;
} layer;

/* Ranks must not fall, and in a rank neither starts nor ends; each range must last. */
static int is_in_order(const layer *of) {
    for (int64_t i = 0; i < of->rows; i++) {
        if (of->end[i] <= of->start[i] || of->end[i] == NEVER) return 0;
        if (!i || of->rank[i] > of->rank[i - 1]) continue;
        if (of->rank[i] < of->rank[i - 1] || of->start[i] < of->start[i - 1] || of->end[i] < of->end[i - 1]) return 0;
    }
    return 1;
}

/* The time at which any range of a layer opens or closes next. */
static int64_t next_of(const layer *of) {
    int64_t opens = of->opening < of->until ? of->start[of->opening] : NEVER;
    int64_t closes = of->closing < of->until ? of->end[of->closing] : NEVER;
    return opens < closes ? opens : closes;
}

/* Add a piece to `found`: rank, window, start, duration and set of layers; or, from row `first` of a window on, its
 * duration to that of the same set. */
static int add_piece(number_rows *found, int64_t first, const int64_t piece[MOST_COLUMNS]) {
    int64_t row = first;
    while (row < found->count && found->values[4][row] != piece[4]) row++;
    if (row == found->count) {
        if (add_numbers(found) < 0) return NO_MEMORY;
        for (int i = 0; i < MOST_COLUMNS; i++) found->values[i][row] = piece[i];
    } else {
        found->values[3][row] += piece[3];
    }
    return DONE;
}

/* Sweep one rank; the last layer has the windows, with their numbers. */
static int sweep(layer *layers, int count, int64_t rank, const int64_t *numbers, int whole, number_rows *found) {
    layer *windows = layers + count - 1;
    int64_t since = 0, window = -1, active = 0, first = found->count, next[MOST_LAYERS + 1];
    for (int i = 0; i < count; i++) {
        layer *of = layers + i;
        of->opening = of->closing = of->until;
        while (of->until < of->rows && of->rank[of->until] == rank) of->until++;
        next[i] = next_of(of);
    }
    for (;;) {
        int64_t at = NEVER;
        for (int i = 0; i < count; i++) at = next[i] < at ? next[i] : at;
        if (at == NEVER) return DONE;
        if (window >= 0 && add_piece(found, whole ? first : found->count,
                                     (int64_t[]){rank, window, since, at - since, active})) {
            return NO_MEMORY;
        }
        for (int i = 0; i < count - 1; i++) {
            layer *of = layers + i;
            if (next[i] != at) continue;
            while (of->opening < of->until && of->start[of->opening] == at) of->opening++, of->open++;
            while (of->closing < of->until && of->end[of->closing] == at) of->closing++, of->open--;
            active = of->open ? active | (int64_t)1 << i : active & ~((int64_t)1 << i);
            next[i] = next_of(of);
        }
        if (next[count - 1] == at) {
            if (windows->closing < windows->until && windows->end[windows->closing] == at) window = -1;
            while (windows->closing < windows->until && windows->end[windows->closing] == at) windows->closing++;
            while (windows->opening < windows->until && windows->start[windows->opening] == at) {
                window = numbers[windows->opening++];
            }
            first = found->count;
            next[count - 1] = next_of(windows);
        }
        since = at;
    }
}

/* Cut windows into pieces in which the set of active layers does not change: rank, window, start, duration and the set,
 * a bit for each layer. With `whole`, one row for each set of a window, with its total duration.
 *
 * Given are rank, start and end of each of the `count` layers; the last has the windows, followed by their numbers. */
EXPORT int32_t ss_sweep(struct ArrowArrayStream **given, const int64_t *rows, int32_t count, int32_t whole,
                        struct ArrowArray **arrays, struct ArrowSchema **schemas) {
    struct ArrowArray held[3 * (MOST_LAYERS + 1) + 1] = {0};
    number_rows found = {.columns = MOST_COLUMNS};
    layer layers[MOST_LAYERS + 1] = {0};
    const int64_t *numbers;
    int32_t status = REFUSED, taken = 0;
    if (count < 1 || count > MOST_LAYERS + 1) return REFUSED;
    for (int i = 0; i < count; i++) {
        const int64_t *columns[3];
        for (int j = 0; j < 3; j++, taken++) {
            columns[j] = take_column(given[taken], rows[i], held + taken);
            if (!columns[j] || has_nulls(held + taken)) goto fail;
        }
        layers[i] = (layer){.rank = columns[0], .start = columns[1], .end = columns[2], .rows = rows[i]};
        if (!is_in_order(layers + i)) goto fail;
    }
    numbers = take_column(given[taken], rows[count - 1], held + taken);
    if (!numbers || has_nulls(held + taken)) goto fail;
    for (;;) {
        int64_t rank = NEVER;
        for (int i = 0; i < count; i++) {
            const layer *of = layers + i;
            if (of->until < of->rows && of->rank[of->until] < rank) rank = of->rank[of->until];
        }
        if (rank == NEVER) break;
        status = NO_MEMORY;
        if (sweep(layers, count, rank, numbers, whole, &found)) goto fail;
    }
    release_columns(held, 3 * (MOST_LAYERS + 1) + 1);
    return give_numbers(&found, arrays, schemas);
fail:
    release_columns(held, 3 * (MOST_LAYERS + 1) + 1);
    free_numbers(&found);
    return status;
}
