import ContentCoding
import EventLoop
import HTTPCore
import PinfoldConfiguration
import Transformation

/// What the rules of a host entry do with messages, made ready once for a policy.
package final class RouteTransformation: Sendable {
    let requestHead: RequestHeadRules
    let requestContent: RequestTranslation?
    let requestRules: RequestRules
    let response: ResponseChecks?
    /// What servers are asked for in place of what clients ask for.
    let ask: UpstreamAsk
    /// The store keeps what servers send, and each client is sent what is made of it.
    let storesOrigin: Bool

    /// Nil where the entry has no rules.
    ///
    /// - Parameters:
    ///   - images: what decodes images; nil: nothing can.
    ///   - compile: compiles schemas; nil: nothing can, and no content satisfies one.
    package init?(
        _ entry: HostEntry, images: (any ImageTransforming)?, schemas compile: SchemaCompiling?
    ) {
        requestRules = entry.request
        requestHead = RequestHeadRules(entry.request)
        requestContent = RequestTranslation(entry.request)
        response = ResponseChecks(
            entry.response, schema: entry.response.schema.map { Self.checker($0, compile) },
            images: images)
        var ask = UpstreamAsk()
        if let response {
            ask.looksAtContent = response.looksAtContent
            ask.entityTags =
                entry.response.translates ? EntityTagMapping(identity: response.identity) : nil
            // Not that alone: the route may have images, too.
            ask.accept = entry.response.body.map { "\($0.from.mediaType), */*;q=0.5" }
        }
        self.ask = ask
        storesOrigin = entry.response.storesOrigin
        guard !requestHead.isEmpty || requestContent != nil || response != nil else { return nil }
    }

    /// Whether there are rules about more than the heads of requests: what is said in another
    /// protocol would go around them.
    var looksIntoMessages: Bool { requestContent != nil || response != nil }

    /// What holds content to a schema. One that cannot be used was refused when the configuration
    /// was read; should it come this far, nothing satisfies it.
    private static func checker(
        _ file: SchemaFile, _ compile: SchemaCompiling?
    ) -> any JSONSchemaChecking {
        guard let compile else { return UnusableSchema(cause: "nothing here compiles schemas") }
        do {
            return try compile(file.text)
        } catch {
            return UnusableSchema(cause: "\(error)")
        }
    }

    /// The head of a response whose content was changed.
    func head(
        of response: borrowing ResponseHead, in bytes: Span<UInt8>,
        _ change: ResponseContent.Change, length: Int
    ) -> [UInt8] {
        var head = ResponseHeadChange(changesContent: true, length: length)
        head.contentType = change.contentType
        head.contentEncoding = .replaced(change.coding)
        head.entityTags = ask.entityTags
        head.dependsOnAcceptEncoding = change.wasEncoded
        return head.head(of: response, in: bytes)
    }
}

extension BodyFormat {
    /// What a server is asked for.
    fileprivate var mediaType: String {
        switch self {
        case .json: "application/json"
        case .form: "application/x-www-form-urlencoded"
        case .plist: "application/x-plist"
        case .xml: "application/xml"
        case .multipart: "multipart/form-data"
        }
    }
}

/// In place of a schema that cannot be used.
private struct UnusableSchema: JSONSchemaChecking {
    let cause: String

    func check(_ json: UnsafeRawBufferPointer) throws(TransformationFailure) {
        throw TransformationFailure(.responseSchemaViolated, "the schema cannot be used: \(cause)")
    }
}

/// What checks or translation have made of a message's content, on whatever thread.
package enum TransformationOutcome: Sendable {
    /// Of a request: its content, or the query that takes its place.
    case request(Result<TranslatedRequest, TransformationFailure>)
    /// Of a response.
    case response(Result<ResponseContent, TransformationFailure>)
}

/// What came of a request's content.
package struct TranslatedRequest: Sendable {
    var content: RequestContent
    /// How long it took.
    var microseconds: UInt64
}

/// What is sent in place of a request's content.
package enum RequestContent: Sendable {
    case content(TranslatedContent, removesQuery: Bool)
    /// Encoded pairs; there is no content.
    case query(String)
}

/// What is passed on in place of a response's content.
package struct ResponseContent: Sendable {
    /// As it was received, if nothing changed; empty once it is detached.
    private var content: [UInt8]
    /// Bytes of it.
    let count: Int
    /// What changed; nil: nothing, the head stays as well.
    var change: Change?
    var steps: [String]
    /// It in memory that a buffer takes over; nil: the loop's own thread has made it.
    private var detached: DetachedBytes?
    /// What came.
    var origin: [UInt8] = []
    /// How long it took.
    var microseconds: UInt64 = 0

    init(content: [UInt8], change: Change?, steps: [String]) {
        self.content = content
        count = content.count
        self.change = change
        self.steps = steps
    }

    /// Readies the content for a loop, on the thread that has made it: the loop copies nothing.
    func detaching() -> ResponseContent {
        var ready = self
        ready.detached = DetachedBytes(content)
        ready.content = []
        return ready
    }

    /// The content in a buffer; taken once.
    func buffer(from pool: BufferPool) -> Buffer {
        detached.map(pool.adopting) ?? pool.holding(content)
    }

    struct Change: Sendable {
        var contentType: String
        /// What it is encoded with.
        var coding: ContentCoding
        /// The server sent it encoded: what it is encoded with now depends on the client.
        var wasEncoded: Bool
    }
}
