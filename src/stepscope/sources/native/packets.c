/* Events of a timeline as packets of Perfetto's protobuf: what is alike in many of them comes ready, and times, whole
 * numbers and arrows are added. `native/packets.py` says what the arguments are. */
#include "arrow.h"
#include "output.h"

enum { PACKET = 0x0a, TIMESTAMP = 0x40, EVENT = 0x5a, ANNOTATION = 0x22 };
static const uint8_t END[] = {0x48, 0x02, 0x58}, FLOW[] = {0xf9, 0x02};
enum { MOST_VARINT = 10, FLOW_BYTES = 10 };

static int64_t varint_bytes(uint64_t value) {
    int64_t count = 1;
    while (value >>= 7) count++;
    return count;
}

static uint8_t *put_varint(uint8_t *to, uint64_t value) {
    for (; value > 127; value >>= 7) *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *put_text(uint8_t *to, const uint8_t *text, int64_t count) {
    if (count) memcpy(to, text, (size_t)count);
    return to + count;
}

/* Texts one after the other, and where each ends. */
typedef struct {
    const uint8_t *bytes;
    const int64_t *ends;
    int64_t count;
} texts;

static const uint8_t *text_of(const texts *t, int64_t number, int64_t *count) {
    int64_t from = number ? t->ends[number - 1] : 0;
    *count = t->ends[number] - from;
    return t->bytes + from;
}

typedef struct {
    const int64_t *at, *track, *body;
    const int64_t **numbers, **flows;
    struct ArrowArray *held_numbers, *held_flows;
    int64_t number_count, flow_count;
    texts bodies, heads, lead;
} events;

static int64_t annotation_bytes(const events *e, int64_t column, int64_t row) {
    int64_t head;
    text_of(&e->heads, column, &head);
    return head + varint_bytes((uint64_t)e->numbers[column][row]);
}

/* One packet; 0 if there is no memory or a body that there is not. */
static int put_event(output *o, const events *e, int64_t row) {
    int64_t body = e->body[row], count = 0, size, packet, lead;
    const uint8_t *text = NULL, *begin = text_of(&e->lead, 0, &lead);
    uint8_t *to;
    if (body >= e->bodies.count) return 0;
    if (body < 0) {
        size = (int64_t)sizeof END + varint_bytes((uint64_t)e->track[row]);
    } else {
        text = text_of(&e->bodies, body, &count);
        size = count;
        for (int64_t i = 0; i < e->number_count; i++) {
            if (!is_known(e->held_numbers + i, row)) continue;
            int64_t inner = annotation_bytes(e, i, row);
            size += 1 + varint_bytes((uint64_t)inner) + inner;
        }
        for (int64_t i = 0; i < e->flow_count; i++) {
            if (is_known(e->held_flows + i, row)) size += FLOW_BYTES;
        }
    }
    packet = lead + 2 + varint_bytes((uint64_t)e->at[row]) + varint_bytes((uint64_t)size) + size;
    if (!(to = room(o, packet + 1 + MOST_VARINT))) return 0;
    *to++ = PACKET;
    to = put_text(put_varint(to, (uint64_t)packet), begin, lead);
    *to++ = TIMESTAMP;
    to = put_varint(to, (uint64_t)e->at[row]);
    *to++ = EVENT;
    to = put_varint(to, (uint64_t)size);
    if (body < 0) {
        to = put_varint(put_text(to, END, sizeof END), (uint64_t)e->track[row]);
    } else {
        to = put_text(to, text, count);
        for (int64_t i = 0; i < e->number_count; i++) {
            int64_t head;
            const uint8_t *name = text_of(&e->heads, i, &head);
            if (!is_known(e->held_numbers + i, row)) continue;
            *to++ = ANNOTATION;
            to = put_varint(to, (uint64_t)annotation_bytes(e, i, row));
            to = put_varint(put_text(to, name, head), (uint64_t)e->numbers[i][row]);
        }
        for (int64_t i = 0; i < e->flow_count; i++) {
            uint64_t flow = (uint64_t)e->flows[i][row];
            if (!is_known(e->held_flows + i, row)) continue;
            to = put_text(to, FLOW, sizeof FLOW);
            for (int shift = 0; shift < 64; shift += 8) *to++ = (uint8_t)(flow >> shift);
        }
    }
    o->length = to - o->bytes;
    return 1;
}

/* The packets of `rows` events, for ss_free_bytes; null if the columns are anything else or there is no memory. */
EXPORT uint8_t *ss_packets(struct ArrowArrayStream **columns, int64_t rows, int64_t numbers, int64_t flows,
                           const uint8_t *const *bytes, const int64_t *const *ends, int64_t bodies, int64_t *length) {
    int64_t count = 3 + numbers + flows;
    struct ArrowArray *held = calloc((size_t)count, sizeof *held);
    const int64_t **values = calloc((size_t)count, sizeof *values);
    output out = {0};
    int made = held && values;
    if (made) {
        for (int64_t i = 0; i < count; i++) {
            values[i] = take_column(columns[i], rows, held + i);
            made = made && values[i] && (i > 2 || !has_nulls(held + i));
        }
        events e = {values[0], values[1], values[2], values + 3, values + 3 + numbers, held + 3, held + 3 + numbers,
                    numbers, flows, {bytes[0], ends[0], bodies}, {bytes[1], ends[1], numbers}, {bytes[2], ends[2], 1}};
        for (int64_t i = 0; made && i < rows; i++) made = put_event(&out, &e, i);
        release_columns(held, (int)count);
    }
    free(held), free(values);
    if (!made) {
        free(out.bytes);
        return NULL;
    }
    *length = out.length;
    return out.bytes;
}
