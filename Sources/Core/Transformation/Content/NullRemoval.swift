import Documents

/// Leaves null out of a document's events, with its key: not as a member of a dictionary, not in
/// an array, at any depth, as ``DocumentValue/removingNulls`` has it. Null by itself stays.
struct NullRemoval<Sink: DocumentSink>: DocumentSink {
    private(set) var sink: Sink
    /// Values that were left out.
    private(set) var removed = 0
    private var depth = 0
    private var key: [UInt8] = []
    /// Whether `key` is yet to be given on.
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
