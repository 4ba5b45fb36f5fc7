#include <stdlib.h>

#include "CImages.h"

uint8_t *image_allocate(uint32_t width, uint32_t height) {
    size_t row, size;
    if (__builtin_mul_overflow((size_t)width, (size_t)4, &row)
        || __builtin_mul_overflow(row, (size_t)height, &size) || size == 0)
        return NULL;
    return calloc(size, 1);
}

void image_free(void *memory) {
    free(memory);
}
