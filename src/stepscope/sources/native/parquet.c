/* A column of a table as a column chunk of a Parquet file: a dictionary page if that makes it smaller, and a data page.
 * Whole numbers are kept as packed differences or as numbers of a dictionary, texts as such; dictionaries and their
 * numbers are compressed. */
#include <stdlib.h>
#include <string.h>

#include "distinct.h"
#include "output.h"

#define MOST_ROWS (1 << 24)
#define LZ4_BITS 12
#define LEAST_MATCH 4
#define LAST_MATCH 12 /* before the end, no match begins */
#define LAST_LITERALS 5
#define BLOCK 128
#define MINI_BLOCK 32

enum codec { UNCOMPRESSED = 0, LZ4_RAW = 7 };
enum page { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum encoding { PLAIN = 0, RLE = 3, DELTA_BINARY_PACKED = 5, RLE_DICTIONARY = 8 };

static void put_little(output *o, uint64_t number, int bytes) {
    uint8_t *to = room(o, 8);
    for (int i = 0; to && i < bytes; i++) to[i] = (uint8_t)(number >> 8 * i);
    if (to) o->length += bytes;
}

static void put_varint(output *o, uint64_t number) {
    uint8_t out[10];
    int count = 0;
    for (; number >= 128; number >>= 7) out[count++] = (uint8_t)(number | 128);
    out[count++] = (uint8_t)number;
    put(o, out, count);
}

static void put_zigzag(output *o, int64_t number) { put_varint(o, (uint64_t)number << 1 ^ (uint64_t)(number >> 63)); }

static int bits_of(uint64_t number) { return number ? 64 - __builtin_clzll(number) : 0; }

static void store_little(uint8_t *to, uint64_t number) {
    if (LITTLE_ENDIAN_HOST) memcpy(to, &number, 8);
    else for (int k = 0; k < 8; k++) to[k] = (uint8_t)(number >> 8 * k);
}

/* `count` numbers of `bits` bits each, the lowest bits first; the last byte is filled with zeros. */
static void put_packed(output *o, const uint64_t *numbers, int64_t count, int bits) {
    uint8_t *to = room(o, count * bits / 8 + 16);
    uint64_t held = 0;
    int filled = 0;
    if (!to || !bits) return;
    for (int64_t i = 0; i < count; i++) {
        held |= numbers[i] << filled;
        filled += bits;
        if (filled < 64) continue;
        store_little(to, held);
        to += 8;
        filled -= 64;
        held = filled ? numbers[i] >> (bits - filled) : 0;
    }
    for (; filled > 0; filled -= 8, held >>= 8) *to++ = (uint8_t)held;
    o->length = to - o->bytes;
}

/* Numbers of at most `bits` bits as runs of equal ones, and packed in groups of eight between them. */
static void put_runs(output *o, const uint32_t *numbers, int64_t count, int bits) {
    uint64_t group[512];
    for (int64_t i = 0, first = 0; first < count;) {
        int64_t run = 1, lacking = -(i - first) & 7, behind;
        while (i + run < count && numbers[i + run] == numbers[i]) run++;
        if (run < 8 + lacking) { /* too short: it is packed with those before it */
            i += run;
            if (i < count) continue;
            run = lacking = 0;
        }
        behind = i + lacking;
        if (behind > first) put_varint(o, (uint64_t)((behind - first + 7) / 8) << 1 | 1);
        for (int64_t from = first; from < behind;) {
            int64_t some = behind - from < 512 ? behind - from : 512, whole = (some + 7) / 8 * 8;
            for (int64_t k = 0; k < whole; k++) group[k] = k < some ? numbers[from + k] : 0;
            put_packed(o, group, whole, bits);
            from += some;
        }
        if (run) {
            put_varint(o, (uint64_t)(run - lacking) << 1);
            put_little(o, numbers[i], (bits + 7) / 8);
        }
        i += run;
        first = i;
    }
}

/* Differences of neighbours, packed; 0 if some are wider than `most_bits`. They wrap around. */
static int put_differences(output *o, const int64_t *values, int64_t count, int most_bits) {
    uint64_t packed[BLOCK];
    put_varint(o, BLOCK);
    put_varint(o, BLOCK / MINI_BLOCK);
    put_varint(o, (uint64_t)count);
    put_zigzag(o, values[0]);
    for (int64_t i = 1; i < count; i += BLOCK) {
        int64_t size = count - i < BLOCK ? count - i : BLOCK, least = INT64_MAX;
        uint8_t widths[BLOCK / MINI_BLOCK] = {0};
        for (int64_t k = 0; k < size; k++) {
            packed[k] = (uint64_t)values[i + k] - (uint64_t)values[i + k - 1];
            if ((int64_t)packed[k] < least) least = (int64_t)packed[k];
        }
        for (int64_t k = 0; k < BLOCK; k++) packed[k] = k < size ? packed[k] - (uint64_t)least : 0;
        for (int part = 0; part < BLOCK / MINI_BLOCK; part++) {
            uint64_t any = 0;
            for (int k = 0; k < MINI_BLOCK; k++) any |= packed[part * MINI_BLOCK + k];
            widths[part] = (uint8_t)bits_of(any);
            if (widths[part] > most_bits) return 0;
        }
        put_zigzag(o, least);
        put(o, widths, sizeof widths);
        for (int part = 0; part * MINI_BLOCK < size; part++) {
            put_packed(o, packed + part * MINI_BLOCK, MINI_BLOCK, widths[part]);
        }
    }
    return 1;
}

static uint32_t four_bytes(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* The part of a length that is beyond the 15 of a token. */
static void put_rest(output *o, int64_t length) {
    if (length < 15) return;
    for (length -= 15; length >= 255; length -= 255) put_little(o, 255, 1);
    put_little(o, (uint64_t)length, 1);
}

/* Literals, and then a match if `length` is not 0. */
static void put_sequence(output *o, const uint8_t *literals, int64_t count, int64_t distance, int64_t length) {
    int64_t most = count < 15 ? count : 15, beyond = length ? length - LEAST_MATCH : 0;
    put_little(o, (uint64_t)(most << 4 | (beyond < 15 ? beyond : 15)), 1);
    put_rest(o, count);
    put(o, literals, count);
    if (!length) return;
    put_little(o, (uint64_t)distance, 2);
    put_rest(o, beyond);
}

/* A body as a block of LZ4: numbers of names repeat as the calls do. */
static void put_lz4(output *o, const output *body) {
    const uint8_t *in = body->bytes;
    int64_t length = body->length, done = 0;
    uint32_t seen[1 << LZ4_BITS] = {0}; /* the place behind four bytes that were seen */
    for (int64_t i = 0; i < length - LAST_MATCH;) {
        uint32_t word = four_bytes(in + i), *slot = seen + (word * 2654435761u >> (32 - LZ4_BITS));
        int64_t from = (int64_t)*slot - 1, size = LEAST_MATCH;
        *slot = (uint32_t)i + 1;
        if (from < 0 || i - from > UINT16_MAX || four_bytes(in + from) != word) {
            i += 1 + ((i - done) >> 6);
            continue;
        }
        while (i + size < length - LAST_LITERALS && in[i + size] == in[from + size]) size++;
        put_sequence(o, in + done, i - done, i - from, size);
        done = i += size;
    }
    put_sequence(o, in + done, length - done, 0, 0);
}

/* A page: its header in Thrift's compact form, and its body. `length` is that of the body before compression. */
static void put_page(output *o, enum page kind, const output *body, int64_t length, int64_t values,
                     enum encoding encoding) {
    put(o, "\x15", 1), put_zigzag(o, kind);
    put(o, "\x15", 1), put_zigzag(o, length);
    put(o, "\x15", 1), put_zigzag(o, body->length);
    put(o, kind == DATA_PAGE ? "\x2c" : "\x4c", 1);
    put(o, "\x15", 1), put_zigzag(o, values);
    put(o, "\x15", 1), put_zigzag(o, encoding);
    if (kind == DATA_PAGE) { /* how levels are encoded */
        put(o, "\x15", 1), put_zigzag(o, RLE);
        put(o, "\x15", 1), put_zigzag(o, RLE);
    }
    put(o, "\0\0", 2);
    put(o, body->bytes, body->length);
}

static void put_value(output *o, const column *c, int64_t place) {
    if (c->views) {
        put_little(o, c->views[place].length, 4);
        put(o, text_of(c, c->views + place), c->views[place].length);
    } else put_little(o, (uint64_t)c->values[place], c->format == 'i' || c->format == 's' ? 4 : 8);
}

/* Whether each row has a value. */
static int put_levels(output *o, const column *c) {
    output levels = {0};
    uint32_t *known;
    if (c->count == c->rows) { /* one run */
        put_varint(&levels, (uint64_t)c->rows << 1);
        put_little(&levels, 1, 1);
    } else {
        if (!(known = malloc((size_t)c->rows * sizeof *known))) return 0;
        for (int64_t i = 0; i < c->rows; i++) known[i] = (uint32_t)is_known(&c->held, i);
        put_runs(&levels, known, c->rows, 1);
        free(known);
    }
    put_little(o, (uint64_t)levels.length, 4);
    put(o, levels.bytes, levels.length);
    o->failed |= levels.failed;
    free(levels.bytes);
    return 1;
}

/* Write the values of the data page, and the dictionary page into `dictionary` if there is one. Returns how, or REFUSED
 * for texts that are better compressed. */
static int put_values(output *data, output *dictionary, column *c) {
    output differences = {0};
    int is_whole = c->format == 'l' || c->format == 'i' || c->format == 's', bits;
    int has_differences = is_whole && c->count && put_differences(&differences, c->values, c->count, c->format == 'l' ? 64 : 32);
    int encoding = PLAIN;
    if (c->format == 'b') {
        uint64_t group[8];
        for (int64_t i = 0; i < c->count; i += 8) {
            int64_t some = c->count - i < 8 ? c->count - i : 8;
            for (int64_t k = 0; k < 8; k++) group[k] = k < some ? (uint64_t)c->values[i + k] : 0;
            put_packed(data, group, 8, 1);
        }
        return PLAIN;
    }
    if (c->distinct) {
        int64_t before = data->length;
        bits = c->distinct > 1 ? bits_of((uint64_t)c->distinct - 1) : 1;
        for (int64_t i = 0; i < c->distinct; i++) put_value(dictionary, c, c->firsts[i]);
        put_little(data, (uint64_t)bits, 1);
        put_runs(data, c->codes, c->count, bits);
        encoding = RLE_DICTIONARY;
        if (has_differences && differences.length < data->length - before + dictionary->length) {
            data->length = before;
            dictionary->length = 0;
            encoding = DELTA_BINARY_PACKED;
        }
    } else if (has_differences) encoding = DELTA_BINARY_PACKED;
    if (encoding == DELTA_BINARY_PACKED) put(data, differences.bytes, differences.length);
    if (encoding == PLAIN && c->views && c->count) encoding = REFUSED;
    if (encoding == PLAIN) {
        for (int64_t i = 0; i < c->count; i++) put_value(data, c, i);
    }
    data->failed |= differences.failed;
    free(differences.bytes);
    return encoding;
}

/* The pages of a column, to be freed by `ss_free_bytes`; null if they are better written in another way or there is no
 * memory. `facts` gets the bytes, those of them that are the dictionary page, how values are encoded and compressed, and
 * the bytes without compression. */
EXPORT uint8_t *ss_pages(struct ArrowArrayStream *stream, int64_t rows, int64_t *facts) {
    column c = {.rows = rows};
    output data = {0}, dictionary = {0}, packed[2] = {{0}, {0}}, all = {0};
    int encoding = REFUSED, codec = UNCOMPRESSED;
    if (rows < 1 || rows > MOST_ROWS || !take_values(stream, rows, &c)) goto done;
    if (c.format != 'b' && c.count && !find_distinct(&c)) goto done;
    if (!put_levels(&data, &c)) goto done;
    encoding = put_values(&data, &dictionary, &c);
    if (encoding == REFUSED || data.failed || dictionary.failed || data.length > INT32_MAX / 2) goto done;
    if (encoding == RLE_DICTIONARY) {
        put_lz4(packed, &data);
        put_lz4(packed + 1, &dictionary);
        if (packed[0].failed || packed[1].failed) goto done;
        if (packed[0].length + packed[1].length < data.length + dictionary.length) codec = LZ4_RAW;
    }
    if (dictionary.length) {
        put_page(&all, DICTIONARY_PAGE, codec ? packed + 1 : &dictionary, dictionary.length, c.distinct, PLAIN);
    }
    facts[1] = all.length;
    put_page(&all, DATA_PAGE, codec ? packed : &data, data.length, rows, (enum encoding)encoding);
    facts[0] = facts[4] = all.length;
    facts[2] = encoding;
    facts[3] = codec;
    if (codec) facts[4] += data.length + dictionary.length - packed[0].length - packed[1].length;
done:
    release_values(&c);
    free(data.bytes), free(dictionary.bytes), free(packed[0].bytes), free(packed[1].bytes);
    if (!all.failed && all.length) return all.bytes;
    free(all.bytes);
    return NULL;
}

EXPORT void ss_free_bytes(uint8_t *bytes) { free(bytes); }
