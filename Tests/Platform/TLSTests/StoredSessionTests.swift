import Testing

@testable import PinfoldTLS

@Suite("A stored session")
struct StoredSessionTests {
    /// An element of DER.
    private func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
        let count = contents.count
        switch count {
        case ..<0x80: return [tag, UInt8(count)] + contents
        case ..<0x100: return [tag, 0x81, UInt8(count)] + contents
        case ..<0x10000: return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + contents
        default:
            return [tag, 0x83, UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
                + contents
        }
    }

    /// Lengths around those where one more octet is needed.
    @Test(arguments: [0, 1, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F, 0x80, 0xFB, 0xFF, 0x100, 0xFFFF, 0x10000])
    func `has all fields but the certificate, of any length`(_ count: Int) {
        let field = element(0x04, Array(repeating: 7, count: count))
        let certificate = element(0x30, Array(repeating: 9, count: 300))
        let before = element(0x02, [1]) + element(0xA1, element(0x02, [5]))
        let whole = element(0x30, before + element(0xA3, certificate) + field)
        let (session, found) = StoredSession.split(whole)
        #expect(session == element(0x30, before + field))
        #expect(found.map(Array.init) == certificate)
    }

    @Test func `is what it was if it is encoded in another way`() {
        let certificate = element(0xA3, element(0x30, [1, 2, 3]))
        let bytes = element(0x30, element(0x02, [1]) + certificate)
        let others = [
            [], [0x30], Array(bytes.dropLast()), bytes + [0], element(0x31, certificate),
            element(0x30, element(0x02, [1])), element(0x30, certificate + [0x02]),
        ]
        for other in others {
            let (session, found) = StoredSession.split(other)
            #expect(session == other)
            #expect(found == nil)
        }
    }

    /// Those who show the certificate still have it, at each of several resumptions.
    @Test(arguments: SessionTests.versions)
    func `keeps the certificate beside it`(_ version: Int32) throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: version), connections: 3)
        let context = try TLSClientContext.make(sessions: TLSSessionCache())
        var seen: [(der: [UInt8]?, end: Int64?, sent: [[UInt8]])] = []
        for index in 0..<3 {
            let client = try TestClient(context, port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
            let connection = client.connection
            #expect(connection.isResumed == (index > 0))
            seen.append(
                (connection.certificateDER, connection.certificateEnd, connection.sentCertificates))
            client.end()
        }
        #expect(seen[0].der != nil && seen[0].end != nil && seen[0].sent.first == seen[0].der)
        for index in 1...2 {
            #expect(seen[index].der == seen[0].der)
            #expect(seen[index].end == seen[0].end)
            #expect(seen[index].sent == seen[0].der.map { [$0] })
        }
    }
}
