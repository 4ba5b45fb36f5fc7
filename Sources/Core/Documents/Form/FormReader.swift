import HTTPCore

/// Reads `application/x-www-form-urlencoded` (WHATWG URL Standard, section 5.1) into a dictionary,
/// by the names that AFNetworking, PHP and Rack write.
///
/// - `k=v` is a member. All values are strings: a form does not say what is a number.
/// - `k` without `=` is null, `k=` the empty string.
/// - `k[n]=v` is a member of a dictionary `k`, at any depth; `k[0]=v` too, whose key is `0`, but
///   with ``FormArrayStyle/indices``.
/// - `k[]=v` is an element of an array `k`. `k[][n]=v` goes to the array's last dictionary where
///   that has no `n` yet, and begins a new one where it has. `k[][]=v` goes to the last array: what
///   arrays of arrays were, a form does not say.
/// - `k` for the second time makes an array of both, as a set is written.
/// - Brackets that do not make a whole name of this kind, as in `a[b` and `[a]`, are characters.
/// - `+` and `%20` are spaces. Empty pairs, as in `a&&b`, are nothing; `;` is a character.
///
/// Members come in the order in which their names first came.
public enum FormReader {
    /// Reads a form and gives its events to a sink.
    ///
    /// - Parameters:
    ///   - bytes: the whole form.
    ///   - limits: of these `bytes`, `depth` (dictionaries and arrays within one another) and
    ///     `values` (dictionaries and arrays are values, too) hold here.
    ///   - arrays: what numbers between brackets are.
    /// - Throws: a ``DocumentError``: `malformed` for an escape that is none, for a NUL, for a name
    ///   that is a dictionary and something else, and for indices that are not those of an array;
    ///   `encoding` for what is not UTF-8; or what the sink throws.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        arrays: FormArrayStyle = .brackets, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        guard bytes.count <= limits.bytes else {
            throw DocumentError(.form, .tooLarge(maximum: limits.bytes))
        }
        var tree = FormTree(format: .form, limits: limits, arrays: arrays)
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "&")) ?? bytes.count
            if start < end { try add(pair: start..<end, of: bytes, to: &tree) }
            start = end + 1
        }
        try tree.replay(into: &sink)
    }

    /// Reads a form into a dictionary.
    public static func value(
        of bytes: [UInt8], limits: DocumentLimits = .standard,
        arrays: FormArrayStyle = .brackets
    ) throws(DocumentError) -> DocumentValue {
        var builder = DocumentBuilder()
        try bytes.withBytes { bytes throws(DocumentError) in
            try read(bytes, limits: limits.ofTree, arrays: arrays, into: &builder)
        }
        return builder.value ?? .null
    }

    private static func add(
        pair: Range<Int>, of bytes: UnsafeRawBufferPointer, to tree: inout FormTree
    ) throws(DocumentError) {
        let sign = bytes[pair].firstIndex(of: UInt8(ascii: "="))
        let name = try decoded(pair.lowerBound..<(sign ?? pair.upperBound), of: bytes)
        let value = try sign.map { sign throws(DocumentError) in
            try decoded(sign + 1..<pair.upperBound, of: bytes)
        }
        do throws(DocumentError) {
            try tree.add(name: name, value.map { .text($0) } ?? .null)
        } catch {
            throw DocumentError(
                .form, error.reason, at: DocumentPlace(offset: pair.lowerBound, in: bytes),
                path: error.path)
        }
    }

    /// The bytes that a name or value stands for.
    private static func decoded(
        _ range: Range<Int>, of bytes: UnsafeRawBufferPointer
    ) throws(DocumentError) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(range.count)
        var isASCII = true
        var index = range.lowerBound
        while index < range.upperBound {
            var byte = bytes[index]
            let start = index
            index += 1
            if byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            } else if byte == UInt8(ascii: "%") {
                guard index + 2 <= range.upperBound,
                    let escaped = PercentCoding.byte(bytes[index], bytes[index + 1])
                else {
                    throw error(
                        .malformed("not two hex digits behind a percent sign"), start, bytes)
                }
                byte = escaped
                index += 2
            }
            guard byte != 0 else { throw error(.malformed("a NUL"), start, bytes) }
            isASCII = isASCII && byte < 0x80
            text.append(byte)
        }
        guard isASCII || String(validating: text, as: UTF8.self) != nil else {
            throw error(.encoding, range.lowerBound, bytes)
        }
        return text
    }

    private static func error(
        _ reason: DocumentError.Reason, _ offset: Int, _ bytes: UnsafeRawBufferPointer
    ) -> DocumentError {
        DocumentError(.form, reason, at: DocumentPlace(offset: offset, in: bytes))
    }
}
