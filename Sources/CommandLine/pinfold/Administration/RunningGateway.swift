import Clocks
import Documents
import EventLoop
import HTTPCore
import HTTPTypes
import Locking
import PinfoldClient

/// A gateway that runs, asked at its administrative address.
final class RunningGateway: Sendable {
    /// Where it is asked.
    enum Target: Sendable, Equatable {
        /// The path of a Unix socket.
        case unix(String)
        /// A URL without a path.
        case url(String)

        /// Reads `ADDRESS:PORT`, `unix:PATH` or a URL.
        init?(_ text: String) {
            if text.hasPrefix(UnixSocketPath.scheme) {
                let path = String(text.dropFirst(UnixSocketPath.scheme.count))
                guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
                self = .unix(path)
                return
            }
            for scheme in ["http://", "https://"] where text.hasPrefix(scheme) {
                let rest = text.dropFirst(scheme.count)
                let host = rest.hasSuffix("/") ? rest.dropLast() : rest
                guard !host.isEmpty, !host.contains(where: { "/?#@".contains($0) }) else {
                    return nil
                }
                self = .url(scheme + host)
                return
            }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            let isName = parts.count == 2 && !parts[0].isEmpty && UInt16(parts[1]) ?? 0 > 0
            guard isName || Endpoint(text).map({ $0.port > 0 }) ?? false,
                !text.contains(where: { "/?#@ ".contains($0) })
            else { return nil }
            self = .url("http://" + text)
        }

        /// The host that it is asked for, without brackets; `nil` for a Unix socket.
        var host: String? {
            guard case .url(let url) = self else { return nil }
            let authority = url.drop { $0 != "/" }.dropFirst(2)
            guard authority.first != "[" else {
                return String(authority.dropFirst().prefix { $0 != "]" })
            }
            return String(authority.prefix { $0 != ":" })
        }

        /// Whether it is asked over TLS.
        var isSecure: Bool {
            if case .url(let url) = self { url.hasPrefix("https:") } else { false }
        }

        /// The port, by default that of the scheme; `nil` for a Unix socket, and if what is written
        /// is none.
        var port: UInt16? {
            guard case .url(let url) = self else { return nil }
            let authority = url.drop { $0 != "/" }.dropFirst(2)
            let rest = authority.first == "[" ? authority.drop { $0 != "]" }.dropFirst() : authority
            guard let colon = rest.lastIndex(of: ":") else { return isSecure ? 443 : 80 }
            let port = UInt16(rest[rest.index(after: colon)...])
            return port == 0 ? nil : port
        }
    }

    /// An answer of the gateway.
    struct Answer: Sendable {
        var status: Int
        var body: [UInt8]

        /// The content as JSON; `nil` if it is something else.
        var value: DocumentValue? { try? JSONDocument.value(of: body) }
    }

    let target: Target
    let token: String?
    /// How long an answer is waited for, in milliseconds.
    let timeout: Int64
    private let policy: SecurityPolicy
    private let certificate: ClientCertificate?

    init(
        target: Target, token: String?, timeout: Int64, policy: SecurityPolicy,
        certificate: ClientCertificate?
    ) {
        self.target = target
        self.token = token
        self.timeout = timeout
        self.policy = policy
        self.certificate = certificate
    }

    deinit { session.withLock { $0.take() }?.invalidate() }

    /// The target as errors name it.
    var name: String {
        switch target {
        case .unix(let path): UnixSocketPath.scheme + path
        case .url(let url): url
        }
    }

    /// What a request contains.
    struct Content: Sendable {
        var bytes: [UInt8]
        var type = "application/json"
    }

    private let session = Locked<SessionManager?>(nil)

    /// Asks for a resource of the API.
    /// - Parameter content: by default an empty object, if the method is not GET.
    func ask(
        _ method: HTTPRequest.Method, _ path: String, content: Content? = nil
    ) throws -> Answer {
        let content = method == .get ? nil : content ?? Content(bytes: Array("{}".utf8))
        do {
            switch target {
            case .unix(let socket):
                return try UnixRequest(
                    path: socket, method: method.rawValue, target: path, token: token,
                    content: content, timeout: timeout
                ).answer()
            case .url(let url): return try ask(method, url: url + path, content)
            }
        } catch let error as ClientError {
            throw CommandError("\(name): \(error.explanation)")
        } catch {
            throw CommandError("\(name): \(error)")
        }
    }

    private func ask(
        _ method: HTTPRequest.Method, url: String, _ content: Content?
    ) throws -> Answer {
        var fields: HTTPFields = [
            .accept: "application/json", .userAgent: "pinfold/\(pinfoldVersion)",
        ]
        if let content { fields[.contentType] = content.type }
        if let token { fields[.authorization] = "Bearer \(token)" }
        let session = try openSession()
        let request = try HTTPRequest(method, url, fields: fields)
        let sent: RequestContent? = content.map { .bytes($0.bytes) }
        let result = Blocking.run { () -> Result<Answer, ClientError> in
            do throws(ClientError) {
                let response = try await session.data(for: request, content: sent)
                return .success(
                    Answer(status: response.head.status.code, body: response.content))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The session, which keeps its connection for the next request.
    func openSession() throws(ClientError) -> SessionManager {
        if let known = session.withLock({ $0 }) { return known }
        var configuration = SessionConfiguration()
        configuration.securityPolicy = policy
        configuration.requestTimeout = .milliseconds(timeout)
        configuration.connectTimeout = .milliseconds(min(10_000, timeout))
        configuration.redirects = .none
        configuration.proxies = .direct
        configuration.cookies = nil
        if let certificate { configuration.clientCertificates = [certificate] }
        let made = try SessionManager(configuration: configuration)
        session.withLock { $0 = made }
        return made
    }
}

/// One request over a Unix socket, which the client library does not speak.
struct UnixRequest {
    /// Why there is no answer.
    enum UnixRequestError: Error, CustomStringConvertible {
        case notConnected(UnixSocketError)
        case system(Errno)
        case timedOut
        case invalid(String)

        var description: String {
            switch self {
            case .notConnected(.failed(let error)) where error == .connectionRefused:
                "nothing listens there"
            case .notConnected(let error): "\(error)"
            case .system(let error): "\(error)"
            case .timedOut: "no answer in time"
            case .invalid(let reason): "the answer is invalid: \(reason)"
            }
        }
    }

    var path: String
    var method: String
    var target: String
    var token: String?
    var content: RunningGateway.Content?
    /// How long an answer is waited for, in milliseconds.
    var timeout: Int64

    /// The most bytes that an answer may have.
    private static let maximumBytes = 16 << 20

    func answer() throws(UnixRequestError) -> RunningGateway.Answer {
        let descriptor: Int32
        do throws(UnixSocketError) {
            descriptor = try UnixSockets.connect(to: path)
        } catch {
            throw .notConnected(error)
        }
        defer { Descriptors.close(descriptor) }
        let end = Clock.monotonicMilliseconds() + timeout
        let received: [UInt8]?
        do throws(SocketWaitError) {
            received = try exchange(WaitingSocket(descriptor: descriptor, end: end))
        } catch {
            switch error {
            case .timedOut: throw .timedOut
            case .failed(let error): throw .system(error)
            }
        }
        guard let received else { throw .invalid("it is too long") }
        return try Self.answer(in: received)
    }

    private var head: String {
        var lines = [
            "\(method) \(target) HTTP/1.1", "Host: localhost", "Connection: close",
            "Accept: application/json", "User-Agent: pinfold/\(pinfoldVersion)",
        ]
        if let content {
            lines += ["Content-Type: \(content.type)", "Content-Length: \(content.bytes.count)"]
        }
        if let token { lines.append("Authorization: Bearer \(token)") }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// Sends the request, and reads what there is until the end; `nil` if that is too much.
    private func exchange(_ socket: WaitingSocket) throws(SocketWaitError) -> [UInt8]? {
        try socket.send(Array(head.utf8) + (content?.bytes ?? []))
        var received: [UInt8] = []
        while case let more = try socket.receive(), !more.isEmpty {
            received += more
            guard received.count <= Self.maximumBytes else { return nil }
        }
        return received
    }

    private static func answer(
        in received: [UInt8]
    ) throws(UnixRequestError) -> RunningGateway.Answer {
        guard !received.isEmpty else { throw .invalid("the connection was closed without one") }
        var parser = ResponseHeadParser()
        var head = ResponseHead()
        let progress: ParseProgress
        do throws(WireError) {
            progress = try parser.parse(
                received.span, answering: ResponseContext(method: .get, isUserAgent: true),
                into: &head)
        } catch {
            throw .invalid("\(error)")
        }
        guard case .complete(let length) = progress, case .length(let count) = head.framing,
            UInt64(received.count - length) == count
        else { throw .invalid("it is incomplete") }
        return RunningGateway.Answer(status: Int(head.status), body: Array(received[length...]))
    }
}
