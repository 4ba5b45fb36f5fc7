#ifndef PINFOLD_CRAPIDJSON_NAMES_H
#define PINFOLD_CRAPIDJSON_NAMES_H

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "Memory.h"

namespace pinfold {

/// A member's name: where its bytes are, and its position in the text.
struct Name {
    uint64_t digest;
    /// In the text, or in the arena if it had escapes.
    uint32_t offset;
    uint32_t length;
    /// The offset of its quotation mark in the text.
    uint32_t place;
    bool escaped;
};

/// The names of the open objects; an object's come after those of the enclosing object.
///
/// While an object has few names, each is compared with those before it. Many are sorted when their
/// object ends: n log n comparisons for any names, whereas a hash table would need a secret to
/// withstand names that were chosen to collide.
class Names {
public:
    explicit Names(Memory &memory) : names_(memory) {}

    static const size_t kFew = 16;
    static const size_t kNone = SIZE_MAX;

    size_t count() const { return names_.count(); }
    void truncate(size_t count) { names_.truncate(count); }
    const Name &operator[](size_t index) const { return names_[index]; }

    /// Adds a name to the object whose names begin at `first`. Returns false if it duplicates one
    /// of its few names.
    bool add(const Name &name, size_t first, const char *text, const char *arena) {
        const size_t count = names_.count() - first;
        bool is_new = true;
        if (count < kFew)
            for (size_t index = first; index < names_.count() && is_new; ++index)
                is_new = compare(names_[index], name, text, arena) != 0;
        names_.push(name);
        return is_new;
    }

    /// The position of the first name, in text order, that occurs in the object for the second
    /// time. Sorts the object's names; the one found is then the last.
    size_t repeated(size_t first, const char *text, const char *arena) {
        if (names_.count() - first <= kFew) return kNone;
        Name *begin = names_.values() + first, *end = names_.values() + names_.count();
        std::sort(begin, end, [=](const Name &left, const Name &right) {
            const int order = compare(left, right, text, arena);
            return order != 0 ? order < 0 : left.place < right.place;
        });
        Name *found = nullptr;
        for (Name *name = begin + 1; name < end; ++name)
            if (compare(name[-1], name[0], text, arena) == 0
                && (found == nullptr || name->place < found->place))
                found = name;
        if (found == nullptr) return kNone;
        std::swap(*found, end[-1]);
        return end[-1].place;
    }

    static uint64_t digest(const char *bytes, size_t count) {
        uint64_t first = 0, last = 0;
        if (count >= 8) {
            std::memcpy(&first, bytes, 8);
            std::memcpy(&last, bytes + count - 8, 8);
        } else {
            std::memcpy(&first, bytes, count);
        }
        const uint64_t mixed = first * UINT64_C(0x9E3779B97F4A7C15)
            ^ (last * UINT64_C(0xC2B2AE3D27D4EB4F) + count);
        return mixed ^ mixed >> 32;
    }

private:
    static int compare(
        const Name &left, const Name &right, const char *text, const char *arena) {
        if (left.digest != right.digest) return left.digest < right.digest ? -1 : 1;
        if (left.length != right.length) return left.length < right.length ? -1 : 1;
        if (left.length == 0) return 0;
        return std::memcmp(
            (left.escaped ? arena : text) + left.offset,
            (right.escaped ? arena : text) + right.offset, left.length);
    }

    Buffer<Name> names_;
};

}  // namespace pinfold

#endif
