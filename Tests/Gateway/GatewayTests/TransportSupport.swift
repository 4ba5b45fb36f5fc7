import CLinux
import EventLoop
import Foundation
import PinfoldTLS
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// The identity of `service.test`, and what trusts it; made once, by OpenSSL's tool.
enum TestIdentity {
    private static let pem: [UInt8] = {
        let command =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
            + "-subj /CN=service.test -addext subjectAltName=DNS:service.test "
            + "-keyout - -out - 2>/dev/null"
        guard let output = popen(command, "r") else { fatalError("no openssl") }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = fread(&bytes, 1, bytes.count, output)
        guard pclose(output) == 0 else { fatalError("openssl failed") }
        return Array(bytes.prefix(count))
    }()
    /// Without the key.
    static var certificate: [UInt8] {
        let text = String(decoding: pem, as: UTF8.self)
        let start = text.firstRange(of: "-----BEGIN CERTIFICATE-----")?.lowerBound
        return Array(text[(start ?? text.startIndex)...].utf8)
    }
    static var certificateDER: [UInt8] {
        let lines = String(decoding: certificate, as: UTF8.self).split(separator: "\n")
        let text = lines.drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
            .prefix { !$0.hasPrefix("-----END") }.joined()
        return Data(base64Encoded: text).map(Array.init) ?? []
    }

    static let server: TLSServerContext = {
        guard let identity = try? TLSServerIdentity(chainPEM: pem, keyPEM: pem),
            let context = try? TLSServerContext(identity: identity)
        else { fatalError("no server context") }
        return context
    }()
    static let client: TLSClientContext = {
        guard let roots = try? TrustRoots([.file(name: "roots", contents: certificate)]),
            let context = try? TLSClientContext(roots: roots)
        else { fatalError("no client context") }
        return context
    }()
}

extension Transport {
    /// A server's side, over a socket.
    static func server(_ descriptor: Int32, early: [UInt8] = []) throws -> Transport {
        let tls = try TLSServerConnection(
            context: TestIdentity.server, fileDescriptor: descriptor)
        early.withUnsafeBytes { tls.setEarly($0) }
        return Transport(descriptor: descriptor, tls: tls)
    }

    /// A client's side, over a socket.
    static func client(
        _ descriptor: Int32, _ context: TLSClientContext = TestIdentity.client
    ) throws -> Transport {
        let tls = try TLSClientConnection(
            context: context, fileDescriptor: descriptor, host: "service.test",
            port: 443, now: Int64(time(nil)))
        return Transport(descriptor: descriptor, tls: tls)
    }
}

/// The other end of a connection under test: a test makes it go on when it likes, and it never
/// waits. Closes its socket.
final class FarEnd {
    let transport: Transport
    private(set) var received: [UInt8] = []
    /// How the stream ended; nil while it goes on.
    private(set) var end: End?
    private(set) var isOpen = false
    private var queue = OutputQueue()
    private var endsAfterQueue = false
    private var budget = TurnBudget()
    private var isClosed = false

    enum End: Equatable { case clean, truncated, failed }

    init(_ transport: Transport) {
        self.transport = transport
        isOpen = !transport.isSecure
    }

    deinit { close() }

    var text: String { String(decoding: received, as: UTF8.self) }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        Descriptors.close(transport.descriptor)
    }

    /// Closes its socket in a way that the other end takes for a reset.
    func reset() {
        Sockets.resetOnClose(transport.descriptor)
        close()
    }

    /// Queues bytes; they go out as the end goes on.
    func send(_ bytes: [UInt8]) {
        let owner = Bytes(bytes)
        queue.append(UnsafeRawBufferPointer(owner.memory), owner: owner)
    }
    func send(_ text: String) { send(Array(text.utf8)) }

    /// Ends its direction when everything has gone out.
    func finish() { endsAfterQueue = true }

    /// Does what it can now.
    func advance(on loop: EventLoop) {
        guard !isClosed, end == nil || endsAfterQueue || !queue.isEmpty else { return }
        if !isOpen {
            switch transport.handshake() {
            case .complete: isOpen = true
            case .failed: end = .failed
            case .wantRead, .wantWrite, .turnIsOver, .wantIdentity: break
            }
            guard isOpen else { return }
        }
        if !queue.isEmpty { _ = transport.flush(&queue, on: loop, spending: &budget) }
        if queue.isEmpty, endsAfterQueue, transport.finishSending() { endsAfterQueue = false }
        read()
    }

    private func read() {
        var memory = [UInt8](repeating: 0, count: 65_536)
        while end == nil {
            let result = memory.withUnsafeMutableBytes {
                transport.read(into: $0, spending: &budget)
            }
            switch result {
            case .bytes(let count, _): received += memory.prefix(count)
            case .wouldBlock, .turnIsOver: return
            case .endOfStream: end = .clean
            case .truncated: end = .truncated
            case .failed: end = .failed
            }
        }
    }

    private final class Bytes {
        let memory: UnsafeMutableRawBufferPointer
        init(_ bytes: [UInt8]) {
            memory = .allocate(byteCount: bytes.count, alignment: 1)
            memory.copyBytes(from: bytes)
        }
        deinit { memory.deallocate() }
    }
}

extension StillWorker {
    /// Runs turns of the loop, and lets the other ends go on, until `isDone`; whether that came
    /// within a minute. Turns alone are no measure: a peer's kernel may acknowledge late.
    func run(_ ends: FarEnd..., until isDone: () -> Bool) -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        repeat {
            for end in ends { end.advance(on: worker.loop) }
            worker.loop.turn(waitingAtMost: 0)
            if isDone() { return true }
        } while ContinuousClock.now < end
        return false
    }

    /// A client's connection over TLS, and its other end.
    func connectSecurely(as role: Ingress.Role = .admin) throws -> (ClientConnection, FarEnd) {
        let (client, far) = try connect({ try .server($0) }, as: role)
        return (client, FarEnd(try .client(far)))
    }
}

/// A file in memory of so many bytes that tell their place.
final class PatternFile {
    let descriptor: Int32
    let bytes: [UInt8]

    init(count: Int) throws {
        bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        guard let file = tmpfile() else { throw Errno(code: EIO) }
        descriptor = dup(fileno(file))
        fclose(file)
        let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == count else { throw Errno(code: EIO) }
    }

    deinit { Descriptors.close(descriptor) }
}
