/* Rows of spans: where in a text each wanted value is. The readers of events and of CSV tables fill them; `columns.c` and
 * `text_columns.c` turn them into columns. Also what every file here needs: results, visibility, byte order. */
#ifndef STEPSCOPE_SPANS_H
#define STEPSCOPE_SPANS_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_LENGTH ((1u << 28) - 1)
#define MOST_FIELDS 264

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_HOST 1
#define HEAD_MASK(bytes) ((1ull << 8 * (bytes)) - 1) /* the first 1 to 7 of eight bytes */
#else
#define LITTLE_ENDIAN_HOST 0
#define HEAD_MASK(bytes) (~0ull << 8 * (8 - (bytes)))
#endif

enum kind { ABSENT, NUMBER, STRING, ESCAPED, NESTED, LITERAL_NULL, LITERAL_OTHER };
enum result { DONE = 0, REFUSED = -1, NO_MEMORY = -2 };

/* A span: start (32 bits), kind (4 bits), length (28 bits); quotes are not part of a string's span. */
typedef uint64_t span;
#define SPAN(start, length, kind) (((span)(uint32_t)(start) << 32) | ((span)(kind) << 28) | (span)(length))
#define START(s) ((uint32_t)((s) >> 32))
#define KIND(s) ((int)(((s) >> 28) & 15))
#define LENGTH(s) ((uint32_t)((s) & MAX_LENGTH))

typedef struct {
    span *spans; /* rows x width */
    int64_t count, capacity;
    int32_t width; /* spans of a row */
    int32_t *order; /* the rows in the order in which columns have them; null until there is one */
    int64_t end;    /* after the bracket that closes the array; -1 if it is not closed here */
    int64_t length; /* of the text */
    int32_t is_sparse;          /* whether only fields that a row has have a place in rows */
    int16_t slots[MOST_FIELDS]; /* by field: its place in a row of a sparse scan, or -1 */
} scan;

/* The place of a field in a row; -1 if no row has it. */
static inline int32_t place_of(const scan *s, int32_t field) { return s->is_sparse ? s->slots[field] : field; }

/* The end of a list of words that stand one after the other: where each ends. */
typedef struct {
    const uint8_t *words;
    const int32_t *ends;
    int32_t count;
} word_list;

/* An empty scan for a text, whose fields are the spans of a row; null if there is no memory. */
scan *new_scan(int32_t width, int64_t length);

/* The next row, all of it absent; null if there is no memory. */
span *add_row(scan *s);

EXPORT void ss_free(scan *s);

#endif
