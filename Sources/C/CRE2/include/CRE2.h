#ifndef PINFOLD_CRE2_H
#define PINFOLD_CRE2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A compiled RE2 regular expression. It matches in time linear in the text, on a stack that does
/// not grow with it, and may be used by several threads at once.
struct re2_pattern;

/// Compiles an expression in RE2's syntax, UTF-8.
///
/// - `memory`: the maximum number of bytes for the expression, including what it keeps while
///   matching.
/// - `message`: the reason if the expression is refused (and NULL is returned), cut off at
///   `capacity` bytes, including the NUL.
struct re2_pattern *_Nullable re2_pattern_create(
    const char *_Nonnull expression, size_t length, int64_t memory, char *_Nonnull message,
    size_t capacity);
void re2_pattern_destroy(struct re2_pattern *_Nullable pattern);

/// The number of steps of the compiled expression: the maximum cost of a byte of text.
size_t re2_pattern_size(const struct re2_pattern *_Nonnull pattern);

/// Whether the expression matches anywhere in the text.
bool re2_pattern_matches(
    const struct re2_pattern *_Nonnull pattern, const void *_Nullable text, size_t length);

#ifdef __cplusplus
}
#endif

#endif
