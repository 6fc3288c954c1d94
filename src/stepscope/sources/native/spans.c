/* Making, growing and freeing scans, and what Python asks about them. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define SS_VERSION 16 /* `library.py` loads no other version */
#define FIRST_ROWS 4096

scan *new_scan(int32_t fields, int64_t length) {
    scan *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->fields = fields;
    s->length = length;
    s->end = -1;
    return s;
}

span *add_row(scan *s) {
    span *row;
    if (s->count == INT32_MAX) return NULL; /* `order` counts in 32 bits */
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? s->capacity * 2 : FIRST_ROWS;
        span *grown = realloc(s->spans, (size_t)capacity * (size_t)s->fields * sizeof(span));
        if (!grown) return NULL;
        s->spans = grown;
        s->capacity = capacity;
    }
    row = s->spans + s->count++ * s->fields;
    memset(row, 0, (size_t)s->fields * sizeof(span));
    return row;
}

EXPORT void ss_free(scan *s) {
    if (!s) return;
    free(s->spans);
    free(s->order);
    free(s);
}

EXPORT int64_t ss_count(const scan *s) { return s->count; }
EXPORT int32_t ss_met(const scan *s, int32_t field) { return s->met[field]; }
EXPORT int64_t ss_end(const scan *s) { return s->end; }
EXPORT int32_t ss_version(void) { return SS_VERSION; }

/* Where a field of a row is: start, length and kind. */
EXPORT void ss_where(const scan *s, int64_t row, int32_t field, int64_t *out) {
    span found = s->spans[row * s->fields + field];
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
