#include "CRE2.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <re2/re2.h>

struct re2_pattern {
    re2_pattern(const re2::StringPiece &expression, const RE2::Options &options)
        : expression(expression, options) {}

    RE2 expression;
};

namespace {

void say(const char *words, char *message, size_t capacity) {
    if (capacity == 0) return;
    const size_t length = std::min(std::strlen(words), capacity - 1);
    std::memcpy(message, words, length);
    message[length] = 0;
}

}  // namespace

extern "C" {

re2_pattern *re2_pattern_create(
    const char *expression, size_t length, int64_t memory, char *message, size_t capacity) {
    try {
        RE2::Options options;
        options.set_log_errors(false);
        options.set_never_capture(true);
        options.set_max_mem(memory);
        auto *pattern = new re2_pattern(re2::StringPiece(expression, length), options);
        if (pattern->expression.ok()) return pattern;
        say(pattern->expression.error().c_str(), message, capacity);
        delete pattern;
    } catch (...) {
        say("no memory", message, capacity);
    }
    return nullptr;
}

void re2_pattern_destroy(re2_pattern *pattern) { delete pattern; }

size_t re2_pattern_size(const re2_pattern *pattern) {
    return static_cast<size_t>(std::max(1, pattern->expression.ProgramSize()));
}

bool re2_pattern_matches(const re2_pattern *pattern, const void *text, size_t length) {
    try {
        const re2::StringPiece piece(static_cast<const char *>(text), length);
        return pattern->expression.Match(piece, 0, length, RE2::UNANCHORED, nullptr, 0);
    } catch (...) {
        return false;
    }
}

}  // extern "C"
