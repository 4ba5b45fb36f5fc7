import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("The length of a ClientHello")
struct ClientHelloGaugeTests {
    private static func record(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
        [type, 3, 1, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    /// A handshake message's header, and as much of the message as is requested.
    private static func message(_ type: UInt8, length: Int, sent: Int = 0) -> [UInt8] {
        let header = [type, UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
        return header + [UInt8](repeating: 7, count: sent)
    }

    private static func admits(
        _ bytes: [UInt8], step: Int, endsAtCipherChange: Bool? = nil
    ) -> Bool {
        var gauge = ClientHelloGauge()
        if let endsAtCipherChange { gauge.endsAtCipherChange = endsAtCipherChange }
        return stride(from: 0, to: bytes.count, by: step).allSatisfy { start in
            bytes[start..<min(start + step, bytes.count)].withUnsafeBytes { gauge.admits($0) }
        }
    }

    @Test(arguments: [1, 2, 3, 7, 100_000])
    func `is taken up to a limit, however its bytes are cut`(step: Int) {
        let limit = ClientHelloGauge.maximumBytes
        for (length, isTaken) in [(0, true), (limit, true), (limit + 1, false), (131_000, false)] {
            let header = Self.message(1, length: length)
            #expect(Self.admits(Self.record(22, header), step: step) == isTaken)
            let cut = header.flatMap { Self.record(22, [$0]) }
            #expect(Self.admits(cut, step: step) == isTaken)
        }
    }

    @Test(arguments: [1, 100_000])
    func `is looked at in a second one, behind the compatible ChangeCipherSpec`(step: Int) {
        let first = Self.record(22, Self.message(1, length: 300, sent: 300))
        let second = Self.record(22, Self.message(1, length: 100_000))
        let change = Self.record(20, [1])
        #expect(!Self.admits(first + second, step: step))
        #expect(!Self.admits(first + change + second, step: step, endsAtCipherChange: false))
        // It may arrive with the first, before that has been read.
        #expect(!Self.admits(first + change + second, step: step))
    }

    @Test(arguments: [1, 100_000])
    func `does not count once there is encryption`(step: Int) {
        let looksLong = Self.record(22, Self.message(1, length: 100_000))
        for before in [Self.record(20, [1]), Self.record(23, [9, 9])] {
            #expect(Self.admits(before + looksLong, step: step, endsAtCipherChange: true))
        }
    }

    @Test func `of other messages is the library's`() {
        #expect(Self.admits(Self.record(22, Self.message(11, length: 100_000)), step: 1))
    }

    @Test func `ends the handshake before the library makes room`() throws {
        let sockets = SocketPair()
        let server = try TLSServerConnection(context: .make(), fileDescriptor: sockets.near)
        sockets.say(Self.record(22, Self.message(1, length: ClientHelloGauge.maximumBytes + 1)))
        #expect(
            server.handshake()
                == .failed(.protocolViolation("a ClientHello of more than 16384 bytes")))
        let other = SocketPair()
        let patient = try TLSServerConnection(context: .make(), fileDescriptor: other.near)
        other.say(Self.record(22, Self.message(1, length: ClientHelloGauge.maximumBytes)))
        #expect(patient.handshake() == .wantRead)
    }
}
