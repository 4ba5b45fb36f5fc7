/// Makes a tree of a document's events.
public struct DocumentBuilder: DocumentSink {
    /// An array or dictionary that has begun.
    private enum Open {
        case array([DocumentValue])
        case dictionary(DocumentDictionary, key: String?)
    }

    private var open: [Open] = []
    /// The whole value, once its last event has come.
    public private(set) var value: DocumentValue?

    public init() {}

    private mutating func add(_ value: DocumentValue) {
        guard let last = open.indices.last else {
            self.value = value
            return
        }
        // Taken out while it is changed, so that its storage is not copied.
        let container = open[last]
        open[last] = .array([])
        switch container {
        case .array(var values):
            values.append(value)
            open[last] = .array(values)
        case .dictionary(var dictionary, let key):
            if let key { dictionary[key] = value }
            open[last] = .dictionary(dictionary, key: nil)
        }
    }

    private mutating func close() {
        switch open.popLast() {
        case .array(let values): add(.array(values))
        case .dictionary(let dictionary, _): add(.dictionary(dictionary))
        case nil: break
        }
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
    public mutating func beginArray() throws(DocumentError) { open.append(.array([])) }
    public mutating func endArray() throws(DocumentError) { close() }

    public mutating func beginDictionary() throws(DocumentError) {
        open.append(.dictionary(DocumentDictionary(), key: nil))
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard let last = open.indices.last, case .dictionary(let dictionary, _) = open[last]
        else { return }
        open[last] = .array([])
        open[last] = .dictionary(dictionary, key: String(decoding: text, as: UTF8.self))
    }

    public mutating func endDictionary() throws(DocumentError) { close() }
}
