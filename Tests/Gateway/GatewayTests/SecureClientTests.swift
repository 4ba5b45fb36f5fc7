import CLinux
import EngineTestSupport
import EventLoop
import PinfoldTLS
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A client's connection over TLS")
struct SecureClientTests {
    private static let request = "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @Test func `the administration's answer arrives`() throws {
        let still = try StillWorker()
        let (client, far) = try still.connectSecurely()
        #expect(client.http.phase == .opening)
        far.send(Self.request)
        #expect(still.run(far) { far.text.contains("\r\n\r\n") })
        #expect(far.text.hasPrefix("HTTP/1.1 404 "))
        #expect(client.http.phase == .idle)
        #expect(far.end == nil)
    }

    @Test func `an error reply arrives, and the session ends well behind it`() throws {
        let still = try StillWorker()
        let (client, far) = try still.connectSecurely(as: .forward)
        far.send("GET / HTTP/1.1\r\nBad Header\r\n\r\n")
        #expect(still.run(far) { far.end != nil })
        #expect(far.text.hasPrefix("HTTP/1.1 400 "))
        #expect(far.end == .clean)
        #expect(client.http.phase == .lingering)
        far.finish()
        #expect(still.run(far) { client.http.phase == .closed })
    }

    @Test func `pipelined requests are answered, however they lie in records`() throws {
        let still = try StillWorker()
        let (_, far) = try still.connectSecurely()
        let pair = Array((Self.request + Self.request).utf8)
        for split in stride(from: 1, to: pair.count, by: 7) {
            let before = far.received.count
            far.send(Array(pair[..<split]))
            _ = still.run(far) { true }
            far.send(Array(pair[split...]))
            let answered = still.run(far) {
                String(decoding: far.received[before...], as: UTF8.self)
                    .ranges(of: "HTTP/1.1 404 ").count == 2
            }
            #expect(answered, "split at \(split)")
        }
    }

    /// Each response of the administration takes a whole turn, and no event reports what the
    /// session has already read.
    @Test func `requests that one read brought are all answered`() throws {
        let still = try StillWorker()
        let (_, far) = try still.connectSecurely()
        far.send(String(repeating: Self.request, count: 150))
        #expect(still.run(far) { far.text.ranges(of: "HTTP/1.1 404 ").count == 150 })
    }

    @Test func `what was read before the handshake is used`() throws {
        let still = try StillWorker()
        var early: [UInt8] = []
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        // Made over another pair, whose bytes are moved explicitly: the hello is early.
        let far = FarEnd(try .client(ends[1]))
        far.send(Self.request)
        far.advance(on: still.worker.loop)
        early = [UInt8](repeating: 0, count: 4096)
        early.removeLast(4096 - max(0, recv(ends[0], &early, 4096, 0)))
        #expect(early.count > 100)
        let (client, other) = try still.connect(
            { unused in
                dup2(ends[0], unused)
                return try .server(unused, early: early)
            }, as: .admin)
        Descriptors.close(ends[0])
        #expect(still.run(far) { far.text.hasPrefix("HTTP/1.1 404 ") })
        #expect(client.http.phase == .idle)
        Descriptors.close(other)
    }

    @Test func `a client that does not speak TLS is closed, with nothing but an alert`() throws {
        let still = try StillWorker()
        let (client, far) = try still.connect({ try .server($0) }, as: .admin)
        defer { Descriptors.close(far) }
        write(Self.request, to: far)
        for _ in 0..<10 where !client.isClosed { still.worker.loop.turn(waitingAtMost: 0) }
        #expect(client.http.phase == .closed)
        #expect(!readable(far).contains("HTTP"))
    }

    @Test func `a handshake has the time of a head`() throws {
        let still = try StillWorker("timeouts: { head: 7s }")
        let (client, far) = try still.connectSecurely()
        #expect(client.deadline == still.worker.loop.now + 7000)
        #expect(client.isIdle, "it makes room for others")
        client.deadlineReached()
        #expect(client.http.phase == .closed)
        #expect(still.run(far) { far.end != nil })
        #expect(far.end == .failed || far.end == .truncated)
    }

    @Test func `an idle connection ends with close_notify, one in an exchange is cut`() throws {
        for isIdle in [true, false] {
            let still = try StillWorker()
            let (client, far) = try still.connectSecurely(as: isIdle ? .admin : .forward)
            if isIdle {
                #expect(still.run(far) { client.http.phase == .idle })
                client.drain()
            } else {
                far.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
                #expect(still.run(far) { client.exchange?.state.name == "connecting" })
                client.cutOff()
            }
            #expect(client.http.phase == .closed)
            #expect(still.run(far) { far.end != nil })
            #expect(far.end == (isIdle ? .clean : .truncated))
        }
    }

    @Test func `a long run of a file arrives whole, in many turns`() throws {
        let still = try StillWorker()
        let (client, far) = try still.connectSecurely(as: .forward)
        far.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        #expect(still.run(far) { client.exchange?.state.name == "connecting" })
        let file = try PatternFile(count: 5_000_000)
        client.output.append("before")
        client.output.append(
            file: file.descriptor, offset: 7, count: file.bytes.count - 7, owner: file)
        client.output.append("behind")
        _ = client.flush()
        #expect(client.output.pendingBytes > 0)
        #expect(still.run(far) { client.isFlushed })
        let expected = Array("before".utf8) + file.bytes[7...] + Array("behind".utf8)
        #expect(still.run(far) { far.received.count == expected.count })
        #expect(far.received == expected)
        #expect(Int(client.responseBytes) == expected.count)
    }

    @Test func `a head that is being sent in a record is not withdrawn`() throws {
        for isFull in [false, true] {
            let still = try StillWorker()
            let (client, far) = try still.connectSecurely(as: .forward)
            far.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
            #expect(still.run(far) { client.exchange?.state.name == "connecting" })
            if isFull {
                let zeros = [UInt8](repeating: 0, count: 4096)
                while send(client.descriptor, zeros, zeros.count, 0) > 0 {}
            }
            client.bytesBeforeHead = client.responseBytes
            client.output.append("HTTP/1.1 200 OK\r\n\r\n")
            if isFull { #expect(!client.flush()) }
            #expect(client.withdrawHead() == !isFull)
            client.cutOff()
        }
    }
}
