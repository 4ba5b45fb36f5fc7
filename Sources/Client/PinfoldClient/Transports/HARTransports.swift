import Clocks
import Documents
import HTTPTypes
import Locking

/// A transport that records what another one answers, so that a ``HARReplayer`` can answer it
/// later.
///
///     let recorder = HARRecorder(try SessionManager().transport)
///     configuration.transport = recorder
///     …
///     try recorder.archive.bytes    // to be written to a file
///
/// Contents are kept in memory, up to ``maximumContentBytes`` each; an exchange with more is passed
/// on, and not recorded. Neither is one that fails, nor one with which all recorded exchanges would
/// be larger than ``maximumTotalBytes``. The content of a request is recorded as far as it has been
/// read when the response is complete.
public final class HARRecorder: SessionTransport {
    private let base: any SessionTransport
    private struct State {
        var entries: [HARArchive.Entry] = []
        var bytes = 0
    }

    private let state = Locked(State())
    private let keepsSecrets: Bool
    /// The maximum size of a recorded content, in bytes.
    public let maximumContentBytes: Int
    /// The maximum size of all recorded exchanges, with their heads, in bytes.
    public let maximumTotalBytes: Int
    /// The maximum number of exchanges that are recorded.
    public static let maximumEntries = 100_000

    /// Creates a recorder.
    ///
    /// - Parameters:
    ///   - base: What answers the requests, for example ``SessionManager/transport``.
    ///   - keepsSecrets: Whether Authorization, Proxy-Authorization, Cookie and Set-Cookie are
    ///     recorded as they are. By default, their values are `***`.
    ///   - maximumContentBytes: See ``maximumContentBytes``.
    ///   - maximumTotalBytes: See ``maximumTotalBytes``.
    public init(
        _ base: any SessionTransport, keepsSecrets: Bool = false,
        maximumContentBytes: Int = 16 << 20, maximumTotalBytes: Int = 256 << 20
    ) {
        (self.base, self.keepsSecrets) = (base, keepsSecrets)
        self.maximumContentBytes = maximumContentBytes
        self.maximumTotalBytes = maximumTotalBytes
    }

    /// What has been recorded so far.
    public var archive: HARArchive { HARArchive(entries: state.withLock { $0.entries }) }

    /// Forgets what has been recorded so far.
    public func removeAll() { state.withLock { $0 = State() } }

    public func response(to request: TransportRequest) async throws -> TransportResponse {
        let began = Clock.wallMilliseconds()
        let started = Clock.monotonicMicroseconds()
        let maximum = maximumContentBytes
        let sent = Locked<[UInt8]?>([])
        var watched = request
        watched.content = request.content.observed { part in
            if let part { sent.withLock { $0.append(part, upTo: maximum) } }
        }
        let response = try await base.response(to: watched)
        let record: @Sendable ([UInt8]) -> Void = { [self] content in
            guard let sent = sent.withLock({ $0 }) else { return }
            var entry = HARArchive.Entry(
                startedDateTime: HARRecorder.text(began), request: masked(request.head),
                requestContent: sent, response: masked(response.head), content: content)
            entry.time = .microseconds(Clock.monotonicMicroseconds() - started)
            keep(entry)
        }
        return response.observed(
            to: request.head.method, atMost: maximumContentBytes, whole: record)
    }

    private func keep(_ entry: HARArchive.Entry) {
        let size = entry.size
        state.withLock { state in
            guard state.entries.count < Self.maximumEntries,
                size <= maximumTotalBytes - state.bytes
            else { return }
            state.entries.append(entry)
            state.bytes += size
        }
    }

    public func pins(presentedBy host: String, port: Int) -> [String]? {
        base.pins(presentedBy: host, port: port)
    }

    public var sendingSession: SessionManager? { base.sendingSession }

    private static func text(_ milliseconds: Int64) -> String {
        HARText.time(milliseconds: milliseconds)
    }

    private func masked(_ request: HTTPRequest) -> HTTPRequest {
        var request = request
        request.headerFields = masked(request.headerFields)
        return request
    }

    private func masked(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        response.headerFields = masked(response.headerFields)
        return response
    }

    private func masked(_ fields: HTTPFields) -> HTTPFields {
        keepsSecrets ? fields : fields.masked
    }
}

extension HTTPFields {
    /// The fields with `***` in place of credentials and cookies.
    package var masked: HTTPFields {
        let secrets: [HTTPField.Name] = [
            .authorization, .proxyAuthorization, .cookie, .setCookie,
        ]
        var masked = HTTPFields()
        for field in self {
            masked.append(
                secrets.contains(field.name) ? HTTPField(name: field.name, value: "***") : field)
        }
        return masked
    }
}

extension [UInt8]? {
    /// Appends a part, or keeps nothing any more if there is too much.
    fileprivate mutating func append(_ part: [UInt8], upTo maximum: Int) {
        guard let count = self?.count, part.count <= maximum - count else {
            self = nil
            return
        }
        self?.append(contentsOf: part)
    }
}

extension HARArchive.Entry {
    /// The size of the contents and of the heads.
    fileprivate var size: Int {
        requestContent.count + content.count + request.url.utf8.count
            + Self.size(request.headerFields) + Self.size(response.headerFields)
    }

    private static func size(_ fields: HTTPFields) -> Int {
        fields.reduce(0) { size, field in
            size + field.name.rawName.utf8.count + field.withUnsafeBytesOfValue { $0.count }
        }
    }
}

extension TransportResponse {
    /// The same response, whose content is reported once all of it has been passed on, unless it is
    /// longer than a maximum.
    fileprivate func observed(
        to method: HTTPRequest.Method, atMost maximum: Int,
        whole: @escaping @Sendable ([UInt8]) -> Void
    ) -> TransportResponse {
        // Nobody reads what there is of such content.
        if method == .head || [204, 304].contains(head.status.code) || head.contentLength == 0 {
            whole([])
            return self
        }
        if error != nil { return self }
        if let bytes = content.bytes {
            if bytes.count <= maximum { whole(bytes) }
            return self
        }
        // Whoever reads a content of known length does not wait for its end.
        let length = head.contentLength.map { Int(clamping: $0) }
        let kept = Locked<[UInt8]?>([])
        var response = self
        response.content = content.observed { part in
            let all: [UInt8]? = kept.withLock { bytes in
                if let part { bytes.append(part, upTo: maximum) }
                return part == nil || bytes?.count == length ? bytes.take() : nil
            }
            if let all { whole(all) }
        }
        return response
    }
}

/// A transport that answers from an HTTP Archive.
///
///     configuration.transport = HARReplayer(try HARArchive(bytes))
///
/// A request is answered by the next entry with its method and URL that has not answered one yet;
/// once all have, by the last one again. The content of the request need not be the same. Requests
/// without an entry fail with ``ClientError/Reason/transportFailed``; the error says why the
/// archive's entry was left out (``HARArchive/skipped``), if there was one.
public final class HARReplayer: SessionTransport {
    private struct Key: Hashable {
        var method: String
        var url: String

        init(_ request: HTTPRequest) {
            (method, url) = (request.method.rawValue, request.url)
        }
    }

    private let entries: [Key: [HARArchive.Entry]]
    private let skipped: [HARArchive.SkippedEntry]
    private let next = Locked<[Key: Int]>([:])

    /// Creates a transport that answers from an archive.
    public init(_ archive: HARArchive) {
        entries = Dictionary(grouping: archive.entries) { Key($0.request) }
        skipped = archive.skipped
    }

    public func response(to request: TransportRequest) async throws -> TransportResponse {
        let key = Key(request.head)
        guard let found = entries[key] else {
            let skipped = skipped.first { $0.method == key.method && $0.url == key.url }
            throw ClientError(
                .transportFailed,
                "the archive has no response to \(key.method) \(ClientError.shown(key.url))"
                    + (skipped.map { ": log.entries[\($0.index)] \($0.reason)" } ?? ""),
                of: request.head)
        }
        let index = next.withLock { next in
            let index = next[key] ?? 0
            next[key] = min(index + 1, found.count - 1)
            return index
        }
        var response = TransportResponse(content: found[index].content)
        response.head = found[index].response
        return response
    }
}

extension SessionManager {
    /// The session as a transport of another one: requests are sent as they are, without redirects
    /// and retries and cookies, which are the other session's.
    ///
    /// Servers are evaluated by this session, and client certificates are this one's. The other one
    /// has the default policy, or the same as this one; with pins, anchors, trust policies, client
    /// certificates or a minimum version of TLS that this session lacks, it cannot be created.
    ///
    /// A ``HARRecorder`` records what it answers.
    public var transport: any SessionTransport { NetworkTransport(session: self) }
}

/// Sends requests by a session.
private struct NetworkTransport: SessionTransport {
    let session: SessionManager

    var sendingSession: SessionManager? { session }

    func response(to request: TransportRequest) async throws -> TransportResponse {
        var options = RequestOptions()
        options.redirects = RedirectRule.none
        options.retries = .never
        options.handlesCookies = false
        let content: RequestContent? =
            switch request.framing {
            case .none: nil
            case .length(let length): .stream(request.content, length: length)
            case .unknown: .stream(request.content)
            }
        let response = try await session.response(
            for: request.head, content: content, options: options)
        var answer = TransportResponse(stream: response.content)
        answer.head = response.head
        answer.head.headerFields[.transferEncoding] = nil
        answer.laterTrailers = { response.trailers }
        return answer
    }
}
