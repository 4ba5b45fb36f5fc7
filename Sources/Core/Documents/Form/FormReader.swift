import HTTPCore

/// Reads `application/x-www-form-urlencoded` (WHATWG URL Standard, section 5.1) into a dictionary,
/// using the naming conventions of AFNetworking, PHP and Rack.
///
/// - `k=v` is a member. All values are strings: a form does not indicate which are numbers.
/// - `k` without `=` is null, `k=` the empty string.
/// - `k[n]=v` is a member of a dictionary `k`, at any depth; so is `k[0]=v`, with the key `0`,
///   except with ``FormArrayStyle/indices``.
/// - `k[]=v` is an element of an array `k`. `k[][n]=v` is added to the array's last dictionary if
///   that has no `n` yet, and otherwise begins a new one. `k[][]=v` is added to the last array: a
///   form does not indicate the structure of arrays of arrays.
/// - A second `k` makes an array of both, which is how a set is written.
/// - Brackets that do not form such a name, as in `a[b` and `[a]`, are ordinary characters.
/// - `+` and `%20` are spaces. Empty pairs, as in `a&&b`, are ignored; `;` is an ordinary
///   character.
///
/// Members are in the order in which their names first occurred.
public enum FormReader {
    /// Reads a form and passes its events to a sink.
    ///
    /// - Parameters:
    ///   - bytes: the whole form.
    ///   - limits: of these `bytes`, `depth` (nesting of dictionaries and arrays) and `values`
    /// (including dictionaries and arrays) apply.
    ///   - arrays: what numbers in brackets mean.
    /// - Throws: a ``DocumentError``: `malformed` for an invalid escape, for a NUL, for a name that
    ///   is both a dictionary and something else, and for indices that do not form an array;
    ///   `encoding` for anything that is not UTF-8; or what the sink throws.
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
                .form, error.reason, at: DocumentLocation(offset: pair.lowerBound, in: bytes),
                path: error.path)
        }
    }

    /// Decodes the bytes of a name or value.
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
                        .malformed("a percent sign without two hex digits"), start, bytes)
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
        DocumentError(.form, reason, at: DocumentLocation(offset: offset, in: bytes))
    }
}
