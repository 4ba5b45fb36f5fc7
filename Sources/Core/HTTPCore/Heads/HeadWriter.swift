/// Writes a message head (or any bytes) into memory that the caller owns.
///
/// Never writes past the end of the memory: if something does not fit, ``overflowed`` is set and
/// nothing more is written.
public struct HeadWriter {
    @usableFromInline let base: UnsafeMutableRawPointer?
    @usableFromInline var written: Int
    @usableFromInline var lacksRoom = false
    /// The memory's size.
    public let capacity: Int

    /// The number of bytes written.
    @inlinable @inline(__always)
    public var count: Int { written }

    /// Whether something did not fit; what was written must then not be used.
    @inlinable @inline(__always)
    public var overflowed: Bool { lacksRoom }

    /// Creates a writer into `memory`, which must outlive it, after `count` bytes that are already
    /// there.
    @inlinable
    public init(_ memory: UnsafeMutableRawBufferPointer, after count: Int = 0) {
        precondition(count >= 0 && count <= memory.count)
        base = memory.baseAddress
        capacity = memory.count
        written = count
    }

    /// Where to write `size` more bytes; `nil` if they do not fit.
    @inlinable @inline(__always)
    mutating func reserve(_ size: Int) -> UnsafeMutableRawPointer? {
        assert(size >= 0)
        guard !lacksRoom, size <= capacity &- written, let base else {
            // Writing nothing into no memory is not an overflow.
            lacksRoom = lacksRoom || size > 0
            return nil
        }
        let place = base + written
        written &+= size
        return place
    }

    /// Appends a literal; inlined, because its length is known at compile time.
    @inlinable @inline(__always)
    public mutating func append(_ text: StaticString) {
        append(
            bytes: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends one byte.
    @inlinable @inline(__always)
    public mutating func append(byte: UInt8) {
        reserve(1)?.storeBytes(of: byte, as: UInt8.self)
    }

    /// Appends bytes.
    @inlinable @inline(__always)
    public mutating func append(bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, let place = reserve(bytes.count) else { return }
        place.copyMemory(from: source, byteCount: bytes.count)
    }

    /// Appends bytes.
    @inlinable @inline(__always)
    public mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { append(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Appends the part `range` of `bytes`.
    @inlinable @inline(__always)
    public mutating func append(_ range: ByteRange, of bytes: Span<UInt8>) {
        append(bytes.extracting(range.indices))
    }

    /// Appends a text's UTF-8; for values that are already strings, not for hot paths.
    public mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Appends a number in decimal.
    public mutating func append(decimal: UInt64) {
        if decimal < 10 { return append(byte: 0x30 &+ UInt8(truncatingIfNeeded: decimal)) }
        var count = 2
        var bound: UInt64 = 100
        while decimal >= bound, count < 20 {
            bound &*= 10
            count &+= 1
        }
        guard let place = reserve(count) else { return }
        var rest = decimal
        repeat {
            count &-= 1
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            place.storeBytes(
                of: 0x30 &+ UInt8(truncatingIfNeeded: digit), toByteOffset: count, as: UInt8.self)
            rest = quotient
        } while rest != 0
    }

    /// Appends a number in lower-case hexadecimal without leading zeros, as for a chunk's size.
    public mutating func append(hex: UInt64) {
        let count = max(1, (67 &- hex.leadingZeroBitCount) / 4)
        guard let place = reserve(count) else { return }
        var rest = hex
        for index in stride(from: count &- 1, through: 0, by: -1) {
            let digit = UInt8(truncatingIfNeeded: rest & 15)
            place.storeBytes(
                of: digit &+ (digit < 10 ? 0x30 : 0x57), toByteOffset: index, as: UInt8.self)
            rest >>= 4
        }
    }

    /// Appends the 29 bytes of an IMF-fixdate (RFC 9110 §5.6.7) for seconds since 1970. Callers
    /// that write the same second often should keep the bytes of ``HTTPDate/format(_:)``.
    public mutating func append(date: Int64) {
        let text = HTTPDate.format(date)
        append(text.span)
    }

    /// Appends CRLF: ends a line, or the head.
    @inlinable @inline(__always)
    public mutating func appendLineEnd() { append("\r\n") }

    /// Appends a status code's three digits.
    @inline(__always)
    public mutating func append(status: UInt16) {
        guard let place = reserve(3) else { return }
        let (hundreds, rest) = status.quotientAndRemainder(dividingBy: 100)
        let (tens, ones) = rest.quotientAndRemainder(dividingBy: 10)
        place.storeBytes(of: UInt8(truncatingIfNeeded: 0x30 &+ hundreds), as: UInt8.self)
        place.storeBytes(
            of: UInt8(truncatingIfNeeded: 0x30 &+ tens), toByteOffset: 1, as: UInt8.self)
        place.storeBytes(
            of: UInt8(truncatingIfNeeded: 0x30 &+ ones), toByteOffset: 2, as: UInt8.self)
    }

    /// Appends `HTTP/1.1`, the status (three digits), a phrase, and CRLF (RFC 9112 §4).
    /// - Parameter phrase: `nil` for the standard phrase; otherwise visible ASCII characters and
    ///   spaces.
    public mutating func appendStatusLine(_ status: UInt16, phrase: Span<UInt8>? = nil) {
        append("HTTP/1.1 ")
        append(status: status)
        append(" ")
        if let phrase { append(phrase) } else { append(StatusPhrase.of(status)) }
        appendLineEnd()
    }
}

extension HeadWriter {
    /// Appends a field line. The value must not contain CR, LF or NUL.
    @inlinable
    public mutating func append(field: FieldID, _ value: StaticString) {
        appendName(field)
        append(value)
        appendLineEnd()
    }

    /// Appends a field line. The value must not contain CR, LF or NUL.
    public mutating func append(field: FieldID, _ value: Span<UInt8>) {
        appendName(field)
        append(value)
        appendLineEnd()
    }

    /// Appends a field line with a decimal number.
    public mutating func append(field: FieldID, decimal: UInt64) {
        appendName(field)
        append(decimal: decimal)
        appendLineEnd()
    }

    /// Appends a field line with a date in seconds since 1970.
    public mutating func append(field: FieldID, date: Int64) {
        appendName(field)
        append(date: date)
        appendLineEnd()
    }

    /// Appends a known field's name, a colon and a space. `other` has no name.
    public mutating func appendName(_ field: FieldID) {
        assert(field != .other)
        append(field.name)
        append(": ")
    }
}
