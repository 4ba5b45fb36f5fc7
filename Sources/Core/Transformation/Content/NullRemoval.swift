import Documents

/// Removes null, with its key, from a document's events: as a member of a dictionary and as an
/// element of an array, at any depth, like ``DocumentValue/removingNulls``. Null as the whole
/// document is kept.
struct NullRemoval<Sink: DocumentSink>: DocumentSink {
    private(set) var sink: Sink
    /// The number of values that were removed.
    private(set) var removed = 0
    private var depth = 0
    private var key: [UInt8] = []
    /// Whether `key` has yet to be passed on.
    private var hasKey = false

    init(_ sink: Sink) { self.sink = sink }

    mutating func withSink<Result>(
        _ body: (inout Sink) throws(DocumentError) -> Result
    ) throws(DocumentError) -> Result {
        try body(&sink)
    }

    private mutating func giveKey() throws(DocumentError) {
        guard hasKey else { return }
        hasKey = false
        try withUnsafeMutablePointer(to: &sink) { sink throws(DocumentError) in
            try key.withBytes { key throws(DocumentError) in try sink.pointee.key(key) }
        }
    }

    mutating func null() throws(DocumentError) {
        guard depth > 0 else { return try sink.null() }
        hasKey = false
        removed += 1
    }

    mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        key.removeAll(keepingCapacity: true)
        key.append(contentsOf: text)
        hasKey = true
    }

    mutating func boolean(_ value: Bool) throws(DocumentError) {
        try giveKey()
        try sink.boolean(value)
    }

    mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try giveKey()
        try sink.number(text)
    }

    mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try giveKey()
        try sink.string(text)
    }

    mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try giveKey()
        try sink.data(bytes)
    }

    mutating func date(_ seconds: Double) throws(DocumentError) {
        try giveKey()
        try sink.date(seconds)
    }

    mutating func beginArray() throws(DocumentError) {
        try giveKey()
        depth += 1
        try sink.beginArray()
    }

    mutating func endArray() throws(DocumentError) {
        depth -= 1
        try sink.endArray()
    }

    mutating func beginDictionary() throws(DocumentError) {
        try giveKey()
        depth += 1
        try sink.beginDictionary()
    }

    mutating func endDictionary() throws(DocumentError) {
        depth -= 1
        try sink.endDictionary()
    }
}
