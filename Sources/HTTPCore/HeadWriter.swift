/// Writes a message head (or any bytes) into memory that its caller owns.
///
/// Never writes past the memory's end: what does not fit sets ``overflowed``, and then nothing
/// further is written.
package struct HeadWriter {
    /// Bytes written.
    package private(set) var count = 0
    /// Whether something did not fit; what was written is then of no use.
    package private(set) var overflowed = false
    /// The memory's size.
    package let capacity: Int
    let base: UnsafeMutableRawPointer?

    /// A writer at the start of `memory`, which must outlive it.
    package init(_ memory: UnsafeMutableRawBufferPointer) {
        base = memory.baseAddress
        capacity = memory.count
    }

    /// Appends literal text.
    package mutating func append(_ text: StaticString) {}
    /// Appends one byte.
    package mutating func append(byte: UInt8) {}
    /// Appends bytes.
    package mutating func append(bytes: UnsafeRawBufferPointer) {}
    /// Appends bytes.
    package mutating func append(_ bytes: Span<UInt8>) {}
    /// Appends the part `range` of `bytes`.
    package mutating func append(_ range: ByteRange, of bytes: Span<UInt8>) {}
    /// Appends text's UTF-8.
    package mutating func append(text: String) {}
    /// Appends a number in decimal.
    package mutating func append(decimal: UInt64) {}
    /// Appends a number in lower-case hexadecimal without leading zeros.
    package mutating func append(hex: UInt64) {}
    /// Appends the 29 bytes of an IMF-fixdate (RFC 9110 §5.6.7) for seconds since 1970.
    package mutating func append(date: Int64) {}
    /// Appends CRLF.
    package mutating func appendLineEnd() {}
    /// Appends a field line.
    package mutating func append(field: FieldID, _ value: StaticString) {}
    /// Appends a field line.
    package mutating func append(field: FieldID, _ value: Span<UInt8>) {}
    /// Appends a field line with a decimal number.
    package mutating func append(field: FieldID, decimal: UInt64) {}
    /// Appends a field line with a date in seconds since 1970.
    package mutating func append(field: FieldID, date: Int64) {}
    /// Appends `HTTP/1.1`, the status and its standard phrase, and CRLF.
    package mutating func appendStatusLine(_ status: UInt16) {}

    /// Appends the field lines of a section as they were received, in their order, leaving out
    /// those in `omitted`, and those that Connection nominated if `dropsNominated`. Kept lines that
    /// follow one another are copied as one run.
    package mutating func appendFields(
        _ fields: borrowing FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet,
        dropsNominated: Bool
    ) {}
    /// Appends the field lines that go on to the next hop: all but hop-by-hop ones, those that
    /// Connection nominated, and `omitted`. No empty line after them.
    package mutating func appendForwardedFields(
        _ fields: borrowing FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet = []
    ) {}
    /// Appends path and query as origin-form: with `/` in front where absolute-form left it out, `*`
    /// for OPTIONS of a whole server (RFC 9112 §3.2.4).
    package mutating func appendOriginForm(of head: borrowing RequestHead, in bytes: Span<UInt8>) {}
    /// Appends the request's host, in brackets if IPv6, and its port unless it is the default of
    /// `scheme`: a Host value.
    package mutating func appendAuthority(
        of head: borrowing RequestHead, in bytes: Span<UInt8>, scheme: Scheme
    ) {}
    /// Appends the method's bytes.
    package mutating func appendMethod(of head: borrowing RequestHead, in bytes: Span<UInt8>) {}
}
