import CLinux
import EventLoop
import Foundation
import PinfoldEngine
import PinfoldTLS
import Testing

/// The identity of `service.test`, and contexts for both sides that use it. It is created
/// once, with the `openssl` command.
package enum TestIdentity {
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
    /// The certificate in PEM form, without the key.
    package static var certificate: [UInt8] {
        let text = String(decoding: pem, as: UTF8.self)
        let start = text.firstRange(of: "-----BEGIN CERTIFICATE-----")?.lowerBound
        return Array(text[(start ?? text.startIndex)...].utf8)
    }
    package static var certificateDER: [UInt8] {
        let lines = String(decoding: certificate, as: UTF8.self).split(separator: "\n")
        let text = lines.drop { !$0.hasPrefix("-----BEGIN") }.dropFirst()
            .prefix { !$0.hasPrefix("-----END") }.joined()
        return Data(base64Encoded: text).map(Array.init) ?? []
    }

    package static let server: TLSServerContext = {
        guard let identity = try? TLSServerIdentity(chainPEM: pem, keyPEM: pem),
            let context = try? TLSServerContext(identity: identity)
        else { fatalError("no server context") }
        return context
    }()
    package static let client: TLSClientContext = {
        guard let roots = try? TrustRoots([.file(name: "roots", contents: certificate)]),
            let context = try? TLSClientContext(roots: roots)
        else { fatalError("no client context") }
        return context
    }()
}

extension Transport {
    /// The server's side of TLS over a socket.
    package static func server(_ descriptor: Int32, early: [UInt8] = []) throws -> Transport {
        let tls = try TLSServerConnection(
            context: TestIdentity.server, fileDescriptor: descriptor)
        early.withUnsafeBytes { tls.setEarly($0) }
        return Transport(descriptor: descriptor, tls: tls)
    }

    /// The client's side of TLS over a socket.
    package static func client(
        _ descriptor: Int32, _ context: TLSClientContext = TestIdentity.client
    ) throws -> Transport {
        let tls = try TLSClientConnection(
            context: context, fileDescriptor: descriptor, host: "service.test",
            port: 443, now: Int64(time(nil)))
        return Transport(descriptor: descriptor, tls: tls)
    }
}

/// The other end of a connection under test. The test decides when it advances, and it never
/// blocks. It closes its socket when it is released.
package final class FarEnd {
    package let transport: Transport
    package private(set) var received: [UInt8] = []
    /// How the stream ended; `nil` while it is open.
    package private(set) var end: End?
    package private(set) var isOpen = false
    private var queue = OutputQueue()
    private var endsAfterQueue = false
    private var budget = TurnBudget()
    private var isClosed = false

    package enum End: Equatable { case clean, truncated, failed }

    package init(_ transport: Transport) {
        self.transport = transport
        isOpen = !transport.isSecure
    }

    deinit { close() }

    package var text: String { String(decoding: received, as: UTF8.self) }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        Descriptors.close(transport.descriptor)
    }

    /// Closes its socket with a reset.
    package func reset() {
        Sockets.resetOnClose(transport.descriptor)
        close()
    }

    /// Queues bytes, which are sent as the end advances.
    package func send(_ bytes: [UInt8]) {
        let owner = Bytes(bytes)
        queue.append(UnsafeRawBufferPointer(owner.memory), owner: owner)
    }
    package func send(_ text: String) { send(Array(text.utf8)) }

    /// Ends its direction once everything has been sent.
    package func finish() { endsAfterQueue = true }

    /// Does everything that it can do without waiting.
    package func advance(on loop: EventLoop) {
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

extension StillEnvironment {
    /// Runs turns of the loop and advances the other ends until `isDone` returns true.
    /// - Returns: whether that happened within a minute. Turns are not counted instead, because a
    ///   peer's kernel may acknowledge late.
    package func run(_ ends: FarEnd..., until isDone: () -> Bool) -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        repeat {
            for end in ends { end.advance(on: loop) }
            loop.turn(waitingAtMost: 0)
            if isDone() { return true }
        } while ContinuousClock.now < end
        return false
    }
}

/// A temporary file whose bytes depend on their offsets.
package final class PatternFile {
    package let descriptor: Int32
    package let bytes: [UInt8]

    package init(count: Int) throws {
        bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        guard let file = tmpfile() else { throw Errno(code: EIO) }
        descriptor = dup(fileno(file))
        fclose(file)
        let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == count else { throw Errno(code: EIO) }
    }

    deinit { Descriptors.close(descriptor) }
}
