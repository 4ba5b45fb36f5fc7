import HTTPCore

/// Commands, into memory that the caller owns: an array of bulk strings each.
///
///     *count CR LF ($length CR LF argument CR LF)…
///
/// A long argument need not be copied: after ``appendArgumentHeader(_:)`` its bytes may follow from
/// wherever they are, and then a line end.
extension HeadWriter {
    /// Begins a command with this many arguments, its name being the first.
    package mutating func appendCommand(_ arguments: Int) {
        append(byte: UInt8(ascii: "*"))
        append(decimal: UInt64(arguments))
        appendLineEnd()
    }

    /// Appends an argument.
    package mutating func appendArgument(_ bytes: UnsafeRawBufferPointer) {
        appendArgumentHeader(bytes.count)
        append(bytes: bytes)
        appendLineEnd()
    }

    /// Appends an argument.
    package mutating func appendArgument(_ bytes: Span<UInt8>) {
        appendArgumentHeader(bytes.count)
        append(bytes)
        appendLineEnd()
    }

    /// Appends an argument.
    package mutating func appendArgument(_ text: StaticString) {
        appendArgumentHeader(text.utf8CodeUnitCount)
        append(text)
        appendLineEnd()
    }

    /// Appends a number as an argument.
    package mutating func appendArgument(decimal: UInt64) {
        appendArgumentHeader(RESPSize.digits(decimal))
        append(decimal: decimal)
        appendLineEnd()
    }

    /// Appends what precedes an argument of `count` bytes. These must follow, and CR LF.
    package mutating func appendArgumentHeader(_ count: Int) {
        append(byte: UInt8(ascii: "$"))
        append(decimal: UInt64(count))
        appendLineEnd()
    }
}

/// The bytes that parts of a command take.
package enum RESPSize {
    /// What begins a command of this many arguments.
    package static func command(_ arguments: Int) -> Int { 3 + digits(UInt64(arguments)) }

    /// An argument of `count` bytes, with what is before and after it.
    package static func argument(_ count: Int) -> Int { 5 + digits(UInt64(count)) + count }

    /// The decimal digits of a number.
    package static func digits(_ number: UInt64) -> Int {
        var (count, rest) = (1, number)
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        return count
    }
}
