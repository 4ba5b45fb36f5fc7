#ifndef PINFOLD_CRAPIDJSON_CHECKER_H
#define PINFOLD_CRAPIDJSON_CHECKER_H

#include "CRapidJSON.h"
#include "Names.h"
#include "Text.h"

namespace pinfold {

/// An open array or object.
struct Open {
    bool is_object;
    /// The number of names before its first.
    uint32_t names;
    /// The number of bytes in the arena at that time.
    uint32_t arena;
    /// The number of an array's elements so far.
    uint32_t elements;
};

/// Receives RapidJSON's events: checks what RapidJSON does not, and builds the list of events.
class Checker {
public:
    explicit Checker(Memory &memory)
        : events_(memory), arena_(memory), open_(memory), names_(memory) {}

    void begin(const Text &text, const json_limits &limits, bool builds) {
        text_ = &text;
        begin_ = text.begin_;
        last_ = text.src_;
        limits_ = limits;
        builds_ = builds;
        // A guess that most texts stay below: the list then never grows, which would copy it.
        if (builds) events_.reserve((text.size_ / 8 + 16) & ~static_cast<size_t>(15));
    }

    bool Null() { return value(JSON_NULL); }
    bool Bool(bool is_true) { return value(is_true ? JSON_TRUE : JSON_FALSE); }

    bool RawNumber(const char *start, uint32_t length, bool) {
        if (length > limits_.digits)
            return fail(JSON_NUMBER_TOO_LONG, offset(start), length);
        return value(JSON_NUMBER, static_cast<uint32_t>(offset(start)), length);
    }

    bool String(const char *decoded, uint32_t length, bool) {
        const char *quote = opening_quote();
        if (is_unescaped(quote, length))
            return value(JSON_STRING, static_cast<uint32_t>(offset(quote + 1)), length);
        if (!has_no_surrogate(decoded, length, quote)) return false;
        const uint32_t at = static_cast<uint32_t>(arena_.count());
        if (builds_) keep(decoded, length);
        return value(JSON_ESCAPED_STRING, at, length);
    }

    bool Key(const char *decoded, uint32_t length, bool) {
        const char *quote = opening_quote();
        Name name;
        name.digest = Names::digest(decoded, length);
        name.length = length;
        name.place = static_cast<uint32_t>(offset(quote));
        name.escaped = !is_unescaped(quote, length);
        name.offset = name.place + 1;
        if (name.escaped) {
            if (!has_no_surrogate(decoded, length, quote)) return false;
            name.offset = static_cast<uint32_t>(arena_.count());
            keep(decoded, length);
        }
        if (!names_.add(name, open_.last().names, begin_, arena_.values()))
            return fail(JSON_DUPLICATE_NAME, name.place);
        event(name.escaped ? JSON_ESCAPED_NAME : JSON_NAME, name.offset, length);
        return true;
    }

    bool StartArray() { return start(JSON_ARRAY); }
    bool StartObject() { return start(JSON_OBJECT); }
    bool EndArray(uint32_t) { return end(JSON_ARRAY_END); }

    bool EndObject(uint32_t) {
        const size_t place =
            names_.repeated(open_.last().names, begin_, arena_.values());
        if (place != Names::kNone) return fail(JSON_DUPLICATE_NAME, place);
        return end(JSON_OBJECT_END);
    }

    /// Never called: numbers are not converted.
    bool Int(int) { return false; }
    bool Uint(unsigned) { return false; }
    bool Int64(int64_t) { return false; }
    bool Uint64(uint64_t) { return false; }
    bool Double(double) { return false; }

    /// The error found by this class; `status` is 0 if it found none.
    json_outcome outcome{JSON_READ, 0, 0, ""};

    const Buffer<json_event> &events() const { return events_; }
    const Buffer<char> &arena() const { return arena_; }

    bool path(size_t level, const char **name, size_t *length, size_t *index) const {
        if (level >= open_.count()) return false;
        const Open &open = open_[level];
        *name = nullptr;
        *length = 0;
        *index = open.elements;
        if (!open.is_object) return true;
        const size_t behind =
            level + 1 < open_.count() ? open_[level + 1].names : names_.count();
        if (behind == open.names) return false;
        const Name &last = names_[behind - 1];
        *name = (last.escaped ? arena_.values() : begin_) + last.offset;
        *length = last.length;
        return true;
    }

    bool fail(uint32_t status, size_t offset, uint32_t length = 0, const char *text = "") {
        outcome = json_outcome{status, length, offset, text};
        return false;
    }

private:
    size_t offset(const char *at) const { return static_cast<size_t>(at - begin_); }

    void event(uint32_t kind, uint32_t offset = 0, uint32_t length = 0) {
        if (builds_) events_.push(json_event{kind, offset, length});
        last_ = text_->src_;
    }

    /// Called before the text is processed: an array's elements are counted after each.
    bool counts() {
        if (values_ == limits_.values) return fail(JSON_TOO_MANY_VALUES, text_->Tell());
        ++values_;
        if (limits_.yield != nullptr && values_ % limits_.values_between == 0)
            limits_.yield(limits_.context);
        return true;
    }

    bool value(uint32_t kind, uint32_t offset = 0, uint32_t length = 0) {
        if (!counts()) return false;
        event(kind, offset, length);
        ended();
        return true;
    }

    void ended() {
        if (open_.count() != 0) ++open_.last().elements;
    }

    bool start(uint32_t kind) {
        if (!counts()) return false;
        if (open_.count() == limits_.depth) return fail(JSON_TOO_DEEP, text_->Tell());
        open_.push(Open{
            kind == JSON_OBJECT, static_cast<uint32_t>(names_.count()),
            static_cast<uint32_t>(arena_.count()), 0});
        event(kind);
        return true;
    }

    bool end(uint32_t kind) {
        const Open &open = open_.last();
        names_.truncate(open.names);
        if (!builds_) arena_.truncate(open.arena);
        open_.truncate(open_.count() - 1);
        event(kind);
        ended();
        return true;
    }

    /// Since the last event there has been only white space and punctuation.
    const char *opening_quote() const {
        const char *at = last_;
        while (*at != '"') ++at;
        return at;
    }

    /// The stream is just past the closing quotation mark. Each escape makes a string shorter.
    bool is_unescaped(const char *quote, uint32_t length) const {
        return static_cast<size_t>(text_->src_ - quote) == static_cast<size_t>(length) + 2;
    }

    void keep(const char *bytes, uint32_t length) {
        if (length != 0) std::memcpy(arena_.extend(length), bytes, length);
    }

    /// RapidJSON accepts the escape of a low surrogate without a preceding high one as a character.
    bool has_no_surrogate(const char *decoded, uint32_t length, const char *quote) {
        const char *end = decoded + length, *at = decoded;
        while ((at = static_cast<const char *>(std::memchr(at, 0xED, end - at))) != nullptr) {
            if (static_cast<unsigned char>(at[1]) >= 0xA0)
                return fail(
                    JSON_MALFORMED, offset(low_surrogate(quote)), 0,
                    "the escape of a surrogate without its other half");
            ++at;
        }
        return true;
    }

    /// The first escape of a low surrogate without a high one, in a string that has one.
    static const char *low_surrogate(const char *quote) {
        const char *at = quote + 1;
        for (;; ++at) {
            if (*at != '\\') continue;
            if (at[1] != 'u') {
                ++at;
                continue;
            }
            const bool surrogate = at[2] == 'd' || at[2] == 'D';
            if (surrogate && std::strchr("cdefCDEF", at[3]) != nullptr) return at;
            at += surrogate && std::strchr("89abAB", at[3]) != nullptr ? 11 : 5;
        }
    }

    /// Set only while the text is read.
    const Text *text_ = nullptr;
    const char *begin_ = nullptr;
    const char *last_ = nullptr;
    json_limits limits_{};
    bool builds_ = false;
    uint32_t values_ = 0;
    Buffer<json_event> events_;
    Buffer<char> arena_;
    Buffer<Open> open_;
    Names names_;
};

}  // namespace pinfold

#endif
