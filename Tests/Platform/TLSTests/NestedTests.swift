import CLinux
import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("A session inside a session")
struct NestedTests {
    private static let versions: [TLSVersion] = [.tls12, .tls13]

    @Test(arguments: versions, versions)
    func `opens, and carries content both ways`(outer: TLSVersion, inner: TLSVersion) throws {
        let pair = try NestedPair(outerVersion: outer, innerVersion: inner)
        #expect(pair.handshake() == .complete)
        #expect(pair.outer.server.version == outer)
        #expect(pair.server.version == inner)
        let content = TransferTests.pattern(50_000)
        pair.write(content)
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        let received = pair.server.readAll()
        #expect(received.bytes == content)
        #expect(received.end == .wantRead)
        #expect(pair.server.write(content) == .bytes(content.count))
        #expect(pair.read().bytes == content)
    }

    @Test(arguments: versions)
    func `opens and reads when each byte is a record of the outer one`(inner: TLSVersion) throws {
        let pair = try NestedPair(innerVersion: inner)
        #expect(pair.handshake(pieces: 1) == .complete)
        pair.write(Array("request".utf8))
        var received: [UInt8] = []
        for byte in pair.takeOutput() {
            #expect(pair.outer.client.write([byte]) == .bytes(1))
            received += pair.server.readAll().bytes
        }
        #expect(received == Array("request".utf8))
    }

    @Test func `what was received before the handshake is used`() throws {
        let pair = try NestedPair()
        _ = SSL_do_handshake(pair.client)
        let hello = pair.takeOutput()
        hello.prefix(100).withUnsafeBytes { pair.server.setEarly($0) }
        #expect(pair.server.handshake() == .wantRead)
        let rest = Array(hello.dropFirst(100))
        #expect(pair.outer.client.write(rest) == .bytes(rest.count))
        #expect(pair.handshake() == .complete)
    }

    /// No poller edge reports what the outer session has already decrypted.
    @Test(arguments: [false, true])
    func `a read reports more while the outer session holds some`(trusts: Bool) throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        pair.write(TransferTests.pattern(1000), records: 10)
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        var (received, ends) = ([UInt8](), 0)
        var buffer = [UInt8](repeating: 0, count: 64)
        while received.count < 1000 {
            let result = buffer.withUnsafeMutableBytes {
                pair.server.read(into: $0, trustsShortReceive: trusts)
            }
            switch result {
            case .bytes(let count, let drained):
                received += buffer.prefix(count)
                if drained { ends += 1 }
            case .turnIsOver: continue
            default:
                Issue.record("\(result) after \(received.count) bytes")
                return
            }
        }
        #expect(received == TransferTests.pattern(1000))
        #expect(ends <= 1)
        #expect(pair.server.readAll().end == .wantRead)
    }

    @Test func `one read decrypts a bounded number of records of both`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        let content = TransferTests.pattern(2000)
        pair.write(content, records: 1)
        // Each inner record spans two of the outer ones.
        let output = pair.takeOutput()
        var (received, most) = ([UInt8](), 0)
        var buffer = [UInt8](repeating: 0, count: 16_384)
        for start in stride(from: 0, to: output.count, by: 11 * 100) {
            for piece in stride(from: start, to: min(start + 11 * 100, output.count), by: 11) {
                let bytes = Array(output[piece..<min(piece + 11, output.count)])
                #expect(pair.outer.client.write(bytes) == .bytes(bytes.count))
            }
            reading: while true {
                let result = buffer.withUnsafeMutableBytes { pair.server.read(into: $0) }
                most = max(most, pair.server.recordsOfLastRead)
                switch result {
                case .bytes(let count, let drained):
                    received += buffer.prefix(count)
                    if drained { break reading }
                case .turnIsOver: continue
                default: break reading
                }
            }
        }
        #expect(received == content)
        #expect((64...192).contains(most), "\(most)")
    }

    @Test func `a write stops at the full socket and continues`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        let content = TransferTests.pattern(2_000_000)
        var (taken, stops) = (0, 0)
        var received: [UInt8] = []
        for _ in 0..<10_000 where received.count < content.count {
            if taken < content.count {
                switch pair.server.write(Array(content[taken...])) {
                case .bytes(let count): taken += count
                case .wantWrite: break
                case let other: Issue.record("unexpected \(other)")
                }
                if taken < content.count { stops += 1 }
                #expect(pair.server.isWithinRecord == (taken < content.count))
            }
            received += pair.read().bytes
        }
        #expect(received == content)
        #expect(stops > 1)
        #expect(!pair.outer.server.isWithinRecord)
    }

    @Test func `is read while its write waits for the socket`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        let content = TransferTests.pattern(2_000_000)
        guard case .bytes(let taken) = pair.server.write(content), taken < content.count else {
            Issue.record("the socket takes everything")
            return
        }
        pair.write(Array("meanwhile".utf8))
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        #expect(pair.server.readAll().bytes == Array("meanwhile".utf8))
        let first = pair.read().bytes
        #expect(pair.server.failure == nil)
        #expect(first == Array(content.prefix(first.count)))
    }

    /// What a key update requires is sent with the next write, after the current record.
    @Test(arguments: [false, true])
    func `follows key updates of both while a write waits`(isSocketFull: Bool) throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        let content = TransferTests.pattern(isSocketFull ? 1_000_000 : 1000)
        guard case .bytes(var taken) = pair.server.write(content) else {
            Issue.record("\(String(describing: pair.server.failure))")
            return
        }
        #expect((taken < content.count) == isSocketFull)
        pair.updateKeys()
        pair.write(Array("meanwhile".utf8))
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        #expect(pair.server.readAll().bytes == Array("meanwhile".utf8))
        var received = pair.read().bytes
        for _ in 0..<1000 where taken < content.count {
            if case .bytes(let count) = pair.server.write(Array(content[taken...])) {
                taken += count
            }
            received += pair.read().bytes
        }
        #expect(pair.server.write("last") == .bytes(4))
        #expect(received + pair.read().bytes == content + Array("last".utf8))
        #expect(pair.server.failure == nil)
        #expect(pair.outer.server.failure == nil)
    }

    @Test func `ends normally only by its own end`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        pair.write(Array("last".utf8))
        SSL_shutdown(pair.client)
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        let all = pair.server.readAll()
        #expect(all.bytes == Array("last".utf8))
        #expect(all.end == .endOfStream)
        #expect(pair.server.write("answer") == .bytes(6))
        #expect(pair.read().bytes == Array("answer".utf8))
    }

    @Test(arguments: [true, false])
    func `is truncated when only the outer one ends`(isOuterCut: Bool) throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        pair.write(Array("last".utf8))
        let output = pair.takeOutput()
        #expect(pair.outer.client.write(output) == .bytes(output.count))
        if isOuterCut {
            pair.outer.sockets.closeFar()
        } else {
            #expect(pair.outer.client.shutdown())
        }
        let all = pair.server.readAll()
        #expect(all.bytes == Array("last".utf8))
        #expect(all.end == .truncated)
        #expect(pair.server.failure == .truncated)
    }

    @Test func `fails with the outer one's reason`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        pair.outer.sockets.say([23, 3, 3, 0, 32] + [UInt8](repeating: 7, count: 32))
        #expect(pair.server.readAll().end == .failed)
        #expect(pair.server.failure == pair.outer.server.failure)
        #expect(pair.server.failure?.token == "protocol-violation")
        #expect(pair.server.write("x") == .failed)
    }

    @Test func `ends the outer one with itself`() throws {
        let pair = try NestedPair()
        #expect(pair.handshake() == .complete)
        #expect(pair.server.write("last") == .bytes(4))
        #expect(pair.server.shutdown())
        let all = pair.outer.client.readAll()
        #expect(all.end == .endOfStream)
        #expect(all.bytes.count > 4)
    }

    @Test func `is released, and the outer one with it`() throws {
        weak var inner: TLSServerConnection?
        weak var outer: TLSServerConnection?
        do {
            let pair = try NestedPair()
            #expect(pair.handshake() == .complete)
            (inner, outer) = (pair.server, pair.outer.server)
            #expect(inner != nil && outer != nil)
        }
        #expect(inner == nil)
        #expect(outer == nil)
    }

    @Test func `keeps its own reason when its alert finds the outer one broken`() throws {
        let pair = try NestedPair(innerVersion: .tls12, innerMinimum: .tls13)
        _ = SSL_do_handshake(pair.client)
        let hello = pair.takeOutput()
        #expect(pair.outer.client.write(hello) == .bytes(hello.count))
        pair.outer.sockets.closeFar()
        #expect(pair.server.handshake() == .failed(.versionRefused))
    }

    /// The error is in the library's queue while its alert is sent through the outer session.
    @Test func `is refused with the alert, and its reason is kept`() throws {
        let pair = try NestedPair(innerVersion: .tls12, innerMinimum: .tls13)
        #expect(pair.handshake() == .failed(.versionRefused))
        #expect(pair.server.sentAlert == TLSAlert(code: 70))
        #expect(SSL_do_handshake(pair.client) == -1)
        let reason = ERR_reason_error_string(ERR_get_error()).map { String(cString: $0) }
        #expect(reason == "tlsv1 alert protocol version")
        #expect(pair.outer.server.failure == nil)
    }

    @Test func `reports what is not TLS`() throws {
        let pair = try NestedPair()
        let sent = Array("GET / HTTP/1.1\r\n\r\n".utf8)
        #expect(pair.outer.client.write(sent) == .bytes(sent.count))
        #expect(pair.server.handshake() == .failed(.notTLS))
        #expect(pair.outer.server.failure == nil)
    }
}
