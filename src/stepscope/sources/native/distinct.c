#include "distinct.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DISTINCT (1 << 14)
#define SLOTS (4 * MOST_DISTINCT)
#define MOST_TEXT_BYTES (1 << 18)
#define RECENT_VIEWS 1024 /* 10 bits of a hash */
#define SPREAD 0x9e3779b97f4a7c15ull

static int take(struct ArrowArrayStream *stream, int64_t rows, column *c) {
    struct ArrowSchema schema;
    if (stream->get_schema(stream, &schema)) return 0;
    c->format = !strcmp(schema.format, "vu") ? 'v' : strlen(schema.format) == 1 ? schema.format[0] : 0;
    schema.release(&schema);
    if (!c->format || !strchr("vlisgb", c->format)) return 0;
    if (stream->get_next(stream, &c->held)) {
        c->held.release = NULL;
        return 0;
    }
    if (!c->held.release || c->held.length != rows) return 0;
    return c->format == 'v' ? c->held.n_buffers >= 2 : c->held.n_buffers == 2;
}

/* Find the values, and copy them if there are nulls between them or they are not as wide; 0 if there is no memory. */
static int read_values(column *c) {
    const struct ArrowArray *held = &c->held;
    const void *from = held->buffers[1];
    int is_plain = !has_nulls(held);
    c->count = c->rows;
    if (c->format == 'v' && is_plain) {
        c->views = (const view *)from + held->offset;
        return 1;
    }
    if ((c->format == 'l' || c->format == 'g') && is_plain) {
        c->values = (const int64_t *)from + held->offset;
        return 1;
    }
    if (!(c->copied = malloc((size_t)c->rows * (c->format == 'v' ? sizeof *c->views : sizeof *c->values)))) return 0;
    view *views = c->copied;
    int64_t *values = c->copied;
    c->count = 0;
    if (c->format == 'v') c->views = views;
    else c->values = values;
    for (int64_t i = 0; i < c->rows; i++) {
        int64_t at = i + held->offset;
        if (!is_plain && !is_known(held, i)) continue;
        switch (c->format) {
        case 'v': views[c->count++] = ((const view *)from)[at]; break;
        case 'i': values[c->count++] = ((const int32_t *)from)[at]; break;
        case 's': values[c->count++] = ((const int16_t *)from)[at]; break;
        case 'b': values[c->count++] = ((const uint8_t *)from)[at >> 3] >> (at & 7) & 1; break;
        default: values[c->count++] = ((const int64_t *)from)[at];
        }
    }
    return 1;
}

const uint8_t *text_of(const column *c, const view *v) {
    return v->length <= 12 ? v->first : (const uint8_t *)c->held.buffers[2 + v->buffer] + v->offset;
}

/* The first 8 bytes of a view, and the others. */
static inline uint64_t half(const view *v, int second) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)v + 8 * second, 8);
    return word;
}

static uint64_t hash_of(const column *c, int64_t place, int is_text) {
    const view *v = c->views + place;
    uint64_t hash, word;
    if (!is_text) return (uint64_t)c->values[place] * SPREAD;
    hash = half(v, 0) * SPREAD;
    if (v->length <= 12) return ((hash ^ hash >> 32) ^ half(v, 1)) * SPREAD;
    const uint8_t *text = text_of(c, v), *end = text + v->length;
    for (text += 4; end - text > 8; text += 8) {
        memcpy(&word, text, 8);
        hash = ((hash ^ hash >> 32) ^ word) * SPREAD;
    }
    memcpy(&word, end - 8, 8);
    return ((hash ^ hash >> 32) ^ word) * SPREAD;
}

static inline int is_same_view(const view *v, const view *w) {
    return half(v, 0) == half(w, 0) && half(v, 1) == half(w, 1);
}

static int is_same(const column *c, int64_t a, int64_t b, int is_text) {
    const view *v = c->views + a, *w = c->views + b;
    if (!is_text) return c->values[a] == c->values[b];
    if (half(v, 0) != half(w, 0)) return 0;
    if (half(v, 1) == half(w, 1)) return 1;
    return v->length > 12 && !memcmp(text_of(c, v), text_of(c, w), v->length);
}

/* Number the distinct values, of which there are at most `most`. Most texts are where one of the recent ones was, so they
 * need not be read. */
static inline void number_values(column *c, int32_t *slots, int64_t most, int is_text) {
    int32_t recent[RECENT_VIEWS] = {0}; /* place + 1 of a text, by its view */
    int64_t bytes = 0;
    for (int64_t i = 0; i < c->count; i++) {
        uint64_t hash;
        if (is_text) {
            int32_t *seen = recent + ((half(c->views + i, 0) ^ half(c->views + i, 1) * SPREAD) * SPREAD >> 54);
            if (*seen && is_same_view(c->views + i, c->views + *seen - 1)) {
                c->codes[i] = c->codes[*seen - 1];
                continue;
            }
            *seen = (int32_t)i + 1;
        } else if (i && is_same(c, i, i - 1, is_text)) {
            c->codes[i] = c->codes[i - 1];
            continue;
        }
        hash = hash_of(c, i, is_text);
        hash = (hash ^ hash >> 32) * SPREAD >> 40 & (SLOTS - 1);
        while (slots[hash] >= 0 && !is_same(c, i, c->firsts[slots[hash]], is_text)) hash = (hash + 1) & (SLOTS - 1);
        if (slots[hash] < 0) {
            bytes += is_text ? c->views[i].length : 0;
            if (c->distinct == most || bytes > MOST_TEXT_BYTES) {
                c->distinct = 0;
                return;
            }
            c->firsts[c->distinct] = i;
            slots[hash] = (int32_t)c->distinct++;
        }
        c->codes[i] = (uint32_t)slots[hash];
    }
}

int find_distinct(column *c) {
    int64_t most = c->count / 3 + 64 < MOST_DISTINCT ? c->count / 3 + 64 : MOST_DISTINCT;
    int32_t *slots = malloc(SLOTS * sizeof *slots);
    c->codes = malloc((size_t)c->count * sizeof *c->codes);
    c->firsts = malloc((size_t)most * sizeof *c->firsts);
    if (slots && c->codes && c->firsts) {
        memset(slots, 0xff, SLOTS * sizeof *slots);
        if (c->views) number_values(c, slots, most, 1);
        else number_values(c, slots, most, 0);
    }
    free(slots);
    return slots && c->codes && c->firsts;
}

int take_values(struct ArrowArrayStream *stream, int64_t rows, column *c) {
    *c = (column){.rows = rows};
    return take(stream, rows, c) && read_values(c);
}

void release_values(column *c) {
    if (c->held.release) c->held.release(&c->held);
    free(c->copied), free(c->codes), free(c->firsts);
}

/* For each text the number of the distinct one, null for null, and for each of these the row of the first. */
EXPORT int32_t ss_distinct(struct ArrowArrayStream *texts, int64_t rows, struct ArrowArray *numbers,
                           struct ArrowSchema *number_schema, struct ArrowArray *firsts,
                           struct ArrowSchema *first_schema) {
    column c = {0};
    int64_t *number = NULL, *first = NULL, next = 0;
    int32_t status = REFUSED;
    if (rows < 1 || rows > INT32_MAX || !take_values(texts, rows, &c) || c.format != 'v' || !c.count) goto done;
    if (!find_distinct(&c) || !c.distinct) goto done;
    status = NO_MEMORY;
    number = malloc((size_t)rows * sizeof *number);
    first = malloc((size_t)c.distinct * sizeof *first);
    if (!number || !first) goto done;
    for (int64_t i = 0, value = 0; i < rows; i++) {
        number[i] = is_known(&c.held, i) ? (int64_t)c.codes[value++] : NO_ROW;
        if (number[i] == next) first[next++] = i;
    }
    if ((status = give_rows(firsts, first_schema, first, c.distinct))) {
        first = NULL;
        goto done;
    }
    first = NULL;
    status = give_rows(numbers, number_schema, number, rows);
    number = NULL;
    if (status) firsts->release(firsts);
done:
    release_values(&c);
    free(number), free(first);
    return status;
}
