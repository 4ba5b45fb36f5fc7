/// Builds a tree from a document's events.
///
/// A tree is compared and freed recursively: code that reads one limits its depth to
/// ``maximumDepth``, whatever the limits are.
public struct DocumentBuilder: DocumentSink {
    /// The maximum nesting depth of arrays and dictionaries.
    public static let maximumDepth = 512

    /// An array or dictionary that has begun. Each has both properties, so that elements and
    /// members are added in place.
    private struct Open {
        var isArray: Bool
        var values: [DocumentValue] = []
        var members = DocumentDictionary()
        var key: String?
    }

    private var open: [Open] = []
    /// The whole value, after its last event.
    public private(set) var value: DocumentValue?

    /// Creates a builder that waits for the first event of a value.
    public init() {}

    private mutating func add(_ value: DocumentValue) {
        guard let last = open.indices.last else {
            self.value = value
            return
        }
        if open[last].isArray {
            open[last].values.append(value)
        } else if let key = open[last].key {
            open[last].members[key] = value
        }
    }

    private mutating func close() {
        guard let last = open.popLast() else { return }
        add(last.isArray ? .array(last.values) : .dictionary(last.members))
    }

    public mutating func null() throws(DocumentError) { add(.null) }
    public mutating func boolean(_ value: Bool) throws(DocumentError) { add(.boolean(value)) }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        add(.number(DocumentNumber(verified: String(decoding: text, as: UTF8.self))))
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        add(.string(String(decoding: text, as: UTF8.self)))
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        add(.data(Array(bytes)))
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) { add(.date(seconds)) }
    public mutating func beginArray() throws(DocumentError) { open.append(Open(isArray: true)) }
    public mutating func endArray() throws(DocumentError) { close() }

    public mutating func beginDictionary() throws(DocumentError) {
        open.append(Open(isArray: false))
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard let last = open.indices.last else { return }
        open[last].key = String(decoding: text, as: UTF8.self)
    }

    public mutating func endDictionary() throws(DocumentError) { close() }
}
