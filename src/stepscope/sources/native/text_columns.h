/* Spans of one field -> a column of texts. */
#ifndef STEPSCOPE_TEXT_COLUMNS_H
#define STEPSCOPE_TEXT_COLUMNS_H

#include "arrow.h"

/* One field of the rows `order[0 ... rows)`. `as_json`: lists, objects and all literals are kept as they are written;
 * otherwise the column is refused if it has any, or a number that Python writes in another way. */
int32_t text_column(const scan *s, const uint8_t *text, int32_t slot, const int32_t *order, int64_t rows, int as_json,
                    struct ArrowArray *array);

#endif
