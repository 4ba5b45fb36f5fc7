import COpenSSL
import Testing

@testable import PinfoldTLS

/// What a server can make the library do other than read content.
@Suite("Floods")
struct FloodTests {
    /// Reads to the end; also returns the maximum number of records that one read decrypted.
    private func readAll(
        _ client: TestClient
    ) -> (end: TLSReadResult, bytes: [UInt8], records: Int, turns: Int) {
        var (bytes, records, turns): ([UInt8], Int, Int) = ([], 0, 0)
        while true {
            let step = client.read(128 * 1024)
            bytes += step.bytes
            records = max(records, client.connection.recordsOfLastRead)
            switch step.result {
            case .bytes(_, drained: false): continue
            case .turnIsOver: turns += 1
            case .bytes(_, drained: true), .wantRead:
                guard client.waitUntil(1) else { return (step.result, bytes, records, turns) }
            case .wantWrite, .endOfStream, .truncated, .failed:
                return (step.result, bytes, records, turns)
            }
        }
    }

    @Test(arguments: [1, 50, 200])
    func `an honest number of key updates is followed`(count: Int) throws {
        let server = TestServer([PKI.direct], .updateKeys(count, Array("hello".utf8)))
        let client = try TestClient(.make(), port: server.port)
        #expect(client.handshake() == nil)
        #expect(client.write(Array("request".utf8)))
        let response = readAll(client)
        #expect(response.end == .endOfStream)
        #expect(response.bytes == Array("hello".utf8))
        // Each once, and two tickets.
        #expect(client.connection.socket.pointee.lateMessages == count + 2)
    }

    @Test func `a flood of key updates ends the connection, with its reason`() throws {
        let server = TestServer([PKI.direct], .updateKeys(100_000, Array("hello".utf8)))
        let client = try TestClient(.make(), port: server.port)
        #expect(client.handshake() == nil)
        #expect(client.write(Array("request".utf8)))
        let response = readAll(client)
        #expect(response.end == .failed)
        #expect(client.connection.failure == .tooManyMessages)
        #expect(client.connection.failure?.token == "too-many-messages")
        client.end()
        server.stop()
    }

    @Test func `one read decrypts a bounded number of records however small they are`() throws {
        let content = [UInt8](repeating: 7, count: 5000)
        let server = TestServer([PKI.direct], .dribble(content))
        let client = try TestClient(.make(), port: server.port)
        #expect(client.handshake() == nil)
        #expect(client.write(Array("request".utf8)))
        let response = readAll(client)
        #expect(response.end == .endOfStream)
        #expect(response.bytes == content)
        #expect(response.records <= 64)
    }
}
