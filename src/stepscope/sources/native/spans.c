/* Making, growing and freeing scans, and what Python asks about them. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define SS_VERSION 21 /* `library.py` loads no other version */
#define ROW_BYTES 256 /* of text, about; more rows cost a copy */

scan *new_scan(int32_t width, int64_t length) {
    scan *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->width = width;
    s->length = length;
    s->end = -1;
    return s;
}

span *add_row(scan *s) {
    span *row;
    if (s->count == INT32_MAX) return NULL; /* `order` counts in 32 bits */
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? s->capacity * 2 : s->length / ROW_BYTES + 64;
        span *grown = realloc(s->spans, (size_t)capacity * (size_t)s->width * sizeof(span));
        if (!grown) return NULL;
        s->spans = grown;
        s->capacity = capacity;
    }
    row = s->spans + s->count++ * s->width;
    memset(row, 0, (size_t)s->width * sizeof(span));
    return row;
}

EXPORT void ss_free(scan *s) {
    if (!s) return;
    free(s->spans);
    free(s->order);
    free(s);
}

EXPORT int64_t ss_count(const scan *s) { return s->count; }
EXPORT int32_t ss_met(const scan *s, int32_t field) { return place_of(s, field) >= 0; }
EXPORT int64_t ss_end(const scan *s) { return s->end; }
EXPORT int32_t ss_version(void) { return SS_VERSION; }

/* Where a field of a row is that rows have: start, length and kind. */
EXPORT void ss_where(const scan *s, int64_t row, int32_t field, int64_t *out) {
    span found = s->spans[row * s->width + place_of(s, field)];
    out[0] = START(found);
    out[1] = LENGTH(found);
    out[2] = KIND(found);
}

/* Give the memory of finished scans back to the system. */
EXPORT void ss_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
