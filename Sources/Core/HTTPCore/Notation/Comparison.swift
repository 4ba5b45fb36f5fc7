extension Span where Element == UInt8 {
    /// Whether the bytes equal `text`, case-sensitively.
    @inline(__always)
    public func equals(_ text: StaticString) -> Bool {
        count == text.utf8CodeUnitCount && starts(with: text)
    }

    /// Whether the bytes begin with `text`, case-sensitively.
    @inline(__always)
    public func starts(with text: StaticString) -> Bool {
        guard count >= text.utf8CodeUnitCount else { return false }
        for index in 0..<text.utf8CodeUnitCount where self[index] != text.utf8Start[index] {
            return false
        }
        return true
    }

    /// Whether the bytes equal `lowercase`, ignoring ASCII case. `lowercase` must be written in
    /// lower case.
    @inline(__always)
    public func equals(lowercase: StaticString) -> Bool {
        count == lowercase.utf8CodeUnitCount && starts(withLowercase: lowercase)
    }

    /// Whether the bytes begin with those of `lowercase`, as for `equals(lowercase:)`.
    @inline(__always)
    public func starts(withLowercase lowercase: StaticString) -> Bool {
        guard count >= lowercase.utf8CodeUnitCount else { return false }
        for index in 0..<lowercase.utf8CodeUnitCount
        where ASCII.lowercased(self[index]) != lowercase.utf8Start[index] {
            return false
        }
        return true
    }

    /// Whether the bytes equal `lowercase`, which has no capital letters, ignoring ASCII case.
    public func equals(lowercase: Span<UInt8>) -> Bool {
        guard count == lowercase.count else { return false }
        for index in indices where ASCII.lowercased(self[index]) != lowercase[index] {
            return false
        }
        return true
    }

    /// Whether the bytes equal `other`, ignoring ASCII case in both.
    public func equalsIgnoringCase(_ other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in indices
        where ASCII.lowercased(self[index]) != ASCII.lowercased(other[index]) {
            return false
        }
        return true
    }

    /// How often a word occurs, case-sensitively.
    public func occurrences(of word: StaticString) -> Int {
        let length = word.utf8CodeUnitCount
        guard count >= length else { return 0 }
        var found = 0
        for start in 0...(count - length)
        where extracting(start..<start + length).starts(with: word) { found += 1 }
        return found
    }
}
