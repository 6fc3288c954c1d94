/* Keys of events and of their arguments: what each means, found fast because writers repeat their keys to the space. */
#ifndef STEPSCOPE_KEYS_H
#define STEPSCOPE_KEYS_H

#include <string.h>

#include "json.h"

#define BASE_FIELDS 8
#define SEEN_KEYS 64
/* A place by the first six bytes: quote, and five letters or the end of a short key. */
#if LITTLE_ENDIAN_HOST
#define SEEN_PLACE(head) ((int)(((head) & HEAD_MASK(6)) * 0x9e3779b97f4a7c15ull >> 58))
#else
#define SEEN_PLACE(head) ((int)(((head) >> 16) * 0x9e3779b97f4a7c15ull >> 58))
#endif

/* Fields of an event; those below `F_ARGS` come first in a row, the wanted arguments after them. */
enum { F_PH, F_NAME, F_CAT, F_PID, F_TID, F_TS, F_DUR, F_ID, F_ARGS };

/* A key as it was written in an earlier object, from its quote to the value. */
typedef struct {
    const uint8_t *text;
    uint64_t head, mask; /* its first eight bytes, and which of them belong to it; 0 and 0 if the place is free */
    uint32_t length;
    int16_t field, next; /* where its value goes (-1: not wanted), and the place of the key that came after it */
} seen_key;

typedef struct {
    reader r;
    const word_list *wanted;
    int16_t buckets[256], next[256]; /* key hash -> wanted arguments */
    seen_key seen[2][SEEN_KEYS];     /* of events, and of their arguments */
    int16_t first[2];                /* the key that the last such object began with */
    scan *s;
    int16_t slots; /* of a row that are in use */
    int is_full;   /* whether a row has too few */
} event_reader;

/* Prepare for at most 255 wanted arguments. */
void index_keys(event_reader *e, const word_list *wanted);

/* As `read_key`, for a key that was not expected. */
int read_other_key(event_reader *e, int arguments, uint64_t head);

/* Whether the key is at `at`, where `head` are the first eight bytes. */
static inline int is_key(const seen_key *one, const reader *r, uint64_t head) {
    uint64_t x, y;
    if ((head & one->mask) != one->head || !one->mask) return 0;
    if (one->length <= 8) return 1;
    if (r->end - r->at < one->length) return 0;
    for (uint32_t i = 8; i < one->length - 8; i += 8) {
        memcpy(&x, one->text + i, 8);
        memcpy(&y, r->at + i, 8);
        if (x != y) return 0;
    }
    memcpy(&x, one->text + one->length - 8, 8);
    memcpy(&y, r->at + one->length - 8, 8);
    return x == y;
}

/* At a key; moves to its value and returns the key's place among the seen ones, or -1 if it is not a plain key. `guess`
 * is the place of the key that is expected. */
static inline int read_key(event_reader *e, int arguments, int guess) {
    const seen_key *one = &e->seen[arguments][guess];
    uint64_t head;
    if (e->r.end - e->r.at < 8) return read_other_key(e, arguments, 0);
    memcpy(&head, e->r.at, 8);
    if (!is_key(one, &e->r, head)) return read_other_key(e, arguments, head);
    e->r.at += one->length;
    skip_space(&e->r);
    return guess;
}

/* Whether two values are written in the same way. */
static inline int same_value(const uint8_t *text, span a, span b) {
    const uint8_t *p = text + START(a), *q = text + START(b);
    if (KIND(a) != KIND(b) || LENGTH(a) != LENGTH(b)) return 0;
    return LENGTH(a) == 0 || (*p == *q && (LENGTH(a) == 1 || !memcmp(p, q, LENGTH(a))));
}

#endif
