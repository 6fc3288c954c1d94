/* Columns in memory as Polars takes and gives them: the C data interface of Apache Arrow. */
#ifndef STEPSCOPE_ARROW_H
#define STEPSCOPE_ARROW_H

#include <stddef.h>

#include "spans.h"

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* Hand over `count` buffers, the first of them the validity (null: all valid); the array frees them, also if there is
 * no memory. */
int32_t give_column(struct ArrowArray *array, int64_t rows, int64_t nulls, int count, void *const *given);

/* Say what a column holds: "l" int64, "i" int32, "g" float64, "vu" texts. */
void describe(struct ArrowSchema *schema, const char *format);

/* A struct of `columns` columns, still without rows and released ones in their places. */
int32_t new_struct(struct ArrowArray *array, struct ArrowSchema *schema, int64_t columns);

/* Give a column of a struct, once it is described, its number as its name. */
void name_child(struct ArrowSchema *schema, int64_t column);

/* Values of an int64 column that comes in one chunk, which `held` keeps; null if it is anything else. */
const int64_t *take_column(struct ArrowArrayStream *stream, int64_t rows, struct ArrowArray *held);

int has_nulls(const struct ArrowArray *held);

/* Whether a row is not null. */
static inline int is_known(const struct ArrowArray *held, int64_t row) {
    const uint8_t *known = held->null_count != 0 ? held->buffers[0] : NULL;
    int64_t bit = row + held->offset;
    return !known || (known[bit >> 3] >> (bit & 7) & 1);
}

void release_columns(struct ArrowArray *held, int count);

/* Room for a bit for each row, all 0; null if there is no memory. */
uint8_t *new_validity(int64_t rows);

#define NO_ROW (-1)

/* Hand over a column of row numbers, in which `NO_ROW` means null; they are freed also if there is no memory. */
int32_t give_rows(struct ArrowArray *array, struct ArrowSchema *schema, int64_t *rows, int64_t count);

/* Free what the importer has not taken over. */
EXPORT void ss_drop(struct ArrowArray *array, struct ArrowSchema *schema);

static inline void set_valid(uint8_t *validity, int64_t row) { validity[row >> 3] |= (uint8_t)(1 << (row & 7)); }

#endif
