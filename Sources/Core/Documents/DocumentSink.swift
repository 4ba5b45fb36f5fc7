/// Takes the events of a document in their order: what a reader gives and a writer writes, so that
/// one format becomes another without a tree between them.
///
/// Every value is one event, or the events from a `begin` to its `end`. Within a dictionary each
/// value follows its key. Text is UTF-8 and valid during the call.
public protocol DocumentSink {
    /// Null.
    mutating func null() throws(DocumentError)
    /// A truth value.
    mutating func boolean(_ value: Bool) throws(DocumentError)
    /// A number as JSON writes it (RFC 8259, section 6): the digits are given on as they are, so
    /// that none is lost.
    mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// A string, in UTF-8.
    mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// Bytes that are no text.
    mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError)
    /// Seconds since 1970-01-01T00:00:00Z.
    mutating func date(_ seconds: Double) throws(DocumentError)
    /// An array begins; its values follow.
    mutating func beginArray() throws(DocumentError)
    /// The array that began last ends.
    mutating func endArray() throws(DocumentError)
    /// A dictionary begins; its keys follow, each with its value behind it.
    mutating func beginDictionary() throws(DocumentError)
    /// The key, in UTF-8, of the value that follows.
    mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// The dictionary that began last ends.
    mutating func endDictionary() throws(DocumentError)
}
