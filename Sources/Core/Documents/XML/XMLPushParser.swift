/// Reads XML 1.0 in parts, as they arrive, and passes its events to a sink (expat). (The name
/// `XMLParser` is Foundation's.)
///
/// It stops immediately, with the position, at anything that is not well-formed, at the limits
/// (bytes, depth, and elements and attributes together as values), and at
/// - a document type with declarations, and a reference to any entity except XML's five: there is
///   nothing that could be expanded. A document type that only refers to external declarations, as
///   in property lists, is accepted; nothing is ever fetched;
/// - an encoding other than UTF-8, UTF-16, US-ASCII and ISO-8859-1.
public final class XMLPushParser<Sink: XMLSink> {
    private let box: SinkBox<Sink>
    private let expat: Expat

    /// - Parameters:
    ///   - encoding: The encoding according to a message's head, which takes precedence over the
    /// document's own (RFC 7303 §3); `nil` if the document specifies it.
    ///   - reportsComments: Whether comments and processing instructions are events; they then
    /// separate the text around them.
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
        // Closures, because they are specialized for the sink's type, unlike a class's methods.
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

    /// The receiver of the events.
    public var sink: Sink { box.sink }

    /// Reads the next part of the document. After an error every further call throws it again.
    public func push(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try expat.push(bytes)
    }

    /// Reads a document that is entirely in memory, instead of `push` and `finish`.
    func read(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) { try expat.read(bytes) }

    /// Ends the document; throws if something is missing.
    public func finish() throws(DocumentError) { try expat.finish() }

    /// How often expat was given a part; what is held back is passed with the next one.
    var rounds: Int { expat.rounds }
}

private final class SinkBox<Sink> {
    var sink: Sink
    init(_ sink: Sink) { self.sink = sink }
}
