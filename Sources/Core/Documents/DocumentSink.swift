/// Receives the events of a document in order: readers produce them and writers consume them, so
/// that one format is converted to another without a tree in between.
///
/// Every value is one event, or the events from a `begin` to its `end`. In a dictionary each value
/// follows its key. Text is UTF-8 and valid during the call.
public protocol DocumentSink {
    /// Null.
    mutating func null() throws(DocumentError)
    /// A Boolean.
    mutating func boolean(_ value: Bool) throws(DocumentError)
    /// A number as JSON writes it (RFC 8259 §6): the digits are passed on unchanged, so that none
    /// is lost.
    mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// A string, in UTF-8.
    mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// Binary data.
    mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError)
    /// Seconds since 1970-01-01T00:00:00Z.
    mutating func date(_ seconds: Double) throws(DocumentError)
    /// An array begins; its values follow.
    mutating func beginArray() throws(DocumentError)
    /// The array that began last ends.
    mutating func endArray() throws(DocumentError)
    /// A dictionary begins; its keys follow, each followed by its value.
    mutating func beginDictionary() throws(DocumentError)
    /// The key, in UTF-8, of the value that follows.
    mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// The dictionary that began last ends.
    mutating func endDictionary() throws(DocumentError)
}
