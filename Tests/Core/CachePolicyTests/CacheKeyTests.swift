import HTTPCore
import Testing

@testable import CachePolicy

@Suite("The primary key is the normalised target URI")
struct CacheKeyTests {
    /// The key of a target as text, compared with its owning copy; `nil` if it is too long.
    private func key(_ target: String, scheme: Scheme? = nil, capacity: Int = 1024) -> String? {
        let request = Request(to: target)
        var memory = [UInt8](repeating: 0xEE, count: capacity)
        return memory.withUnsafeMutableBytes { buffer in
            guard
                let view = CacheKeyView.write(
                    request.head, in: request.bytes.span, scheme: scheme ?? request.head.scheme,
                    into: buffer)
            else { return nil }
            let owned = CacheKey(view)
            let rebuilt = CacheKey(bytes: owned.bytes)
            guard owned == rebuilt, owned.hash == view.hash, owned.matches(view),
                owned.withView({ rebuilt.matches($0) }), owned.hasQuery == view.hasQuery
            else { return "copies differ" }
            return text(view.bytes)
        }
    }

    @Test(
        arguments: [
            ("http://a.example/x", "http://a.example/x"),
            ("HTTP://A.Example/X", "http://a.example/X"),
            ("http://a.example", "http://a.example/"),
            ("http://a.example?q", "http://a.example/?q"),
            ("http://a.example/?q", "http://a.example/?q"),
            ("http://a.example:80/", "http://a.example/"),
            ("http://a.example:8080/", "http://a.example:8080/"),
            ("http://a.example:443/", "http://a.example:443/"),
            ("https://a.example:443/", "https://a.example/"),
            ("https://a.example:80/", "https://a.example:80/"),
            ("http://a.example:1/", "http://a.example:1/"),
            ("http://a.example:65535/", "http://a.example:65535/"),
            ("http://a.example./x", "http://a.example/x"),
            ("http://[2001:DB8::1]/x", "http://[2001:db8::1]/x"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://192.0.2.1/x", "http://192.0.2.1/x"),
            ("http://a.example/a%2fB/../c?D=%20&e", "http://a.example/a%2fB/../c?D=%20&e"),
        ])
    func `scheme and host are in lower case, a default port is left out, the path is never empty`(
        target: String, expected: String
    ) {
        #expect(key(target) == expected)
    }

    @Test func `the key has the scheme with which the request is sent`() {
        #expect(key("http://a.example/x", scheme: .https) == "https://a.example/x")
        #expect(key("http://a.example:80/x", scheme: .https) == "https://a.example:80/x")
        #expect(key("http://a.example:8443/x", scheme: .https) == "https://a.example:8443/x")
    }

    @Test
    func `a key that does not fit the memory or the limit is refused, one that just does is not`() {
        let target = "http://a.example/x"
        let needed = "a.example".utf8.count + "/x".utf8.count + CacheKey.reservedBytes
        #expect(key(target, capacity: needed) == target)
        #expect(key(target, capacity: needed - 1) == nil)
        #expect(key(target, capacity: 0) == nil)
        let path = "/" + String(repeating: "p", count: CacheKey.maximumBytes - 1 - 9 - 17)
        let long = Array(path.utf8)
        let host = Array("a.example".utf8)
        func fits(_ path: [UInt8]) -> Bool {
            var memory = [UInt8](repeating: 0, count: 64 << 10)
            return memory.withUnsafeMutableBytes {
                CacheKeyView.write(
                    scheme: .http, host: host.span, port: 80, path: path.span, into: $0) != nil
            }
        }
        #expect(fits(long))
        #expect(!fits(long + [0x70]))
    }

    @Test func `equal keys hash alike, and a set of many keys distinguishes them all`() {
        let keys = (0..<1000).map { CacheKey(bytes: Array("http://a.example/\($0)".utf8)) }
        #expect(Set(keys).count == 1000)
        #expect(Set(keys.map(\.hash)).count == 1000)
        #expect(Set(keys + keys).count == 1000)
    }

    @Test(arguments: [
        "", "/", "?", "?q", "/x", "/x?y", "/" + String(repeating: "long/", count: 40),
    ])
    func `a key behind the start of an origin is the key of the whole`(path: String) {
        for host in ["a", "a.example", "a.example:8080", "[2001:db8::1]:81"] {
            let start = CacheKeyStart(Array("http://\(host)".utf8))
            let written = CacheKeyStart(Array("rv5 http://\(host)".utf8))
            let whole = "http://\(host)\(path.hasPrefix("/") ? "" : "/")\(path)"
            var memory = [UInt8](repeating: 0xEE, count: CacheKey.maximumBytes)
            memory.withUnsafeMutableBytes { memory in
                let path = Array(path.utf8)
                let made = start.key(path: path.span, into: memory).map { CacheKey($0) }
                #expect(made == CacheKey(bytes: Array(whole.utf8)))
                let other = written.key(path: path.span, into: memory).map { CacheKey($0) }
                #expect(other == CacheKey(bytes: Array("rv5 \(whole)".utf8)))
            }
        }
    }

    @Test func `a key behind the start of an origin has the limit of all keys`() {
        let start = CacheKeyStart(Array("http://a.example".utf8))
        var memory = [UInt8](repeating: 0, count: 2 * CacheKey.maximumBytes)
        memory.withUnsafeMutableBytes { memory in
            func length(_ path: String, _ room: Int) -> Int? {
                let path = Array(path.utf8)
                let memory = UnsafeMutableRawBufferPointer(rebasing: memory[..<room])
                return start.key(path: path.span, into: memory)?.bytes.count
            }
            let longest = "/" + String(repeating: "p", count: CacheKey.maximumBytes - 16 - 2)
            #expect(length(longest, memory.count) == CacheKey.maximumBytes - 1)
            #expect(length(longest + "p", memory.count) == nil)
            #expect(length("/x", 19) == 18)
            #expect(length("/x", 18) == nil)
            #expect(length("?", 18) == 18)
            #expect(length("", 0) == nil)
        }
    }

    /// The key of the algorithm's own test vectors, 0 to 15, and messages of the bytes from 0 on;
    /// the values are those of other implementations of SipHash-1-3.
    @Test(
        arguments: [
            (0, 0xABAC_0158_050F_C4DC), (1, 0xC9F4_9BF3_7D57_CA93), (7, 0xD392_7D98_9BB1_1140),
            (8, 0x3690_9511_8D29_9A8E), (9, 0x25A4_8EB3_6C06_3DE4), (15, 0xD320_D86D_2A51_9956),
            (16, 0xCC4F_DD1A_7D90_8B66), (63, 0x9D19_9062_B7BB_B3A8),
        ] as [(Int, UInt64)])
    func `the hash is SipHash-1-3, in however many parts the bytes come`(
        count: Int, expected: UInt64
    ) {
        let bytes = (0..<count).map { UInt8($0) }
        func hash(_ parts: [ArraySlice<UInt8>]) -> UInt64 {
            var hasher = KeyHasher(seed: (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908))
            for part in parts { part.withUnsafeBytes { hasher.combine($0) } }
            return hasher.finalize()
        }
        #expect(hash([bytes[...]]) == expected)
        #expect(hash(bytes.indices.map { bytes[$0...$0] }) == expected)
        for first in 0...count {
            #expect(hash([bytes[..<first], bytes[first...]]) == expected)
            for second in first...count {
                let parts = [bytes[..<first], bytes[first..<second], bytes[second...]]
                #expect(hash(parts) == expected)
            }
        }
    }

    @Test func `a query is seen`() {
        #expect(CacheKey(bytes: Array("http://a.example/?".utf8)).hasQuery)
        #expect(!CacheKey(bytes: Array("http://a.example/".utf8)).hasQuery)
    }
}
