/* The values of a column without nulls, and the distinct ones among them. */
#ifndef STEPSCOPE_DISTINCT_H
#define STEPSCOPE_DISTINCT_H

#include "arrow.h"

/* A text of a column: at most 12 bytes, or 4 and where all are. */
typedef struct {
    uint32_t length;
    uint8_t first[4];
    int32_t buffer, offset;
} view;

/* The values of a column that are not null, and the distinct ones among them. */
typedef struct {
    struct ArrowArray held;
    char format; /* as of the Arrow interface; 'v' for texts */
    int64_t rows, count;
    const int64_t *values; /* numbers; floats by their bits */
    const view *views;     /* of a column of texts */
    void *copied;          /* what has to be freed of them */
    uint32_t *codes;       /* of each value the number of the distinct one */
    int64_t *firsts;       /* of each distinct value the first place */
    int64_t distinct;      /* 0 if there are too many */
} column;

/* Take the values of a column of numbers or texts; 0 if it is anything else or there is no memory. */
int take_values(struct ArrowArrayStream *stream, int64_t rows, column *c);

void release_values(column *c);

/* Find the distinct values, if these are not too many and not too long; 0 if there is no memory. */
int find_distinct(column *c);

const uint8_t *text_of(const column *c, const view *v);

#endif
