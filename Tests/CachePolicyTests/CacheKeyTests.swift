import HTTPCore
import Testing

@testable import CachePolicy

@Suite("The primary key is the normalised target URI")
struct CacheKeyTests {
    /// The key of a target as text, with how it compares with its owning copy; nil if too long.
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

    @Test func `the key says what scheme the request goes out with`() {
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

    @Test func `equal keys hash alike, and a set of many keys tells them all apart`() {
        let keys = (0..<1000).map { CacheKey(bytes: Array("http://a.example/\($0)".utf8)) }
        #expect(Set(keys).count == 1000)
        #expect(Set(keys.map(\.hash)).count == 1000)
        #expect(Set(keys + keys).count == 1000)
    }

    @Test func `a query is seen`() {
        #expect(CacheKey(bytes: Array("http://a.example/?".utf8)).hasQuery)
        #expect(!CacheKey(bytes: Array("http://a.example/".utf8)).hasQuery)
    }
}
