#ifndef PINFOLD_CRAPIDJSON_TEXT_H
#define PINFOLD_CRAPIDJSON_TEXT_H

// Our replacements in RapidJSON: its assertions throw, its stack throws when there is no memory,
// and its names are in a separate namespace, so that another program's copy, built differently,
// does not get mixed up with this one.
#include <stdexcept>

#include "Memory.h"

namespace pinfold {
[[noreturn]] inline void broken_assertion() { throw std::logic_error("assertion"); }
}  // namespace pinfold

#define RAPIDJSON_ASSERT(condition) \
    (static_cast<bool>(condition) ? static_cast<void>(0) : pinfold::broken_assertion())
#define RAPIDJSON_NAMESPACE pinfold_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace pinfold_rapidjson {
#define RAPIDJSON_NAMESPACE_END }

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace pinfold {

/// The bytes of a text; unlike RapidJSON's string streams it needs no NUL after them.
struct Text : pinfold_rapidjson::MemoryStream {
    Text(const char *bytes, size_t count) : MemoryStream(bytes, count) {}

    /// Never called: texts are not modified in place.
    void *Push(pinfold_rapidjson::SizeType) { pinfold::broken_assertion(); }
};

/// How many of the next bytes are ASCII that stands for itself in a string.
inline size_t plain_prefix(const char *text, const char *end) {
    const char *at = text;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');
    while (end - at >= 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
        // Compared as signed bytes, so that non-ASCII bytes are less than a space, too.
        const __m128i ends = _mm_or_si128(
            _mm_cmplt_epi8(bytes, space),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, escape)));
        const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(ends));
        if (mask != 0) return static_cast<size_t>(at - text) + __builtin_ctz(mask);
        at += 16;
    }
#endif
    while (at != end) {
        const unsigned char byte = static_cast<unsigned char>(*at);
        if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
        ++at;
    }
    return static_cast<size_t>(at - text);
}

/// The length of the character that begins with a byte over 0x7F, by the table of Unicode 3.9
/// (3-7): 0 if it is invalid, which includes overlong forms, surrogates, code points over U+10FFFF,
/// and truncated characters.
inline size_t character_length(const char *text, const char *end) {
    const unsigned char *byte = reinterpret_cast<const unsigned char *>(text);
    const ptrdiff_t left = end - text;
    const unsigned char first = byte[0];
    if (first < 0xC2 || first > 0xF4 || left < 2) return 0;
    unsigned char low = 0x80, high = 0xBF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (byte[1] < low || byte[1] > high) return 0;
    const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (left < length) return 0;
    for (int index = 2; index < length; ++index)
        if ((byte[index] & 0xC0) != 0x80) return 0;
    return static_cast<size_t>(length);
}

/// UTF-8 in whole runs. RapidJSON validates an encoding character by character, at a third of the
/// speed; its faster scan of strings does not validate, and accepts U+001A to U+001F as text.
struct RunsOfUTF8 : pinfold_rapidjson::UTF8<> {
    /// Consumes everything up to the next quotation mark, backslash, control character or the end.
    /// Returns false if it is not UTF-8: the stream is then at the first invalid byte.
    template <typename Output>
    static bool Validate(Text &text, Output &output) {
        const char *at = text.src_;
        bool valid = true;
        for (;;) {
            at += plain_prefix(at, text.end_);
            if (at == text.end_ || static_cast<unsigned char>(*at) < 0x80) break;
            const size_t length = character_length(at, text.end_);
            if (length == 0) {
                valid = false;
                break;
            }
            at += length;
        }
        const size_t count = static_cast<size_t>(at - text.src_);
        if (count != 0)
            std::memcpy(
                output.Push(static_cast<pinfold_rapidjson::SizeType>(count)), text.src_, count);
        text.src_ = at;
        return valid;
    }
};

}  // namespace pinfold

namespace pinfold_rapidjson {

template <>
inline void SkipWhitespace(pinfold::Text &text) {
    const char *at = text.src_, *end = text.end_;
    if (at != end && *at > ' ') return;
    for (;;) {
        uint64_t eight;
        while (end - at >= 8) {
            std::memcpy(&eight, at, 8);
            if (eight != UINT64_C(0x2020202020202020)) break;
            at += 8;
        }
        if (at == end || (*at != ' ' && *at != '\n' && *at != '\r' && *at != '\t')) break;
        ++at;
    }
    text.src_ = at;
}

}  // namespace pinfold_rapidjson

#endif
