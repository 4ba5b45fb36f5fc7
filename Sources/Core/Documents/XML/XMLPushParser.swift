/// Reads XML 1.0 in parts, as they arrive, and gives its events to a sink (expat). (`XMLParser` is
/// Foundation's.)
///
/// It stops at once, with the place, at anything that is not well formed, at the limits (bytes,
/// depth, and elements and attributes together as values), and at
/// - a document type with declarations of its own, and a reference to any entity but the five that
///   XML has: there is nothing that could be expanded. A document type that only names where its
///   declarations are, as property lists have one, is let through; nothing is ever fetched;
/// - an encoding other than UTF-8, UTF-16, US-ASCII and ISO-8859-1.
public final class XMLPushParser<Sink: XMLSink> {
    private let box: SinkBox<Sink>
    private let expat: Expat

    /// - Parameters:
    ///   - encoding: What a message's head says of the encoding, which counts more than what the
    ///     document says (RFC 7303, section 3); nil: the document says it.
    ///   - reportsComments: Whether comments and processing instructions are events; they then
    ///     part the text around them.
    public convenience init(
        _ sink: Sink, limits: DocumentLimits = .standard, encoding: String? = nil,
        reportsComments: Bool = false
    ) {
        self.init(
            sink,
            ExpatOptions(
                limits: limits, encoding: encoding, reportsComments: reportsComments,
                format: .xml))
    }

    init(_ sink: Sink, _ options: ExpatOptions) {
        let box = SinkBox(sink)
        self.box = box
        // Closures, for they are compiled for the sink at hand, as methods of a class are not.
        expat = Expat(
            options,
            ExpatEvents(
                start: { tag throws(DocumentError) in try box.sink.start(tag) },
                text: { text throws(DocumentError) in try box.sink.text(text) },
                end: { name throws(DocumentError) in try box.sink.end(name) },
                comment: { text throws(DocumentError) in try box.sink.comment(text) },
                instruction: { target, data throws(DocumentError) in
                    try box.sink.instruction(target, data)
                }))
    }

    /// What takes the events.
    public var sink: Sink { box.sink }

    /// Reads the next part of the document. After an error every further call throws it again.
    public func push(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try expat.push(bytes)
    }

    /// Reads a document that is there as a whole, in place of `push` and `finish`.
    func read(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) { try expat.read(bytes) }

    /// Says that there is no more; throws if something is missing.
    public func finish() throws(DocumentError) { try expat.finish() }

    /// How often expat was given a part; what is held back is given with the next one.
    var rounds: Int { expat.rounds }
}

private final class SinkBox<Sink> {
    var sink: Sink
    init(_ sink: Sink) { self.sink = sink }
}
