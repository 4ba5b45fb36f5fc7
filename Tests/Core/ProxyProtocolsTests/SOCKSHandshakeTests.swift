import HTTPCore
import Testing

@testable import ProxyProtocols

@Suite("The server's side of SOCKS 5")
struct SOCKSHandshakeTests {
    /// Takes bytes in pieces, and goes on after each step that lets the client go on.
    static func steps(
        _ bytes: [UInt8], needsPassword: Bool = false, isRight: Bool = true, pieces: Int = .max
    ) -> (steps: [SOCKSHandshake.Step], consumed: Int) {
        var handshake = SOCKSHandshake(needsPassword: needsPassword)
        var found: [SOCKSHandshake.Step] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start &+ min(pieces, bytes.count))
            let (consumed, step) = handshake.take(bytes.span.extracting(start..<end))
            start += consumed
            switch step {
            case .needsMore:
                // Over: nothing more is taken.
                if consumed == 0 { return (found, start) }
                continue
            case .check:
                found.append(step)
                found.append(.send(handshake.judged(isRight)))
            case .send, .connect, .refuse: found.append(step)
            }
        }
        return (found, start)
    }

    static let greeting: [UInt8] = [5, 1, 0]

    static func request(_ type: UInt8, _ address: [UInt8], port: UInt16 = 443) -> [UInt8] {
        [5, 1, 0, type] + address + [UInt8(port >> 8), UInt8(port & 255)]
    }

    static func named(_ name: String, port: UInt16 = 443) -> [UInt8] {
        request(3, [UInt8(name.utf8.count)] + Array(name.utf8), port: port)
    }

    @Test(arguments: [1, 2, 3, .max])
    func `a client without password says where it wants to go`(pieces: Int) throws {
        let cases: [([UInt8], String)] = [
            (Self.request(1, [192, 0, 2, 1]), "192.0.2.1:443"),
            (
                Self.request(4, [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]),
                "[2001:db8::1]:443"
            ),
            (Self.named("example.com", port: 65535), "example.com:65535"),
            (Self.named("a"), "a:443"),
        ]
        for (request, authority) in cases {
            let bytes = Self.greeting + request
            let (steps, consumed) = Self.steps(bytes + [9, 9], pieces: pieces)
            #expect(consumed == bytes.count)
            guard steps.count == 2, case .connect(let destination) = steps[1] else {
                Issue.record("\(steps)")
                continue
            }
            #expect(steps[0] == .send([5, 0]))
            #expect(destination.authority == Array(authority.utf8))
        }
    }

    @Test(arguments: [1, 2, .max])
    func `a client with a password proves first who it is`(pieces: Int) {
        let bytes: [UInt8] =
            [5, 2, 0, 2, 1, 2] + Array("me".utf8) + [3] + Array("p:w".utf8) + Self.named("a.b")
        let (steps, consumed) = Self.steps(bytes, needsPassword: true, pieces: pieces)
        #expect(
            steps == [
                .send([5, 2]), .check(user: Array("me".utf8), password: Array("p:w".utf8)),
                .send([1, 0]),
                .connect(SOCKSDestination(.name(Array("a.b".utf8)), port: 443)),
            ])
        #expect(consumed == bytes.count)
    }

    @Test func `after a wrong password nothing more is taken`() {
        let credentials: [UInt8] = [5, 1, 2, 1, 1, 0x61, 1, 0x62]
        let (steps, consumed) = Self.steps(
            credentials + Self.named("a.b"), needsPassword: true, isRight: false)
        #expect(
            steps == [.send([5, 2]), .check(user: [0x61], password: [0x62]), .send([1, 1])])
        #expect(consumed == credentials.count)
    }

    @Test func `nothing is taken while a password is checked`() {
        var handshake = SOCKSHandshake(needsPassword: true)
        let bytes: [UInt8] = [5, 1, 2, 1, 1, 0x61, 0, 5, 1]
        _ = handshake.take(bytes.span.extracting(0..<3))
        let credentials = handshake.take(bytes.span.extracting(3..<9))
        #expect(credentials.consumed == 4)
        #expect(credentials.step == .check(user: [0x61], password: []))
        let more = handshake.take(bytes.span.extracting(7..<9))
        #expect(more.consumed == 0 && more.step == .needsMore)
    }

    @Test(arguments: [
        (4 as UInt8, SOCKSError.version4), (0x16, .tls), (UInt8(ascii: "G"), .http),
        (UInt8(ascii: "C"), .http), (0x0D, .http), (0, .version), (6, .version), (0xFF, .version),
    ])
    func `another protocol is refused at its first byte, and gets no answer`(
        first: UInt8, error: SOCKSError
    ) {
        for needsPassword in [false, true] {
            let (steps, consumed) = Self.steps([first, 1, 0, 0], needsPassword: needsPassword)
            #expect(steps == [.refuse(error, [])])
            #expect(consumed == 1)
        }
    }

    @Test(
        arguments: [
            ([5, 0], false), ([5, 1, 2], false), ([5, 1, 1], false), ([5, 1, 0], true),
            ([5, 2, 0, 1], true), ([5, 1, 0xFF], false), ([5, 0], true),
        ] as [([UInt8], Bool)])
    func `a client that offers no method that is accepted is told so`(
        bytes: [UInt8], needsPassword: Bool
    ) {
        let (steps, _) = Self.steps(bytes, needsPassword: needsPassword, pieces: 1)
        #expect(steps == [.refuse(.noMethod, [5, 0xFF])])
    }

    @Test func `of 255 methods the accepted one is found`() {
        let methods = (0...254).map { UInt8(254 - $0) }
        #expect(Self.steps([5, 255] + methods, pieces: 1).steps == [.send([5, 0])])
        #expect(Self.steps([5, 255] + methods, needsPassword: true).steps == [.send([5, 2])])
    }

    @Test(
        arguments: [
            [0], [5], [2, 1], [1, 0], [1, 0, 0], [1, 1, 0x3A, 1, 0x61],
            [1, 3, 0x61, 0x3A, 0x62, 0],
        ] as [[UInt8]])
    func `malformed credentials, no user and a colon in its name are refused`(bytes: [UInt8]) {
        for pieces in [1, .max] {
            let (steps, _) = Self.steps([5, 1, 2] + bytes, needsPassword: true, pieces: pieces)
            #expect(steps == [.send([5, 2]), .refuse(.malformedCredentials, [1, 1])])
        }
    }

    @Test func `a name of 58 bytes is not taken for one with a colon`() {
        let name = [UInt8](repeating: 0x61, count: 58)
        let bytes: [UInt8] = [5, 1, 2, 1, 58] + name + [1, 0x62]
        let (steps, _) = Self.steps(bytes, needsPassword: true, pieces: 1)
        #expect(steps.contains(.check(user: name, password: [0x62])))
    }

    @Test(
        arguments: [
            ([4], SOCKSError.malformedRequest, 1), ([5, 2], .command, 7), ([5, 3], .command, 7),
            ([5, 0], .command, 7), ([5, 0xFF], .command, 7), ([5, 1, 1], .malformedRequest, 1),
            ([5, 1, 0, 0], .addressType, 8), ([5, 1, 0, 2], .addressType, 8),
            ([5, 1, 0, 5], .addressType, 8), ([5, 1, 0, 3, 0], .malformedDestination, 1),
            ([5, 1, 0, 1, 192, 0, 2, 1, 0, 0], .malformedDestination, 1),
        ] as [([UInt8], SOCKSError, UInt8)])
    func `a request that cannot be served is answered with its code`(
        bytes: [UInt8], error: SOCKSError, code: UInt8
    ) {
        for pieces in [1, .max] {
            let (steps, _) = Self.steps(Self.greeting + bytes + [1, 2, 3], pieces: pieces)
            #expect(
                steps == [.send([5, 0]), .refuse(error, [5, code, 0, 1, 0, 0, 0, 0, 0, 0])])
        }
    }

    @Test(arguments: [
        "a b", "a\r\nX-Evil: 1", "a\0b", "a/b", "a?b", "a#b", "user@host", "a:80", "[a]", "a\\b",
        "é.example", "a\u{7F}", "\t", "a\n",
    ])
    func `a name with what would end it in an authority is refused`(name: String) {
        let (steps, _) = Self.steps(Self.greeting + Self.named(name))
        #expect(
            steps.last == .refuse(.malformedDestination, SOCKSReply.generalFailure.bytes), "\(name)"
        )
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:443"), ("::1", "[::1]:443"), ("[::1]", "[::1]:443"),
        ("::ffff:127.0.0.1", "[::ffff:127.0.0.1]:443"), ("0:0:0:0:0:0:0:1", "[::1]:443"),
    ])
    func `an address in the form of a name is an address`(name: String, authority: String) {
        let (steps, _) = Self.steps(Self.greeting + Self.named(name))
        guard case .connect(let destination)? = steps.last else {
            Issue.record("\(steps)")
            return
        }
        guard case .address = destination.host else {
            Issue.record("\(destination)")
            return
        }
        #expect(destination.authority == Array(authority.utf8))
    }

    @Test func `every prefix of a good client waits for the rest`() {
        let bytes: [UInt8] = [5, 1, 2, 1, 1, 0x61, 1, 0x62] + Self.named("example.com")
        let all = Self.steps(bytes, needsPassword: true).steps
        for count in 0..<bytes.count {
            let (steps, consumed) = Self.steps(Array(bytes[..<count]), needsPassword: true)
            #expect(steps == Array(all.prefix(steps.count)) && steps.count < all.count)
            #expect(consumed == count)
        }
    }

    @Test func `with any byte changed a client is read the same at once and byte by byte`() {
        let bytes: [UInt8] = [5, 1, 2, 1, 1, 0x61, 1, 0x62] + Self.named("a.b") + [7, 7]
        for index in bytes.indices {
            for value in UInt8.min...UInt8.max {
                var changed = bytes
                changed[index] = value
                let whole = Self.steps(changed, needsPassword: true)
                let single = Self.steps(changed, needsPassword: true, pieces: 1)
                #expect(whole.steps == single.steps && whole.consumed == single.consumed)
            }
        }
    }
}
