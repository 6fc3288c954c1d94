/* Frames that wait to be read again, in a third of their room: whole numbers as narrow differences from the least one,
 * texts as numbers of the different ones. A block holds a column; its content is for this process alone. */
#include <string.h>

#include "distinct.h"
#include "output.h"

#define MOST_TEXT_BYTES (1 << 28)
#define SPREAD 0x9e3779b97f4a7c15ull
#define PADDED(bytes) (((bytes) + 7) & ~(int64_t)7)

/* What a block begins with. Then come, each padded to eight bytes: which rows are known if some are not, the entries and
 * their longer texts one after the other, and the numbers. */
typedef struct {
    int64_t rows, nulls, least;
    int64_t entries, text_bytes; /* of texts; an entry is a view that counts from the beginning of these bytes */
    int64_t width;               /* bytes of each number; 0 if all are equal */
} block;

/* The narrowest number of bytes for numbers up to `most`. */
static int64_t width_of(uint64_t most) {
    return !most ? 0 : most <= UINT8_MAX ? 1 : most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 4 : 8;
}

/* Room for `bytes` and what pads them, which is zero; null if there is no memory. */
static uint8_t *padded_room(output *o, int64_t bytes) {
    uint8_t *to = room(o, PADDED(bytes) + 8);
    if (!to) return NULL;
    memset(to + bytes, 0, (size_t)(PADDED(bytes) - bytes));
    o->length += PADDED(bytes);
    return to;
}

/* Write which rows are known if some are not; the number of others. */
static int64_t put_known(output *o, const struct ArrowArray *held) {
    int64_t nulls = 0, before = o->length;
    uint8_t *bits;
    if (!has_nulls(held) || !(bits = padded_room(o, held->length / 8 + 1))) return 0;
    memset(bits, 0, (size_t)(held->length / 8 + 1));
    for (int64_t i = 0; i < held->length; i++) {
        if (is_known(held, i)) set_valid(bits, i);
        else nulls++;
    }
    if (!nulls || nulls == held->length) o->length = before;
    return nulls;
}

/* Numbers less the least one, in `width` bytes each. */
#define PUT_NARROW(type, expression) \
    do { \
        type *narrow = (type *)to; \
        for (int64_t i = 0; i < rows; i++) narrow[i] = (type)(expression); \
    } while (0)

static inline void put_numbers(output *o, const void *values, int is_small, int64_t rows, int64_t least, int64_t width) {
    uint8_t *to = width ? padded_room(o, rows * width) : NULL;
    if (!to) return;
#define DIFFERENCE ((uint64_t)(is_small ? (int64_t)((const int32_t *)values)[i] : ((const int64_t *)values)[i]) - (uint64_t)least)
    switch (width) {
    case 1: PUT_NARROW(uint8_t, DIFFERENCE); break;
    case 2: PUT_NARROW(uint16_t, DIFFERENCE); break;
    case 4: PUT_NARROW(uint32_t, DIFFERENCE); break;
    default: PUT_NARROW(uint64_t, DIFFERENCE);
    }
}

static inline void pack_numbers(output *o, const struct ArrowArray *held, block *b, int is_small) {
    const void *values = (const uint8_t *)held->buffers[1] + held->offset * (is_small ? 4 : 8);
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < held->length; i++) {
        int64_t value = is_small ? (int64_t)((const int32_t *)values)[i] : ((const int64_t *)values)[i];
        if (b->nulls && !is_known(held, i)) continue;
        if (value < least) least = value;
        if (value > most) most = value;
    }
    b->least = least;
    b->width = width_of((uint64_t)most - (uint64_t)least);
    put_numbers(o, values, is_small, held->length, least, b->width);
}

/* The entry of each text: equal views are the same. Those of equal texts may differ, which only takes more room. */
static int find_entries(const struct ArrowArray *held, const block *b, int32_t *numbers, int32_t *firsts, int64_t *found) {
    const view *views = (const view *)held->buffers[1] + held->offset;
    int64_t slots = 1024, known = 0;
    int32_t *slot;
    while (slots < 2 * held->length) slots *= 2;
    if (!(slot = calloc((size_t)slots, sizeof *slot))) return 0;
    for (int64_t i = 0, last = -1; i < held->length; i++) {
        uint64_t parts[2], hash;
        numbers[i] = 0;
        if (b->nulls && !is_known(held, i)) continue;
        if (last >= 0 && !memcmp(views + i, views + last, sizeof *views)) {
            numbers[i] = numbers[last];
            continue;
        }
        last = i;
        memcpy(parts, views + i, sizeof parts);
        hash = (parts[0] * SPREAD ^ parts[1]) * SPREAD;
        hash ^= hash >> 32;
        for (;; hash++) {
            int32_t *one = slot + (hash & (uint64_t)(slots - 1));
            if (*one && memcmp(views + i, views + firsts[*one - 1], sizeof *views)) continue;
            if (!*one) {
                firsts[known] = (int32_t)i;
                *one = (int32_t)++known;
            }
            numbers[i] = *one - 1;
            break;
        }
    }
    free(slot);
    *found = known;
    return 1;
}

static void pack_texts(output *o, const struct ArrowArray *held, block *b) {
    column c = {.held = *held};
    const view *views = (const view *)held->buffers[1] + held->offset;
    int32_t *numbers = malloc((size_t)held->length * sizeof *numbers);
    int32_t *firsts = malloc((size_t)held->length * sizeof *firsts);
    view *entries;
    uint8_t *texts;
    if (!numbers || !firsts || !find_entries(held, b, numbers, firsts, &b->entries)) o->failed = 1;
    for (int64_t i = 0; !o->failed && i < b->entries; i++) {
        if (views[firsts[i]].length > 12) b->text_bytes += views[firsts[i]].length;
    }
    if (b->text_bytes > MOST_TEXT_BYTES) o->failed = 1;
    if ((entries = (view *)padded_room(o, b->entries * (int64_t)sizeof *entries))) {
        int32_t at = 0;
        for (int64_t i = 0; i < b->entries; i++) {
            entries[i] = views[firsts[i]];
            if (entries[i].length <= 12) continue;
            entries[i].buffer = 0, entries[i].offset = at;
            at += (int32_t)entries[i].length;
        }
    }
    if ((texts = padded_room(o, b->text_bytes))) {
        for (int64_t i = 0; i < b->entries; i++) {
            const view *one = views + firsts[i];
            if (one->length <= 12) continue;
            memcpy(texts, text_of(&c, one), one->length);
            texts += one->length;
        }
        b->width = width_of((uint64_t)b->entries - 1);
        put_numbers(o, numbers, 1, held->length, 0, b->width);
    }
    free(numbers), free(firsts);
}

/* Write a column as a block; 0 to refuse. */
static int pack_column(output *o, const char *format, const struct ArrowArray *held) {
    int64_t at = o->length;
    block b = {.rows = held->length};
    int is_text = !strcmp(format, "vu"), is_small = !strcmp(format, "i");
    if (held->dictionary || held->n_buffers < 2 || !(is_text || is_small || !strcmp(format, "l") || !strcmp(format, "g"))) return 0;
    if (!padded_room(o, sizeof b)) return 0;
    b.nulls = put_known(o, held);
    if (b.nulls < b.rows) {
        if (is_text) pack_texts(o, held, &b);
        else if (is_small) pack_numbers(o, held, &b, 1);
        else pack_numbers(o, held, &b, 0);
    }
    if (o->failed) return 0;
    memcpy(o->bytes + at, &b, sizeof b);
    return 1;
}

/* Pack a frame in one chunk as a block for each column, to be freed by `ss_free_bytes`; null to refuse, or if there is no
 * memory. `ends` gets where each block ends. */
EXPORT uint8_t *ss_pack(struct ArrowArrayStream *frame, int64_t rows, int64_t columns, int64_t *ends) {
    struct ArrowSchema schema;
    struct ArrowArray held;
    output all = {0};
    int fits;
    if (rows < 1 || rows > INT32_MAX / 2 || frame->get_schema(frame, &schema)) return NULL;
    if (frame->get_next(frame, &held)) held.release = NULL;
    fits = held.release && schema.n_children == columns && held.n_children == columns && held.length == rows &&
           !held.offset && !has_nulls(&held);
    for (int64_t c = 0; fits && c < columns; c++) {
        fits = held.children[c]->length == rows && pack_column(&all, schema.children[c]->format, held.children[c]);
        ends[c] = all.length;
    }
    schema.release(&schema);
    if (held.release) held.release(&held);
    if (fits && !all.failed) return all.bytes;
    free(all.bytes);
    return NULL;
}

/* A column while it is put together of blocks. */
typedef struct {
    uint8_t *known, *texts;
    void *values;
    int64_t at, nulls, text_bytes; /* how much is done */
    int32_t *slots;                /* entry + 1 of a text, by its hash */
    view *entries;
    int64_t slot_count, entry_count;
} building;

/* Take over which of some rows are known; `bits` is null if all of them are. */
static void take_known(building *to, const uint8_t *bits, int64_t rows) {
    int shift = (int)(to->at & 7);
    uint8_t *out = to->known + (to->at >> 3);
    for (int64_t i = 0; i < rows; i += 8, out++) {
        unsigned byte = (bits ? bits[i >> 3] : 0xffu) & (rows - i < 8 ? (1u << (rows - i)) - 1 : 0xffu);
        out[0] |= (uint8_t)(byte << shift);
        if (shift) out[1] |= (uint8_t)(byte >> (8 - shift));
    }
}

#define TAKE_NARROW(type, narrow_type) \
    do { \
        const narrow_type *narrow = from; \
        for (int64_t i = 0; i < rows; i++) to[i] = (type)((uint64_t)least + narrow[i]); \
    } while (0)

#define TAKE_NUMBERS(type) \
    switch (width) { \
    case 0: for (int64_t i = 0; i < rows; i++) to[i] = (type)least; break; \
    case 1: TAKE_NARROW(type, uint8_t); break; \
    case 2: TAKE_NARROW(type, uint16_t); break; \
    case 4: TAKE_NARROW(type, uint32_t); break; \
    default: TAKE_NARROW(type, uint64_t); \
    }

static void take_longs(int64_t *to, const void *from, int64_t rows, int64_t least, int64_t width) { TAKE_NUMBERS(int64_t) }
static void take_smalls(int32_t *to, const void *from, int64_t rows, int64_t least, int64_t width) { TAKE_NUMBERS(int32_t) }

/* The view of an entry among the texts that are put together: each text is kept once. */
static view joined_entry(building *b, view one, const uint8_t *text) {
    uint64_t word, hash = one.length;
    if (one.length <= 12) return one;
    for (uint32_t k = 0; k + 8 < one.length; k += 8) {
        memcpy(&word, text + k, 8);
        hash = ((hash ^ hash >> 32) ^ word) * SPREAD;
    }
    memcpy(&word, text + one.length - 8, 8);
    hash = ((hash ^ hash >> 32) ^ word) * SPREAD;
    for (hash ^= hash >> 32;; hash++) {
        int32_t *slot = b->slots + (hash & (uint64_t)(b->slot_count - 1));
        const view *known = b->entries + *slot - 1;
        if (*slot && (known->length != one.length || memcmp(b->texts + known->offset, text, one.length))) continue;
        if (*slot) return *known;
        memcpy(b->texts + b->text_bytes, text, one.length);
        one.buffer = 0, one.offset = (int32_t)b->text_bytes;
        b->text_bytes += one.length;
        b->entries[b->entry_count] = one;
        *slot = (int32_t)++b->entry_count;
        return one;
    }
}

static int take_texts(building *b, const block *from, const uint8_t *body) {
    const view *entries = (const view *)body;
    const uint8_t *texts = body + PADDED(from->entries * (int64_t)sizeof *entries);
    const void *numbers = texts + PADDED(from->text_bytes);
    view *out = (view *)b->values + b->at, *joined = malloc((size_t)from->entries * sizeof *joined);
    if (!joined) return 0;
    for (int64_t i = 0; i < from->entries; i++) joined[i] = joined_entry(b, entries[i], texts + entries[i].offset * (entries[i].length > 12));
    switch (from->width) {
    case 0: for (int64_t i = 0; i < from->rows; i++) out[i] = joined[0]; break;
    case 1: for (int64_t i = 0; i < from->rows; i++) out[i] = joined[((const uint8_t *)numbers)[i]]; break;
    case 2: for (int64_t i = 0; i < from->rows; i++) out[i] = joined[((const uint16_t *)numbers)[i]]; break;
    default: for (int64_t i = 0; i < from->rows; i++) out[i] = joined[((const uint32_t *)numbers)[i]];
    }
    free(joined);
    return 1;
}

/* Put the blocks of a column below each other. Of frames without the column the block is null, and all rows are. */
static int32_t unpack_column(const uint8_t *const *blocks, const int64_t *rows, int64_t count, const char *format,
                             struct ArrowArray *array, struct ArrowSchema *schema) {
    building b = {0};
    int64_t all = 0, entries = 0, text_bytes = 0, *sizes = NULL;
    int is_text = *format == 'v', has_unknown = 0;
    int64_t size = is_text ? (int64_t)sizeof(view) : *format == 'i' ? 4 : 8;
    for (int64_t k = 0; k < count; k++) {
        const block *one = (const block *)blocks[k];
        all += rows[k];
        has_unknown |= !one || one->nulls;
        entries += one ? one->entries : 0;
        text_bytes += one ? one->text_bytes : 0;
    }
    if (text_bytes > INT32_MAX || entries > INT32_MAX / 4) return REFUSED;
    b.values = malloc((size_t)((all + 1) * size));
    b.known = has_unknown ? new_validity(all) : NULL;
    for (b.slot_count = 64; b.slot_count < 2 * entries; b.slot_count *= 2) continue;
    b.slots = is_text ? calloc((size_t)b.slot_count, sizeof *b.slots) : NULL;
    b.entries = is_text ? malloc((size_t)(entries + 1) * sizeof *b.entries) : NULL;
    b.texts = is_text ? malloc((size_t)text_bytes + 1) : NULL;
    sizes = is_text ? malloc(sizeof *sizes) : NULL;
    if (!b.values || (has_unknown && !b.known)) goto fail;
    if (is_text && (!b.slots || !b.entries || !b.texts || !sizes)) goto fail;
    for (int64_t k = 0; k < count; b.at += rows[k++]) {
        const block *one = (const block *)blocks[k];
        const uint8_t *body = (const uint8_t *)(one + 1);
        if (!one || one->nulls == one->rows) {
            memset((uint8_t *)b.values + b.at * size, 0, (size_t)(rows[k] * size));
            b.nulls += rows[k];
            continue;
        }
        if (has_unknown) take_known(&b, one->nulls ? body : NULL, one->rows);
        b.nulls += one->nulls;
        if (one->nulls) body += PADDED(one->rows / 8 + 1);
        if (is_text && !take_texts(&b, one, body)) goto fail;
        if (*format == 'i') take_smalls((int32_t *)b.values + b.at, body, one->rows, one->least, one->width);
        else if (!is_text) take_longs((int64_t *)b.values + b.at, body, one->rows, one->least, one->width);
    }
    free(b.slots), free(b.entries);
    if (is_text) *sizes = b.text_bytes;
    describe(schema, is_text ? "vu" : *format == 'i' ? "i" : *format == 'g' ? "g" : "l");
    return give_column(array, all, b.nulls, is_text ? 4 : 2, (void *[]){b.known, b.values, b.texts, sizes});
fail:
    free(b.values), free(b.known), free(b.slots), free(b.entries), free(b.texts), free(sizes);
    return NO_MEMORY;
}

/* Put packed frames below each other: `blocks` has those of each column one after the other, `formats` a letter for each
 * column: l, i, g, or v for texts. */
EXPORT int32_t ss_unpack(const uint8_t *const *blocks, const int64_t *rows, int64_t count, int64_t columns,
                         const char *formats, struct ArrowArray *array, struct ArrowSchema *schema) {
    int32_t status = new_struct(array, schema, columns);
    for (int64_t c = 0; !status && c < columns; c++) {
        struct ArrowArray *child = array->children[c];
        status = unpack_column(blocks + c * count, rows, count, formats + c, child, schema->children[c]);
        if (status) child->release = NULL, schema->children[c]->release = NULL;
        else name_child(schema, c);
    }
    for (int64_t k = 0; !status && k < count; k++) array->length += rows[k];
    if (status && array->release) array->release(array), schema->release(schema);
    return status;
}
