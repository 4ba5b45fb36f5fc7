import HTTPCore

@testable import CachePolicy

/// The second that tests use as now, or as their start.
let start: Int64 = 1_700_000_000

/// An IMF-fixdate `offset` seconds after `start`.
func date(_ offset: Int64 = 0) -> String {
    let text = HTTPDate.format(start + offset)
    return String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
}

/// A parsed request with its bytes.
struct Request {
    /// Heads are not copied; requests are.
    private final class Parsed {
        var head = RequestHead()
    }

    private let parsed = Parsed()
    let bytes: [UInt8]

    var head: RequestHead {
        _read { yield parsed.head }
    }

    /// A request as a client sends it to a proxy; Host is added.
    init(_ fields: [String] = [], method: String = "GET", to target: String = "http://a.example/x")
    {
        let lines = ["\(method) \(target) HTTP/1.1", "Host: a.example"] + fields
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        self.bytes = bytes
        var parser = RequestHeadParser()
        let progress = try? parser.parse(bytes.span, into: &parsed.head)
        guard progress == .complete(headBytes: bytes.count) else {
            fatalError("not a request: \(lines)")
        }
    }
}

/// A parsed response with its bytes.
struct Response {
    let head: ResponseHead
    let bytes: [UInt8]

    /// A response from upstream; nothing is added.
    init(_ fields: [String] = [], status: Int = 200, method: Method = .get) {
        let lines = ["HTTP/1.1 \(status) Reason"] + fields
        let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        let context = ResponseContext(method: method, allowsSwitch: true)
        guard let head = Self.parse(bytes.span, context) else {
            fatalError("not a response: \(lines)")
        }
        self.head = head
        self.bytes = bytes
    }

    private static func parse(_ bytes: Span<UInt8>, _ context: ResponseContext) -> ResponseHead? {
        var head = ResponseHead()
        var parser = ResponseHeadParser()
        let progress = try? parser.parse(bytes, answering: context, into: &head)
        return progress == .complete(headBytes: bytes.count) ? head : nil
    }
}

extension StoredHead {
    /// The stored form of a response's head, whether or not it may be stored.
    static func append(
        _ response: ResponseHead, in bytes: Span<UInt8>, responseTime: Int64,
        options: PolicyOptions = PolicyOptions(), to out: inout [UInt8]
    ) {
        let times = StoredTimes(
            requestTime: responseTime, responseTime: responseTime, initialAge: 0)
        let directives = CacheDirectives(response: response.fields, in: bytes)
        let storable = Storable(
            times: times, lifetime: 0, source: .none, vary: .none,
            hasDate: hasValidDate(response.fields, in: bytes, responseTime: responseTime),
            unstored: directives.unstoredFields(options) {
                QualifiedFields(response.fields, in: bytes, of: $0)
            }, part: nil)
        out += Self.bytes(of: response, in: bytes, for: storable)
    }
}

/// A stored response, made the way the gateway makes it.
struct Stored {
    var metadata: StoredMetadata
    let head: [UInt8]

    /// The stored form of a response that took no time and arrived at `start`.
    init(
        _ fields: [String], status: Int = 200, body: UInt64? = 100, age: Int64? = nil,
        at time: Int64 = start, hasQuery: Bool = false, options: PolicyOptions = PolicyOptions()
    ) {
        let response = Response(fields, status: status)
        var head: [UInt8] = []
        StoredHead.append(
            response.head, in: response.bytes.span, responseTime: time, options: options,
            to: &head)
        let facts = ResponseFacts(response.head, in: response.bytes.span, responseTime: time)
        let times = StoredTimes(
            requestTime: time, responseTime: time,
            initialAge: age ?? facts.initialAge(requestTime: time))
        guard
            var metadata = StoredMetadata(
                storedHead: head.span, times: times, hasQuery: hasQuery, options: options)
        else { fatalError("not a stored head: \(fields)") }
        metadata.bodyBytes = body
        self.metadata = metadata
        self.head = head
    }

    /// The same response with another head.
    init(_ other: Stored, head: [UInt8]) {
        guard
            var metadata = StoredMetadata(
                storedHead: head.span, times: other.metadata.times, hasQuery: false,
                options: PolicyOptions())
        else { fatalError("not a stored head: \(text(head))") }
        metadata.bodyBytes = other.metadata.bodyBytes
        self.metadata = metadata
        self.head = head
    }

    /// What to do with a request `offset` seconds after `start`.
    func decide(
        _ request: Request, after offset: Int64 = 0, acceptsAnyStored: Bool = false
    ) -> CacheDecision {
        CacheDecision.decide(
            for: request.head, in: request.bytes.span, stored: metadata, storedHead: head.span,
            now: start + offset, options: PolicyOptions(), acceptsAnyStored: acceptsAnyStored)
    }
}

/// Whether a response that took no time and arrived at `start` is stored.
func storing(
    _ response: Response, for request: Request = Request(),
    options: PolicyOptions = PolicyOptions()
) -> StoreDecision {
    StoreDecision.decide(
        on: response.head, in: response.bytes.span, to: request.head, in: request.bytes.span,
        requestTime: start, responseTime: start, options: options)
}

/// The reason against storing; `nil` if it is stored.
func refusal(
    _ fields: [String], status: Int = 200, for request: Request = Request(),
    options: PolicyOptions = PolicyOptions()
) -> NotStoredReason? {
    switch storing(Response(fields, status: status), for: request, options: options) {
    case .store: nil
    case .doNotStore(let reason): reason
    }
}

/// What a function writes with a writer of `capacity` bytes.
func written(capacity: Int = 4096, _ write: (inout HeadWriter) -> Void) -> String {
    var memory = [UInt8](repeating: 0, count: capacity)
    let count = memory.withUnsafeMutableBytes { buffer in
        var writer = HeadWriter(buffer)
        write(&writer)
        return writer.overflowed ? -1 : writer.count
    }
    return count < 0 ? "overflow" : String(decoding: memory[..<count], as: UTF8.self)
}

/// Bytes as text.
func text(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: Array(bytes), as: UTF8.self)
}

extension CacheDecision {
    /// The hit, or `nil`.
    var asHit: CacheHit? {
        if case .hit(let hit) = self { return hit }
        return nil
    }

    /// The decision without its details.
    var summary: String {
        switch self {
        case .hit(let hit):
            switch hit.form {
            case .full: hit.stale.map { "stale hit (\($0.token))" } ?? "hit"
            case .headOnly: "head hit"
            case .notModified: "304"
            case .partial(let first, let last, let complete): "206 \(first)-\(last)/\(complete)"
            case .several: "206 multipart"
            case .rangeNotSatisfiable(let complete): "416 */\(complete)"
            }
        case .validate(let validation): "validate (\(validation.reason.token))"
        case .forward(let reason): "forward (\(reason.token))"
        case .gatewayTimeout(let reason): "504 (\(reason.token))"
        }
    }
}

extension VaryKey {
    /// Whether the request matches.
    func matches(_ request: Request) -> Bool {
        matches(request.head, in: request.bytes.span)
    }
}

/// Writes the whole head of a response made from a stored one.
func append(
    _ hit: CacheHit, _ stored: StoredMetadata, _ head: [UInt8], _ cacheStatus: CacheStatus?,
    to writer: inout HeadWriter
) {
    let (status, phrase) = HitHead.status(of: hit, stored: stored, storedHead: head.span)
    if let phrase {
        writer.appendStatusLine(status, phrase: head.span.extracting(phrase.indices))
    } else {
        writer.appendStatusLine(status)
    }
    HitHead.appendFields(
        hit, stored: stored, storedHead: head.span, cacheStatus: cacheStatus, to: &writer)
}
