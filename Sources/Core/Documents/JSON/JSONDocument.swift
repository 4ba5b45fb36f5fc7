/// Reads JSON (RFC 8259) with RapidJSON.
///
/// The text is checked whole before the first event is given: its grammar, that it is UTF-8 and
/// has nothing behind the value, that no object has a name twice (compared byte for byte, escapes
/// undone), that no escape is half a surrogate pair, and the limits. Numbers are passed on digit by
/// digit, whatever their size, up to the limit of their characters. A byte order mark at the start
/// is ignored, as RFC 8259, section 8.1 allows; offsets count it. UTF-16 and UTF-32 are refused.
///
/// The time is about linear in the text, also for an object of many names; the stack that is used
/// does not depend on the text.
public enum JSONDocument {
    /// Reads a text and gives its events to a sink.
    ///
    /// - Parameters:
    ///   - bytes: the whole text.
    ///   - limits: of these `bytes`, `depth` (arrays and objects within one another), `values`
    ///     (names not counted) and `digits` (characters of a number) hold here.
    /// - Throws: a ``DocumentError`` with line and column, and the path of what was being read;
    ///   or what the sink throws.
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
