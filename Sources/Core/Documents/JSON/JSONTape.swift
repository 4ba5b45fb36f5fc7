import CRapidJSON

/// The RapidJSON events of a JSON text, in one array. The bytes must not change while the tape is
/// used: most strings are ranges of the text.
struct JSONTape: ~Copyable {
    private let document: OpaquePointer
    private let bytes: UnsafeRawBufferPointer
    private let yieldPoint: YieldPoint?

    private init(
        _ document: OpaquePointer, _ bytes: UnsafeRawBufferPointer, _ yieldPoint: YieldPoint?
    ) {
        self.document = document
        self.bytes = bytes
        self.yieldPoint = yieldPoint
    }

    /// Parses the whole text. Events are stored only if `builds` is true; otherwise the text is
    /// only checked.
    ///
    /// - Parameter memory: the number of bytes that may be used for parsing.
    static func reading(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits, builds: Bool, memory: Int = .max
    ) throws(DocumentError) -> JSONTape {
        guard bytes.count <= limits.bytes else {
            throw DocumentError(.json, .tooLarge(maximum: limits.bytes))
        }
        guard let document = json_document_create() else { throw DocumentError(.json, .memory) }
        let tape = JSONTape(document, bytes, limits.yieldPoint)
        var bounds = json_limits()
        bounds.depth = UInt32(clamping: limits.depth)
        bounds.values = UInt32(clamping: limits.values)
        bounds.digits = UInt32(clamping: limits.digits)
        bounds.memory = Int(clamping: memory)
        if let yieldPoint = limits.yieldPoint {
            bounds.context = Unmanaged.passUnretained(yieldPoint).toOpaque()
            bounds.values_between = UInt32(YieldPoint.values)
            bounds.yield = { context in
                guard let context else { return }
                Unmanaged<YieldPoint>.fromOpaque(context).takeUnretainedValue().run()
            }
        }
        let outcome = json_document_read(document, bytes.baseAddress, bytes.count, bounds, builds)
        if Int(outcome.status) != JSON_READ { throw tape.error(outcome, limits) }
        return tape
    }

    deinit { json_document_destroy(document) }

    /// Passes the events to a sink.
    borrowing func replay(into sink: inout some DocumentSink) throws(DocumentError) {
        var count = 0
        let start = json_document_events(document, &count)
        let events = UnsafeBufferPointer(start: start, count: count)
        let arena = json_document_arena(document)
        var untilYieldPoint = YieldPoint.values
        for event in events {
            untilYieldPoint -= 1
            if untilYieldPoint == 0 {
                untilYieldPoint = YieldPoint.values
                yieldPoint?.run()
            }
            switch Int(event.kind) {
            case JSON_STRING: try sink.string(Self.slice(bytes.baseAddress, event))
            case JSON_NAME: try sink.key(Self.slice(bytes.baseAddress, event))
            case JSON_NUMBER: try sink.number(Self.slice(bytes.baseAddress, event))
            case JSON_ESCAPED_STRING: try sink.string(Self.slice(arena, event))
            case JSON_ESCAPED_NAME: try sink.key(Self.slice(arena, event))
            case JSON_NULL: try sink.null()
            case JSON_FALSE: try sink.boolean(false)
            case JSON_TRUE: try sink.boolean(true)
            case JSON_ARRAY: try sink.beginArray()
            case JSON_ARRAY_END: try sink.endArray()
            case JSON_OBJECT: try sink.beginDictionary()
            default: try sink.endDictionary()
            }
        }
    }

    private static func slice(
        _ base: UnsafeRawPointer?, _ event: json_event
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base.map { $0 + Int(event.offset) }, count: Int(event.length))
    }

    private borrowing func error(
        _ outcome: json_outcome, _ limits: DocumentLimits
    ) -> DocumentError {
        let location = DocumentLocation(offset: Int(outcome.offset), in: bytes)
        return DocumentError(.json, reason(outcome, limits), at: location, path: path)
    }

    private borrowing func reason(
        _ outcome: json_outcome, _ limits: DocumentLimits
    ) -> DocumentError.Reason {
        switch Int(outcome.status) {
        case JSON_ENCODING: .encoding
        case JSON_TOO_DEEP: .tooDeep(maximum: limits.depth)
        case JSON_TOO_MANY_VALUES: .tooManyValues(maximum: limits.values)
        case JSON_NUMBER_TOO_LONG:
            .numberOutOfRange(
                String(
                    decoding: bytes[outcome.offset..<outcome.offset + Int(outcome.length)],
                    as: UTF8.self))
        case JSON_DUPLICATE_NAME: .duplicateKey(lastName ?? "")
        case JSON_TOO_LARGE: .tooLarge(maximum: Int(UInt32.max) - 1)
        case JSON_NO_MEMORY: .memory
        default: .malformed(String(cString: outcome.text))
        }
    }

    /// What is open at one level: its member's name, or its element's index. `nil` beyond the
    /// innermost level, and for an object of which no name was read.
    private borrowing func open(_ level: Int) -> (name: String?, index: Int)? {
        var name: UnsafePointer<CChar>?
        var length = 0
        var index = 0
        guard json_document_open(document, level, &name, &length, &index) else { return nil }
        let text = name.map {
            String(
                decoding: UnsafeRawBufferPointer(start: $0, count: length), as: UTF8.self)
        }
        return (text, index)
    }

    private var lastName: String? {
        var last: String?
        var level = 0
        while let step = open(level) {
            last = step.name
            level += 1
        }
        return last
    }

    private var path: String {
        var path = DocumentPath()
        var level = 0
        while !path.isFull, let step = open(level) {
            if let name = step.name { path.append(name: name) } else { path.append(step.index) }
            level += 1
        }
        return path.text
    }
}
