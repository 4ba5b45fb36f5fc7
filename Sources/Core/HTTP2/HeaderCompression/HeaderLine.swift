/// A decoded field as the line `name: value CRLF`, valid until the next one is decoded.
struct HeaderLine {
    /// The first byte of the name. ``WordCopy/slack`` bytes after the line may be read.
    let start: UnsafeRawPointer
    let nameCount: Int
    let valueCount: Int
    let traits: FieldTraits
    /// Whether the sender demanded that the value never enters a table (RFC 7541 §6.2.3).
    let isSensitive: Bool

    /// The length of the line.
    @inline(__always)
    var count: Int { nameCount &+ valueCount &+ 4 }

    @inline(__always)
    var value: UnsafeRawPointer { start + (nameCount &+ 2) }

    /// The bytes of the name.
    var name: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start, count: nameCount)
    }

    /// The bytes of the value.
    var valueBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: value, count: valueCount)
    }
}

/// What takes the fields of a header block in their order.
protocol FieldSink: ~Copyable {
    /// Takes one field. A sink that refuses one remembers why: the rest of the block is decoded
    /// all the same, because both ends must keep the same table.
    mutating func take(_ line: HeaderLine)
}
