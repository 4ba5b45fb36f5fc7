#ifndef PINFOLD_CRAPIDJSON_H
#define PINFOLD_CRAPIDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The contents of a JSON text: a flat list of events, and the strings that had escapes.
struct json_document;

/// One event. `offset` and `length` are in bytes: in the text for numbers, strings and names
/// without escapes (which are the text's own bytes), in the arena for those with escapes; 0 for the
/// others.
struct json_event {
    uint32_t kind;
    uint32_t offset;
    uint32_t length;
};

enum {
    JSON_NULL = 0,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ESCAPED_STRING,
    JSON_NAME,
    JSON_ESCAPED_NAME,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_OBJECT,
    JSON_OBJECT_END,
};

/// Upper limits, each inclusive.
struct json_limits {
    /// Nested arrays and objects.
    uint32_t depth;
    /// Values, not counting names.
    uint32_t values;
    /// Bytes of a number.
    uint32_t digits;
    /// Bytes of memory for the reading, the events and the strings.
    size_t memory;
    /// Called with `context` after every `values_between` values; NULL to call nothing.
    void (*_Nullable yield)(void *_Nullable context);
    void *_Nullable context;
    uint32_t values_between;
};

enum {
    JSON_READ = 0,
    /// Not JSON: `text` is the reason.
    JSON_MALFORMED,
    /// Not UTF-8.
    JSON_ENCODING,
    JSON_TOO_DEEP,
    JSON_TOO_MANY_VALUES,
    /// `offset` and `length` are the number.
    JSON_NUMBER_TOO_LONG,
    /// `offset` is the quotation mark of the name's second occurrence; `length` is 0.
    JSON_DUPLICATE_NAME,
    /// More bytes than an event can express: 4 GiB or more.
    JSON_TOO_LARGE,
    JSON_NO_MEMORY,
};

struct json_outcome {
    uint32_t status;
    uint32_t length;
    /// The byte of the text at which the error is.
    size_t offset;
    /// Static; never null.
    const char *_Nonnull text;
};

/// NULL if there is no memory.
struct json_document *_Nullable json_document_create(void);
void json_document_destroy(struct json_document *_Nullable document);

/// Reads one text (RFC 8259), once for each document. With `builds`, events are created; without,
/// the text is only checked. `bytes` must not change while the events are used. Never throws, and
/// its use of the stack does not depend on the text.
struct json_outcome json_document_read(
    struct json_document *_Nonnull document, const void *_Nullable bytes, size_t count,
    struct json_limits limits, bool builds);

const struct json_event *_Nullable json_document_events(
    const struct json_document *_Nonnull document, size_t *_Nonnull count);

const void *_Nullable json_document_arena(const struct json_document *_Nonnull document);

/// After a failure, what is open at the error, outermost first: its name or index. Returns false if
/// there are fewer than `level` (from 0). `*name` is valid until the document is destroyed; it is
/// NULL for an element of an array, whose number is then `*index`.
bool json_document_open(
    const struct json_document *_Nonnull document, size_t level,
    const char *_Nullable *_Nonnull name, size_t *_Nonnull length, size_t *_Nonnull index);

#ifdef __cplusplus
}
#endif

#endif
