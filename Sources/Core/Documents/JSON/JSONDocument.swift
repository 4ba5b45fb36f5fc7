/// Reads JSON (RFC 8259).
///
/// The whole text is checked before the first event is passed on: its grammar, that it is UTF-8
/// with nothing after the value, that no object has a duplicate name (compared byte for byte, with
/// escapes decoded), that no escape is half a surrogate pair, and the limits. Numbers are passed on
/// with all their digits, whatever their size, up to the limit on their length. A byte order mark
/// at the start is ignored, as RFC 8259 §8.1 allows; offsets include it. UTF-16 and UTF-32 are
/// refused.
///
/// The time is roughly linear in the size of the text, even for an object with many names; the
/// stack usage does not depend on the text.
public enum JSONDocument {
    /// Reads a text and passes its events to a sink.
    ///
    /// - Parameters:
    ///   - bytes: the whole text.
    ///   - limits: of these `bytes`, `depth` (nesting of arrays and objects), `values` (not
    /// counting names) and `digits` (characters of a number) apply.
    /// - Throws: a ``DocumentError`` with line and column, and the path of what was being read; or
    ///   what the sink throws.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        into sink: inout some DocumentSink
    ) throws(DocumentError) {
        let tape = try JSONTape.reading(bytes, limits: limits, builds: true)
        try tape.replay(into: &sink)
    }

    /// Reads a text into a tree, which is at most ``DocumentBuilder/maximumDepth`` deep.
    public static func value(
        of bytes: [UInt8], limits: DocumentLimits = .standard
    ) throws(DocumentError) -> DocumentValue {
        var builder = DocumentBuilder()
        try bytes.withBytes { bytes throws(DocumentError) in
            try read(bytes, limits: limits.ofTree, into: &builder)
        }
        return builder.value ?? .null
    }
}
