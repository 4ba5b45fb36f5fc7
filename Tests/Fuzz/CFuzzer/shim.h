#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/// libFuzzer without a `main` of its own: runs until it finds something, or until its arguments let
/// it end.
int LLVMFuzzerRunDriver(
    int *_Nonnull argc, char *_Nullable *_Nullable *_Nonnull argv,
    int (*_Nonnull callback)(const uint8_t *_Nullable data, size_t size));
