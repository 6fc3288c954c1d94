/* Bytes that grow as they are written. */
#ifndef STEPSCOPE_OUTPUT_H
#define STEPSCOPE_OUTPUT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that grow; `failed` if there was no memory. */
typedef struct {
    uint8_t *bytes;
    int64_t length, capacity;
    int failed;
} output;

/* Room for `more` bytes behind the last; null if there is no memory. */
static inline uint8_t *room(output *o, int64_t more) {
    if (o->failed) return NULL;
    if (o->capacity - o->length < more) {
        int64_t capacity = 2 * o->capacity + more + 64;
        uint8_t *bytes = realloc(o->bytes, (size_t)capacity);
        if (!bytes) {
            o->failed = 1;
            return NULL;
        }
        o->bytes = bytes;
        o->capacity = capacity;
    }
    return o->bytes + o->length;
}

static inline void put(output *o, const void *bytes, int64_t count) {
    uint8_t *to = count ? room(o, count) : NULL;
    if (!to) return;
    memcpy(to, bytes, (size_t)count);
    o->length += count;
}

#endif
