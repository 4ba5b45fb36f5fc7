/// Passes events to a sink, which receives each once although a document is read twice.
struct RepeatableSink<Sink: DocumentSink>: DocumentSink {
    private let sink: UnsafeMutablePointer<Sink>
    /// The number of events that the sink has received.
    private var count = 0
    /// The error that the sink threw for the last of them.
    private var failure: DocumentError?
    /// The number of events that are repeated.
    private var repeated = 0

    init(_ sink: UnsafeMutablePointer<Sink>) { self.sink = sink }

    /// Expects all events from the beginning again.
    mutating func rewind() { repeated = count }

    @inline(__always)
    private mutating func give(
        _ event: (inout Sink) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        guard repeated == 0 else {
            repeated -= 1
            if repeated == 0, let failure { throw failure }
            return
        }
        count &+= 1
        do throws(DocumentError) { try event(&sink.pointee) } catch {
            failure = error
            throw error
        }
    }

    mutating func null() throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.null() }
    }

    mutating func boolean(_ value: Bool) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.boolean(value) }
    }

    mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.number(text) }
    }

    mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.string(text) }
    }

    mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.data(bytes) }
    }

    mutating func date(_ seconds: Double) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.date(seconds) }
    }

    mutating func beginArray() throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.beginArray() }
    }

    mutating func endArray() throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.endArray() }
    }

    mutating func beginDictionary() throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.beginDictionary() }
    }

    mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.key(text) }
    }

    mutating func endDictionary() throws(DocumentError) {
        try give { sink throws(DocumentError) in try sink.endDictionary() }
    }
}
