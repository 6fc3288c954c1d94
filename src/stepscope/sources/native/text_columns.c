#include "text_columns.h"

#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "text.h"

/* Length of a text value before its escapes are replaced; -1 for null, -2 to refuse. */
static int64_t text_room(const uint8_t *text, span s, int as_json) {
    switch (KIND(s)) {
    case ABSENT:
    case LITERAL_NULL:
        return -1;
    case NUMBER:
        return as_json || is_plain_whole(text + START(s), LENGTH(s)) ? (int64_t)LENGTH(s) : -2;
    case STRING:
    case ESCAPED:
        return LENGTH(s);
    default:
        return as_json ? (int64_t)LENGTH(s) : -2;
    }
}

#define INLINE_BYTES 12
#define RECENT_TEXTS 512

/* Texts of a column as Arrow views: up to twelve bytes are in the view itself, longer ones in `data`, where a text that
 * repeats (names do, a thousandfold) is kept once as long as it is among the recent ones. */
typedef struct {
    uint8_t *data;
    int64_t size, room;
    int32_t recent[RECENT_TEXTS]; /* row + 1 of a text, by its hash */
} text_data;

typedef struct {
    uint32_t length;
    union {
        uint8_t inlined[INLINE_BYTES];
        struct {
            uint8_t prefix[4];
            uint32_t buffer, offset;
        } at;
    } as;
} view;

static uint32_t text_hash(const uint8_t *p, uint32_t length) {
    uint64_t first, last;
    memcpy(&first, p, 8);
    memcpy(&last, p + length - 8, 8);
    return (uint32_t)(((first ^ (last << 29 | last >> 35)) + length) * 0x9e3779b97f4a7c15ull >> 55);
}

/* Room for a text in `data`, which is never null afterwards. */
static int make_room(text_data *d, uint32_t length) {
    if (!d->data || d->size + length > d->room) {
        int64_t room = d->room * 2 + length + 4096;
        uint8_t *grown = realloc(d->data, (size_t)room);
        if (!grown) return NO_MEMORY;
        d->data = grown;
        d->room = room;
    }
    return d->size + length > INT32_MAX ? REFUSED : DONE; /* views count in 32 bits */
}

/* Copy up to twelve bytes and fill up with zeros; `readable` bytes stand at `p`. */
static inline void inline_text(uint8_t *out, const uint8_t *p, uint32_t length, int64_t readable) {
#if LITTLE_ENDIAN_HOST
    if (readable >= 16) { /* without a call: most texts are short */
        uint64_t low, high;
        memcpy(&low, p, 8);
        memcpy(&high, p + 8, 8);
        low &= length >= 8 ? ~0ull : HEAD_MASK(length);
        high &= length <= 8 ? 0 : HEAD_MASK(length - 8);
        memcpy(out, &low, 8);
        memcpy(out + 8, &high, 4);
        return;
    }
#endif
    (void)readable;
    memset(out, 0, INLINE_BYTES);
    memcpy(out, p, length);
}

/* The view of row `i`, whose content is `length` of the `readable` bytes at `p`. */
static int view_text(text_data *d, view *views, int64_t i, const uint8_t *p, uint32_t length, int64_t readable) {
    view *v = &views[i];
    uint32_t hash;
    int status;
    v->length = length;
    if (length <= INLINE_BYTES) {
        inline_text(v->as.inlined, p, length, readable);
        return DONE;
    }
    hash = text_hash(p, length);
    if (d->recent[hash]) {
        const view *known = &views[d->recent[hash] - 1];
        if (known->length == length && !memcmp(d->data + known->as.at.offset, p, length)) {
            v->as = known->as;
            return DONE;
        }
    }
    if ((status = make_room(d, length))) return status;
    memcpy(d->data + d->size, p, length);
    memcpy(v->as.at.prefix, p, 4);
    v->as.at.buffer = 0;
    v->as.at.offset = (uint32_t)d->size;
    d->size += length;
    if (i < INT32_MAX) d->recent[hash] = (int32_t)i + 1;
    return DONE;
}

/* A column while it is made. */
typedef struct {
    text_data data;
    view *views;
    uint8_t *validity, *plain; /* room for a text without its escapes */
} text_builder;

/* Row `i`; 1 for a text, 0 for null, below 0 if it fails. */
static int add_text(text_builder *b, const scan *s, const uint8_t *text, span found, int64_t i, int as_json) {
    const uint8_t *p = text + START(found);
    int64_t length = text_room(text, found, as_json), readable = s->length - START(found);
    int status;
    if (length == -2) return REFUSED;
    if (length < 0) {
        memset(&b->views[i], 0, sizeof *b->views);
        return 0;
    }
    if (KIND(found) == ESCAPED) {
        uint8_t *grown = realloc(b->plain, (size_t)length + 1);
        if (!grown) return NO_MEMORY;
        b->plain = grown;
        length = readable = unescape(p, LENGTH(found), grown);
        p = grown;
    }
    if ((status = view_text(&b->data, b->views, i, p, (uint32_t)length, readable))) return status;
    set_valid(b->validity, i);
    return 1;
}

int32_t text_column(const scan *s, const uint8_t *text, int32_t slot, const int32_t *order, int64_t rows, int as_json,
                    struct ArrowArray *array) {
    text_builder *b = calloc(1, sizeof *b);
    int64_t nulls = 0, *sizes = malloc(sizeof *sizes);
    int status = NO_MEMORY;
    if (!b || !sizes) goto fail;
    b->validity = new_validity(rows);
    b->views = malloc(((size_t)rows + 1) * sizeof *b->views);
    if (!b->validity || !b->views || make_room(&b->data, 0)) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        status = add_text(b, s, text, s->spans[order[i] * s->width + slot], i, as_json);
        if (status < 0) goto fail;
        nulls += !status;
    }
    *sizes = b->data.size;
    status = give_column(array, rows, nulls, 4, (void *[]){b->validity, b->views, b->data.data, sizes});
    free(b->plain), free(b);
    return status;
fail:
    if (b) free(b->data.data), free(b->plain), free(b->validity), free(b->views);
    free(b), free(sizes);
    return status;
}
