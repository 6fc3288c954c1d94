/* Text in JSON strings: UTF-8 and escapes. */
#ifndef STEPSCOPE_TEXT_H
#define STEPSCOPE_TEXT_H

#include <stdint.h>

/* Whether a text is valid UTF-8. */
int is_utf8(const uint8_t *p, int64_t length);

/* The end of the escape that begins at a backslash; null if it is not valid. A lone surrogate is not. */
const uint8_t *escape_end(const uint8_t *p, const uint8_t *end);

/* Copy a string's content without its escapes, which are valid; returns its length, at most that of the source. */
int64_t unescape(const uint8_t *p, uint32_t length, uint8_t *out);

#endif
