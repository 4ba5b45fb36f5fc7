#ifndef PINFOLD_CRAPIDJSON_MEMORY_H
#define PINFOLD_CRAPIDJSON_MEMORY_H

#include <cstddef>
#include <cstdlib>
#include <new>

namespace pinfold {

/// The memory that one reading may use. A request beyond it throws `std::bad_alloc`, as if memory
/// had run out.
class Memory {
public:
    void allow(size_t bytes) { left_ = bytes; }

    void *resize(void *block, size_t old_size, size_t new_size) {
        if (new_size > old_size && new_size - old_size > left_) throw std::bad_alloc();
        if (new_size == 0) {
            std::free(block);
            left_ += old_size;
            return nullptr;
        }
        void *resized = std::realloc(block, new_size);
        if (resized == nullptr) throw std::bad_alloc();
        left_ = left_ + old_size - new_size;
        return resized;
    }

private:
    size_t left_ = SIZE_MAX;
};

/// The allocator of RapidJSON's stack. RapidJSON's own returns NULL when there is no memory, and
/// the stack would write there.
class Allocator {
public:
    static const bool kNeedFree = true;

    Allocator() : memory_(nullptr) {}
    explicit Allocator(Memory *memory) : memory_(memory) {}

    void *Malloc(size_t size) { return Realloc(nullptr, 0, size); }

    void *Realloc(void *block, size_t old_size, size_t new_size) {
        if (memory_ == nullptr) throw std::bad_alloc();
        return memory_->resize(block, old_size, new_size);
    }

    static void Free(void *block) { std::free(block); }

private:
    Memory *memory_;
};

/// A growing array of plain values.
template <typename Value>
class Buffer {
public:
    explicit Buffer(Memory &memory) : memory_(memory) {}
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { std::free(values_); }

    void reserve(size_t capacity) {
        if (capacity <= capacity_) return;
        values_ = static_cast<Value *>(memory_.resize(
            values_, capacity_ * sizeof(Value), capacity * sizeof(Value)));
        capacity_ = capacity;
    }

    void push(const Value &value) {
        if (count_ == capacity_) reserve(capacity_ == 0 ? 16 : capacity_ * 2);
        values_[count_++] = value;
    }

    /// Makes space for `count` more values after the last one, which are counted.
    Value *extend(size_t count) {
        if (capacity_ - count_ < count) {
            size_t needed = count_ + count;
            reserve(needed < capacity_ * 2 ? capacity_ * 2 : needed);
        }
        Value *start = values_ + count_;
        count_ += count;
        return start;
    }

    void truncate(size_t count) { count_ = count; }
    size_t count() const { return count_; }
    Value *values() const { return values_; }
    Value &operator[](size_t index) const { return values_[index]; }
    Value &last() const { return values_[count_ - 1]; }

private:
    Memory &memory_;
    Value *values_ = nullptr;
    size_t count_ = 0;
    size_t capacity_ = 0;
};

}  // namespace pinfold

#endif
