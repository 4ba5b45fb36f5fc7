import HTTPCore
import Testing

@testable import ProxyProtocols

/// What a proxy sends, what is sent to it after the greeting, and how it ends.
private struct Dialogue: Sendable, CustomTestStringConvertible {
    let name: String
    var credentials = false
    let answers: [[UInt8]]
    var sent: [[UInt8]] = []
    var error: SOCKS5Error?
    /// Bytes of the target after the last answer.
    var leftover = 0

    var testDescription: String { name }
}

private let name: [UInt8] = [5, 1, 0, 3, 8] + Array("host.tst".utf8) + [0x01, 0xBB]
private let login: [UInt8] = [1, 2] + Array("me".utf8) + [3] + Array("pwd".utf8)

private let dialogues: [Dialogue] = [
    Dialogue(name: "IPv4", answers: [[5, 0], [5, 0, 0, 1, 9, 9, 9, 9, 0, 80]], sent: [name]),
    Dialogue(
        name: "IPv6", answers: [[5, 0], [5, 0, 0, 4] + Array(repeating: 7, count: 18)],
        sent: [name]),
    Dialogue(
        name: "a name of no bytes", answers: [[5, 0], [5, 0, 0, 3, 0, 0, 0]], sent: [name]),
    Dialogue(
        name: "a name, and data", answers: [[5, 0], [5, 0, 0, 3, 2, 65, 66, 0, 80, 1, 2, 3]],
        sent: [name], leftover: 3),
    Dialogue(
        name: "a password", credentials: true,
        answers: [[5, 2], [1, 0], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]], sent: [login, name]),
    Dialogue(
        name: "a password not wanted", credentials: true,
        answers: [[5, 0], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]], sent: [name]),
    Dialogue(
        name: "a wrong password", credentials: true, answers: [[5, 2], [1, 1]], sent: [login],
        error: .authenticationFailed),
    Dialogue(
        name: "a password asked of anybody", answers: [[5, 2]], error: .authenticationRequired),
    Dialogue(name: "no method", answers: [[5, 0xFF]], error: .authenticationRequired),
    Dialogue(
        name: "no method for a password", credentials: true, answers: [[5, 0xFF]],
        error: .authenticationFailed),
    Dialogue(name: "another method", answers: [[5, 1]], error: .methodNotOffered(1)),
    Dialogue(name: "SOCKS4", answers: [[0]], error: .notSOCKS5(0)),
    Dialogue(name: "HTTP", answers: [Array("HTTP/1.1 400".utf8)], error: .notSOCKS5(72)),
    Dialogue(
        name: "another version of the password", credentials: true, answers: [[5, 2], [5, 0]],
        sent: [login], error: .malformed),
    Dialogue(
        name: "refused", answers: [[5, 0], [5, 5]], sent: [name],
        error: .refused(SOCKS5RefusalReason(code: 5))),
    Dialogue(
        name: "another version of the reply", answers: [[5, 0], [4]], sent: [name],
        error: .notSOCKS5(4)),
    Dialogue(
        name: "a reserved byte", answers: [[5, 0], [5, 0, 1]], sent: [name], error: .malformed),
    Dialogue(
        name: "a kind of address", answers: [[5, 0], [5, 0, 0, 2, 0]], sent: [name],
        error: .malformed),
]

@Suite("A handshake with a SOCKS5 proxy")
struct SOCKS5ClientHandshakeTests {
    /// Passes all bytes in pieces of a size.
    private func run(_ dialogue: Dialogue, inPiecesOf size: Int) {
        let credentials = SOCKS5ClientHandshake.Credentials(
            user: Array("me".utf8), password: Array("pwd".utf8))
        var handshake = SOCKS5ClientHandshake(
            to: SOCKSDestination(.name(Array("host.tst".utf8)), port: 443),
            as: dialogue.credentials ? credentials : nil)
        #expect(
            handshake.greeting == (dialogue.credentials ? [5, 2, 0, 2] : [5, 1, 0]))
        let all = dialogue.answers.flatMap { $0 }
        var (sent, position, opened) = ([[UInt8]](), 0, false)
        do throws(SOCKS5Error) {
            while position < all.count, !opened {
                let piece = Array(all[position..<min(all.count, position + size)])
                let (action, consumed) = try handshake.receive(piece.span)
                position += consumed
                switch action {
                case .wait: #expect(consumed == piece.count)
                case .send(let bytes): sent.append(bytes)
                case .opened: opened = true
                }
            }
            #expect(dialogue.error == nil)
            #expect(opened)
            #expect(all.count - position == dialogue.leftover)
        } catch {
            #expect(error == dialogue.error)
        }
        #expect(sent == dialogue.sent)
    }

    @Test(arguments: dialogues)
    private func `is the same in one piece and byte by byte`(dialogue: Dialogue) {
        for size in [1, 2, 3, 1000] { run(dialogue, inPiecesOf: size) }
    }

    @Test func `names the target in the shortest form`() throws {
        func request(_ address: IPAddress, port: UInt16) throws -> [UInt8] {
            var handshake = SOCKS5ClientHandshake(
                to: SOCKSDestination(.address(address), port: port))
            let chosen: [UInt8] = [5, 0]
            guard case .send(let bytes) = try handshake.receive(chosen.span).action else {
                return []
            }
            return bytes
        }
        #expect(
            try request(.v4(0x0102_0304), port: 80) == [5, 1, 0, 1, 1, 2, 3, 4, 0, 80])
        #expect(
            try request(.v6(0, 0xFFFF_0102_0304), port: 80)
                == [5, 1, 0, 1, 1, 2, 3, 4, 0, 80])
        #expect(
            try request(.v6(0x2001_0DB8 << 32, 1), port: 0x1234)
                == [5, 1, 0, 4, 0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11)
                + [1, 0x12, 0x34])
    }

    @Test func `takes credentials of 1 to 255 bytes`() {
        func isAccepted(_ user: Int, _ password: Int) -> Bool {
            SOCKS5ClientHandshake.Credentials(
                user: Array(repeating: 65, count: user),
                password: Array(repeating: 65, count: password)) != nil
        }
        #expect(isAccepted(1, 1))
        #expect(isAccepted(255, 255))
        #expect(!isAccepted(0, 1))
        #expect(!isAccepted(1, 0))
        #expect(!isAccepted(256, 1))
        #expect(!isAccepted(1, 256))
    }

    private func hears(
        _ bytes: [UInt8], _ client: inout SOCKS5ClientHandshake
    ) throws -> SOCKS5ClientHandshake.Action { try client.receive(bytes.span).action }

    @Test func `is understood by the server's side, in both directions`() throws {
        let hosts: [SOCKSDestination.Host] = [
            .address(.v4(0x0102_0304)), .address(.v6(0x2001_0DB8 << 32, 1)), .name([97]),
            .name([UInt8](repeating: 97, count: 255)),
        ]
        for (host, needsPassword) in hosts.flatMap({ [($0, false), ($0, true)] }) {
            let destination = SOCKSDestination(host, port: 443)
            var client = SOCKS5ClientHandshake(
                to: destination,
                as: needsPassword ? .init(user: [117], password: [112]) : nil)
            var server = SOCKSHandshake(needsPassword: needsPassword)
            var (asked, found) = (client.greeting, nil as SOCKSDestination?)
            while found == nil {
                let answer: [UInt8]
                switch server.take(asked.span).step {
                case .send(let bytes): answer = bytes
                case .check: answer = server.judged(true)
                case .connect(let wanted):
                    found = wanted
                    continue
                case .needsMore, .refuse:
                    Issue.record("\(destination)")
                    return
                }
                guard case .send(let bytes) = try hears(answer, &client) else {
                    Issue.record("\(destination)")
                    return
                }
                asked = bytes
            }
            #expect(found == destination)
            let reply = SOCKSReply.succeeded.bytes
            #expect(try hears(reply, &client) == .opened)
        }
    }

    @Test func `names every code of a refusal`() {
        #expect("\(SOCKS5RefusalReason(code: 5))" == "connection refused (5)")
        #expect("\(SOCKS5RefusalReason(code: 99))" == "unknown code (99)")
        #expect((1...255).filter { SOCKS5RefusalReason(code: $0).isByRule } == [2])
    }

    @Test func `whatever a proxy sends, it ends with an error or waits`() {
        var state: UInt64 = 7
        for _ in 0..<20_000 {
            var handshake = SOCKS5ClientHandshake(
                to: SOCKSDestination(.name([97]), port: 1))
            var bytes: [UInt8] = [5, 0, 5, 0, 0]
            for _ in 0..<6 {
                state = state &* 6_364_136_223_846_793_005 &+ 1
                bytes.append(UInt8(truncatingIfNeeded: state >> 33))
            }
            let changed = Int(state >> 40) % bytes.count
            bytes[changed] = UInt8(truncatingIfNeeded: state >> 20)
            var position = 0
            while position < bytes.count {
                let piece = Array(bytes[position...])
                guard let (action, consumed) = try? handshake.receive(piece.span), consumed > 0
                else { break }
                position += consumed
                if case .opened = action { break }
            }
        }
    }
}
