import CLinux
import EventLoop
import HTTPCore
import Locking
import PinfoldTLS
import TestSupport
import Testing
import Threads

@testable import PinfoldClient

/// A request received by a test server.
struct TestRequest: Sendable {
    /// The start line and the fields, without the empty line.
    var head: String
    var content: [UInt8]
    /// The number of its connection, from 0.
    var connection: Int

    var text: String { String(decoding: content, as: UTF8.self) }
    var startLine: String { String(head.split(whereSeparator: \.isNewline).first ?? "") }
    var path: String { startLine.split(separator: " ").dropFirst().first.map(String.init) ?? "" }

    /// Returns the value of a field, or `nil` if there is none.
    func field(_ name: String) -> String? {
        for line in head.split(whereSeparator: \.isNewline).dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts[0].lowercased() == name else { continue }
            return String(parts.dropFirst().first?.drop { $0 == " " } ?? "")
        }
        return nil
    }
}

/// A server on the loopback interface that answers with a closure: in clear text, or by TLS as
/// `127.0.0.1`.
final class TestServer: Sendable {
    /// Answers a request. If it returns `false`, the connection is closed.
    typealias Answer = @Sendable (TestConnection, TestRequest) -> Bool

    private let descriptor: Int32
    private let end: Int32
    let endpoint: Endpoint
    private let answer: Answer
    private let context: TLSServerContext?
    private var isSecure: Bool { context != nil }
    private let threads = Locked<[Thread]>([])
    private let accepted = Locked(0)
    private let refuses = Locked(false)
    /// Handles the head of a request that expects to be asked for its content. If it returns
    /// `false`, the content is not read, and the request is answered without.
    let expectation = Locked<Answer>({ _, _ in true })
    private let seen = Locked<[TestRequest]>([])

    /// - Parameter context: The TLS context, or `nil` for that of `127.0.0.1`.
    init(
        secure: Bool = false, context: TLSServerContext? = nil, _ answer: @escaping Answer
    ) throws {
        descriptor = try Sockets.listen(on: try #require(Endpoint("127.0.0.1:0")))
        endpoint = try #require(Sockets.localEndpoint(descriptor))
        end = try Descriptors.event()
        self.answer = answer
        self.context = context ?? (secure ? TestAuthority.server : nil)
        let thread = try Thread(name: "test-server") { [descriptor, end, weak self] in
            while waits(for: descriptor, orUntil: end) {
                guard let self, !refuses.withLock({ $0 }) else { return }
                if case .connection(let accepted, _) = Sockets.accept(descriptor) {
                    serve(accepted)
                }
            }
        }
        threads.withLock { $0.append(thread) }
    }

    /// Ends the server and its connections.
    func close() {
        Descriptors.signal(end)
        for thread in threads.withLock({ $0 }) { thread.join() }
        Descriptors.close(descriptor)
    }

    /// Refuses new connections from now on. Existing ones continue.
    func refuse() {
        refuses.withLock { $0 = true }
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }

    var url: String { "\(isSecure ? "https" : "http")://\(endpoint)" }
    var requests: [TestRequest] { seen.withLock { $0 } }
    var connections: Int { accepted.withLock { $0 } }

    private func serve(_ socket: Int32) {
        let number = accepted.withLock { count in
            defer { count += 1 }
            return count
        }
        let thread = try? Thread(name: "test-connection") { [self] in
            defer { Descriptors.close(socket) }
            guard let connection = TestConnection(socket, end, context) else { return }
            let expectation: Answer = { [self] in self.expectation.withLock { $0 }($0, $1) }
            while let request = connection.readRequest(number, expectation) {
                seen.withLock { $0.append(request) }
                guard answer(connection, request) else { break }
            }
            connection.finish()
        }
        threads.withLock { threads in if let thread { threads.append(thread) } }
    }
}

/// A gate at which the answers of a test server wait until it is opened or the server is closed.
final class AnswerGate: Sendable {
    fileprivate let opened: Int32
    fileprivate let arrivals: AsyncStream<Void>.Continuation
    private let arrived: AsyncStream<Void>

    init(isOpen: Bool = false) throws {
        opened = try Descriptors.event()
        (arrived, arrivals) = AsyncStream.makeStream()
        if isOpen { open() }
    }

    deinit { Descriptors.close(opened) }

    /// Lets through everything that waits, and everything that comes later.
    func open() { Descriptors.signal(opened) }

    /// Waits until this number of further requests have arrived.
    func arrival(of count: Int = 1) async {
        for _ in 0..<count { _ = await arrived.first { true } }
    }
}

/// Waits for something to read. Returns `false` if the server has been closed.
private func waits(for descriptor: Int32, orUntil end: Int32, toWrite: Bool = false) -> Bool {
    var asked = [
        pollfd(fd: descriptor, events: Int16(toWrite ? POLLOUT : POLLIN), revents: 0),
        pollfd(fd: end, events: Int16(POLLIN), revents: 0),
    ]
    _ = poll(&asked, 2, -1)
    return asked[1].revents == 0
}

/// A connection of a test server. Each call blocks until the server is closed.
final class TestConnection {
    private let descriptor: Int32
    private let end: Int32
    private let tls: TLSServerConnection?
    private var input: [UInt8] = []

    /// Returns `nil` if the handshake fails.
    fileprivate init?(_ descriptor: Int32, _ end: Int32, _ context: TLSServerContext?) {
        self.descriptor = descriptor
        self.end = end
        guard let context else {
            tls = nil
            return
        }
        guard
            let made = try? TLSServerConnection(
                context: context, fileDescriptor: descriptor)
        else { return nil }
        tls = made
        while true {
            switch made.handshake() {
            case .complete: return
            case .wantRead: guard waits(for: descriptor, orUntil: end) else { return nil }
            case .wantWrite:
                guard waits(for: descriptor, orUntil: end, toWrite: true) else { return nil }
            case .turnIsOver: continue
            case .failed, .wantIdentity: return nil
            }
        }
    }

    func wait(at gate: AnswerGate) {
        gate.arrivals.yield()
        _ = waits(for: gate.opened, orUntil: end)
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends all bytes. Returns `false` if the client does not accept them.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { bytes -> Int? in
                if let tls {
                    guard case .bytes(let count) = tls.write(bytes) else { return nil }
                    return count
                }
                let count = CLinux.send(
                    descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                return count < 0 ? nil : count
            }
            if let written { rest = rest.dropFirst(written) }
            if written == nil, __errno_location().pointee != EAGAIN { return false }
            if !rest.isEmpty, !waits(for: descriptor, orUntil: end, toWrite: true) {
                return false
            }
        }
        return true
    }

    /// Sends a complete response.
    func respond(_ status: String = "200 OK", _ fields: [String] = [], _ content: String = "") {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(content.utf8.count)"] + fields
        send(lines.joined(separator: "\r\n") + "\r\n\r\n" + content)
    }

    /// Returns the next bytes, which are not a request, or `nil` at the end.
    func receive() -> [UInt8]? {
        guard !input.isEmpty || read() else { return nil }
        defer { input = [] }
        return input
    }

    /// Waits until the client has closed the connection, discarding anything that it sends.
    func waitForEnd() { while read() { input = [] } }

    /// Relays bytes to and from a server until one side ends, as a proxy does in a tunnel.
    func relay(to endpoint: Endpoint) {
        guard let server = try? Sockets.connect(to: endpoint) else { return }
        defer { Descriptors.close(server) }
        guard waits(for: server, orUntil: end, toWrite: true) else { return }
        let other = TestConnection(server, end)
        while true {
            guard let sent = readNow(), let received = other.readNow() else { return }
            other.send(sent)
            send(received)
            guard sent.isEmpty, received.isEmpty else { continue }
            var asked = [descriptor, server, end].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            _ = poll(&asked, 3, -1)
            guard asked[2].revents == 0 else { return }
        }
    }

    /// A proxy's connection to a server.
    private init(_ descriptor: Int32, _ end: Int32) {
        self.descriptor = descriptor
        self.end = end
        tls = nil
    }

    /// Returns the available bytes, or `nil` if the other side has ended.
    private func readNow() -> [UInt8]? {
        defer { input = [] }
        if !input.isEmpty { return input }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        guard let tls else {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0, __errno_location().pointee == EAGAIN { return [] }
            return count > 0 ? Array(buffer.prefix(count)) : nil
        }
        switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
        case .bytes(let count, _): return Array(buffer.prefix(count))
        case .wantRead, .wantWrite, .turnIsOver: return []
        case .endOfStream, .truncated, .failed: return nil
        }
    }

    fileprivate func finish() { _ = tls?.shutdown() }

    /// Reads once. Returns `false` at the end.
    private func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            guard let tls else {
                guard waits(for: descriptor, orUntil: end) else { return false }
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { return false }
                input += buffer.prefix(count)
                return true
            }
            switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            case .bytes(let count, _):
                input += buffer.prefix(count)
                return true
            case .wantRead: guard waits(for: descriptor, orUntil: end) else { return false }
            case .wantWrite:
                guard waits(for: descriptor, orUntil: end, toWrite: true) else { return false }
            case .turnIsOver: continue
            case .endOfStream, .truncated, .failed: return false
            }
        }
    }

    fileprivate func readRequest(
        _ connection: Int, _ expectation: TestServer.Answer
    ) -> TestRequest? {
        guard let headEnd = find("\r\n\r\n", from: 0) else { return nil }
        let head = String(decoding: input[..<headEnd], as: UTF8.self)
        input.removeFirst(headEnd + 4)
        var request = TestRequest(head: head, content: [], connection: connection)
        if request.field("expect") != nil, !expectation(self, request) { return request }
        if request.field("transfer-encoding") == "chunked" {
            while let part = readChunk() {
                if part.isEmpty { return request }
                request.content += part
            }
            return nil
        }
        let length = request.field("content-length").flatMap { Int($0) } ?? 0
        guard let content = take(length) else { return nil }
        request.content = content
        return request
    }

    private func readChunk() -> [UInt8]? {
        guard let lineEnd = find("\r\n", from: 0),
            let count = Int(String(decoding: input[..<lineEnd], as: UTF8.self), radix: 16)
        else { return nil }
        input.removeFirst(lineEnd + 2)
        guard let content = take(count), take(2) != nil else { return nil }
        return content
    }

    private func take(_ count: Int) -> [UInt8]? {
        while input.count < count { guard read() else { return nil } }
        defer { input.removeFirst(count) }
        return Array(input.prefix(count))
    }

    private func find(_ text: String, from start: Int) -> Int? {
        let wanted = Array(text.utf8)
        while true {
            if let range = input.firstRange(of: wanted) { return range.lowerBound }
            guard read() else { return nil }
        }
    }
}

/// A self-signed identity for `127.0.0.1`, created once by the openssl command.
enum TestAuthority {
    private static let pem = makePEM(name: "client.test")

    /// Creates a key and a self-signed certificate for `127.0.0.1`, in PEM.
    static func makePEM(name: String, alternatives: String = "IP:127.0.0.1") -> [UInt8] {
        let command =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
            + "-subj /CN=\(name) -addext subjectAltName=\(alternatives) "
            + "-keyout - -out - 2>/dev/null"
        guard let output = popen(command, "r") else { fatalError("no openssl") }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = fread(&bytes, 1, bytes.count, output)
        guard pclose(output) == 0 else { fatalError("openssl failed") }
        return Array(bytes.prefix(count))
    }

    /// The certificate in PEM, without the key.
    static var certificate: [UInt8] { certificate(of: pem) }

    /// Returns the certificate in a PEM file that also has its key.
    static func certificate(of pem: [UInt8]) -> [UInt8] {
        let text = String(decoding: pem, as: UTF8.self)
        let start = text.firstRange(of: "-----BEGIN CERTIFICATE-----")?.lowerBound
        return Array(text[(start ?? text.startIndex)...].utf8)
    }

    static let server: TLSServerContext = {
        guard let identity = try? TLSServerIdentity(chainPEM: pem, keyPEM: pem),
            let context = try? TLSServerContext(identity: identity)
        else { fatalError("no server context") }
        return context
    }()

    /// The same server, requesting client certificates of an authority.
    static func server(askingForClientsOf authority: [UInt8]) throws -> TLSServerContext {
        let identity = try TLSServerIdentity(chainPEM: pem, keyPEM: pem)
        let roots = try TrustRoots([.file(name: "clients", contents: authority)])
        return try TLSServerContext(source: TLSIdentityList([identity]), clientRoots: roots)
    }

    /// A policy that trusts only this server.
    static func policy() throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.trustsSystem = false
        policy.anchors = try CertificatePin.pins(in: certificate).compactMap(\.certificate)
        return policy
    }
}

extension SessionConfiguration {
    /// A configuration whose timeouts never expire: the tests of all suites share a few threads, so
    /// what a test waits for may take minutes.
    static var patient: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.proxies = .direct
        configuration.connectTimeout = .seconds(3600)
        configuration.requestTimeout = .seconds(3600)
        configuration.idleConnectionTimeout = .seconds(3600)
        return configuration
    }
}
