#ifndef PINFOLD_IMAGE_SINK_H
#define PINFOLD_IMAGE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes written one after the other, up to a maximum. */
struct sink {
    uint8_t *bytes;
    size_t count, capacity, maximum;
};

/* Makes space for `more` bytes after the count. Returns 0, or the status. */
static inline int sink_reserve(struct sink *sink, size_t more, int too_many, int no_memory) {
    if (more > sink->maximum - sink->count) return too_many;
    if (more <= sink->capacity - sink->count) return 0;
    size_t capacity = sink->capacity < 32768 ? 65536 : sink->capacity * 2;
    if (capacity < sink->count + more) capacity = sink->count + more;
    if (capacity > sink->maximum) capacity = sink->maximum;
    uint8_t *bytes = realloc(sink->bytes, capacity);
    if (bytes == NULL) return no_memory;
    sink->bytes = bytes;
    sink->capacity = capacity;
    return 0;
}

/* A copy of an ICC profile; NULL if it is too large, or there is no memory. */
static inline uint8_t *profile_copy(const void *bytes, size_t count, size_t maximum) {
    if (bytes == NULL || count == 0 || count > maximum) return NULL;
    uint8_t *copy = malloc(count);
    if (copy != NULL) memcpy(copy, bytes, count);
    return copy;
}

#endif
