#include "keys.h"

static inline uint8_t hash_key(const uint8_t *key, uint32_t length) {
    return length ? (uint8_t)(length * 31 + key[0] * 7 + key[length - 1] * 13 + key[length / 2]) : 0;
}

void index_keys(event_reader *e, const word_list *wanted) {
    e->wanted = wanted;
    memset(e->buckets, -1, sizeof e->buckets);
    for (int32_t i = 0; i < wanted->count; i++) {
        int32_t from = i ? wanted->ends[i - 1] : 0;
        uint8_t h = hash_key(wanted->words + from, (uint32_t)(wanted->ends[i] - from));
        e->next[i] = e->buckets[h];
        e->buckets[h] = (int16_t)i;
    }
}

/* The field of an argument, or -1. */
static int find_argument(const event_reader *e, const uint8_t *key, uint32_t length) {
    const word_list *wanted = e->wanted;
    for (int i = e->buckets[hash_key(key, length)]; i >= 0; i = e->next[i]) {
        int32_t from = i ? wanted->ends[i - 1] : 0;
        if ((uint32_t)(wanted->ends[i] - from) == length && !memcmp(wanted->words + from, key, length))
            return BASE_FIELDS + i;
    }
    return -1;
}

/* The field of an event's own key, or -1. */
static int find_field(const uint8_t *key, uint32_t length) {
    switch (length) {
    case 2:
        if (key[0] == 'p' && key[1] == 'h') return F_PH;
        if (key[0] == 't' && key[1] == 's') return F_TS;
        if (key[0] == 'i' && key[1] == 'd') return F_ID;
        return -1;
    case 3:
        if (!memcmp(key, "cat", 3)) return F_CAT;
        if (!memcmp(key, "pid", 3)) return F_PID;
        if (!memcmp(key, "tid", 3)) return F_TID;
        if (!memcmp(key, "dur", 3)) return F_DUR;
        return -1;
    case 4:
        if (!memcmp(key, "name", 4)) return F_NAME;
        if (!memcmp(key, "args", 4)) return F_ARGS;
        return -1;
    default:
        return -1;
    }
}

/* The place in a row of an argument's field; -1 if there is none left. */
static int slot_for(event_reader *e, int field) {
    int16_t *slot = e->s->slots + field;
    if (*slot < 0 && e->slots == e->s->width) e->is_full = 1;
    else if (*slot < 0) *slot = e->slots++;
    return *slot;
}

int read_other_key(event_reader *e, int arguments, uint64_t head) {
    reader *r = &e->r;
    const uint8_t *start = r->at, *word;
    int place = SEEN_PLACE(head), known = r->end - start >= 8;
    seen_key *one = &e->seen[arguments][place];
    span key;
    if (known && is_key(one, r, head)) {
        r->at += one->length;
        skip_space(r);
        return place;
    }
    if (r->at >= r->end || *r->at++ != '"' || !read_string(r, &key) || KIND(key) == ESCAPED) return -1;
    skip_space(r);
    if (r->at >= r->end || *r->at++ != ':') return -1;
    skip_space(r);
    word = r->text + START(key);
    one->text = start;
    one->length = (uint32_t)(r->at - start);
    one->mask = !known ? 0 : one->length >= 8 ? ~0ull : HEAD_MASK(one->length);
    one->head = head & one->mask;
    one->field = (int16_t)(arguments ? find_argument(e, word, LENGTH(key)) : find_field(word, LENGTH(key)));
    if (arguments && one->field >= 0) one->field = (int16_t)slot_for(e, one->field);
    return e->is_full ? -1 : place;
}
