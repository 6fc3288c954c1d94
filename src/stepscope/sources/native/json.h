/* Valid JSON values, as spans of a text. */
#ifndef STEPSCOPE_JSON_H
#define STEPSCOPE_JSON_H

#include "spans.h"

typedef struct {
    const uint8_t *text, *at, *end;
} reader;

static inline void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

/* At the first character after the opening quote; moves to the place after the closing one. 0 if it is not valid. */
int read_string(reader *r, span *out);

/* At a value; moves to the place after it. 0 if it is not valid, or is for Python to judge. */
int read_value(reader *r, span *out);

#endif
