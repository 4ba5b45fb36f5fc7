import ContentCoding
import EventLoop
import HTTPCore
import PinfoldConfiguration
import Transformation

/// The transformation of messages by a host entry's rules, prepared once per policy.
package final class RouteTransformation: Sendable {
    let requestHead: RequestHeadRules
    let requestContent: RequestTranslation?
    let requestRules: RequestRules
    let response: ResponseChecks?
    /// What changes in the heads that clients are sent.
    let sentHead: ResponseHeadRules?
    /// The gateway's name in messages; `nil` for its own.
    let name: GatewayName?
    /// What servers are asked for in place of what clients ask for.
    let ask: UpstreamRequestChange
    /// Whether requests, or the responses of servers, are checked or changed. What only changes
    /// while it is sent to a client is stored and shared like the responses of other hosts.
    let changesMessages: Bool
    /// The store keeps what servers send, and each client is sent what is made of it.
    let storesOrigin: Bool

    /// Returns `nil` if the entry has no rules.
    ///
    /// - Parameters:
    ///   - name: The gateway's name for the entry's hosts; `nil` for its own.
    ///   - images: The decoder of images; without one, no image is accepted.
    ///   - compile: The compiler of schemas; without one, no content satisfies a schema.
    package init?(
        _ entry: HostEntry, name: GatewayName?, images: (any ImageTransforming)?,
        schemas compile: SchemaCompiling?
    ) {
        self.name = name
        sentHead = ResponseHeadRules(entry.response.headers, name: name)
        requestRules = entry.request
        requestHead = RequestHeadRules(entry.request)
        requestContent = RequestTranslation(entry.request)
        response = ResponseChecks(
            entry.response, schema: entry.response.schema.map { Self.checker($0, compile) },
            images: images)
        var ask = UpstreamRequestChange()
        if let response {
            ask.examinesContent = response.examinesContent
            ask.entityTags =
                entry.response.translates ? EntityTagMapping(identity: response.identity) : nil
            // Not only that: the route may have images, too.
            ask.accept = entry.response.body.map { "\($0.from.mediaType), */*;q=0.5" }
        }
        self.ask = ask
        storesOrigin = entry.response.storesOrigin
        changesMessages = !requestHead.isEmpty || requestContent != nil || response != nil
        guard changesMessages || sentHead != nil else { return nil }
    }

    /// Only the name, for hosts without an entry. Returns `nil` if that is the gateway's own.
    init?(name: GatewayName?) {
        guard let name else { return nil }
        self.name = name
        sentHead = ResponseHeadRules(HeaderRules(), name: name)
        requestRules = RequestRules()
        requestHead = RequestHeadRules(requestRules)
        requestContent = nil
        response = nil
        ask = UpstreamRequestChange()
        storesOrigin = false
        changesMessages = false
    }

    /// Whether there are rules about more than the heads of requests, which another protocol would
    /// bypass.
    var looksIntoMessages: Bool { requestContent != nil || response != nil }

    /// The checker for a schema. A schema that cannot be used was refused when the configuration
    /// was read; if one nevertheless gets here, no content satisfies it.
    private static func checker(
        _ file: SchemaFile, _ compile: SchemaCompiling?
    ) -> any JSONSchemaChecking {
        guard let compile else {
            return UnusableSchema(cause: "this process has no compiler of schemas")
        }
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
    /// The media type that a server is asked for.
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

/// A replacement for a schema that cannot be used.
private struct UnusableSchema: JSONSchemaChecking {
    let cause: String

    func check(_ json: UnsafeRawBufferPointer) throws(TransformationError) {
        throw TransformationError(.responseSchemaViolated, "the schema cannot be used: \(cause)")
    }
}

/// The result of checking or translating a message's content, on any thread.
package enum TransformationOutcome: Sendable {
    /// Of a request: its content, or the query that takes its place.
    case request(Result<TranslatedRequest, TransformationError>)
    /// Of a response.
    case response(Result<ResponseContent, TransformationError>)
}

/// The result for a request's content.
package struct TranslatedRequest: Sendable {
    var content: RequestContent
    /// How long it took.
    var microseconds: UInt64
}

/// What is sent instead of a request's content.
package enum RequestContent: Sendable {
    case content(TranslatedContent, removesQuery: Bool)
    /// Encoded pairs for the query; there is no content.
    case query(String)
}

/// What is forwarded instead of a response's content.
package struct ResponseContent: Sendable {
    /// The content, as received if nothing changed; empty once it is detached.
    private var content: [UInt8]
    /// Its size in bytes.
    let count: Int
    /// What changed; `nil` for nothing, in which case the head stays as well.
    var change: Change?
    var steps: [String]
    /// The content in memory that a buffer takes over; `nil` if the loop's own thread made it.
    private var detached: DetachedBytes?
    /// The content received.
    var origin: [UInt8] = []
    /// How long it took.
    var microseconds: UInt64 = 0

    init(content: [UInt8], change: Change?, steps: [String]) {
        self.content = content
        count = content.count
        self.change = change
        self.steps = steps
    }

    /// Prepares the content for a loop, on the thread that made it, so that the loop copies
    /// nothing.
    func detaching() -> ResponseContent {
        var ready = self
        ready.detached = DetachedBytes(content)
        ready.content = []
        return ready
    }

    /// The content in a buffer. Call it once.
    func buffer(from pool: BufferPool) -> Buffer {
        detached.map(pool.adopting) ?? pool.holding(content)
    }

    struct Change: Sendable {
        var contentType: String
        /// Its coding.
        var coding: ContentCoding
        /// Whether the server sent it encoded: its coding now depends on the client.
        var wasEncoded: Bool
    }
}
