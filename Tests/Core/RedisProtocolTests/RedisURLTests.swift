import RedisProtocol
import Testing

@Suite("The URL of a server")
struct RedisURLTests {
    /// What is read of a text, as one text again.
    private func read(_ text: String) throws(RedisURLError) -> String {
        let url = try RedisURL(text)
        let place =
            switch url.server {
            case .tcp(let host, let port, let isSecure):
                "\(isSecure ? "tls" : "tcp") \(host) \(port)"
            case .unix(let path): "unix \(path)"
            }
        return "\(place) \(url.user ?? "-") \(url.database)"
    }

    @Test(arguments: [
        ("redis://localhost", "tcp localhost 6379 - 0"),
        ("redis://Cache.Example.com:7000/3", "tcp cache.example.com 7000 - 3"),
        ("REDISS://cache_1.example/", "tls cache_1.example 6379 - 0"),
        ("rediss://gateway@10.0.0.1:1", "tls 10.0.0.1 1 gateway 0"),
        ("redis://a@b@host:65535/65535", "tcp host 65535 a@b 65535"),
        ("redis://[::1]", "tcp ::1 6379 - 0"),
        ("redis://[2001:DB8::1]:7000/0", "tcp 2001:db8::1 7000 - 0"),
        ("unix:///run/redis/redis.sock", "unix /run/redis/redis.sock - 0"),
        ("unix:///run/redis.sock?db=12", "unix /run/redis.sock - 12"),
        ("unix://gateway@/run/a@b", "unix /run/a@b gateway 0"),
    ])
    func `says where it is, as whom, and which database`(_ text: String, _ expected: String) throws
    {
        #expect(try read(text) == expected)
    }

    @Test(arguments: [
        ("redis://localhost", "redis://localhost:6379"),
        ("rediss://a@Cache.Example.com:7000/3", "rediss://a@cache.example.com:7000/3"),
        ("redis://[::1]:1/0", "redis://[::1]:1"),
        ("unix:///run/redis.sock?db=12", "unix:///run/redis.sock?db=12"),
        ("unix://gateway@/run/a@b", "unix://gateway@/run/a@b"),
    ])
    func `is written in one way, which means the same`(_ text: String, _ expected: String) throws {
        let url = try RedisURL(text)
        #expect("\(url)" == expected)
        #expect(try RedisURL(expected) == url)
    }

    @Test(
        arguments: [
            ("", .noScheme), ("localhost:6379", .noScheme), ("redis:/localhost", .noScheme),
            ("://host", .unknownScheme), ("http://host", .unknownScheme),
            ("redis+tls://host", .unknownScheme),
            ("redis://ho st", .badCharacter), ("redis://host#1", .badCharacter),
            ("redis://höst", .badCharacter), ("unix:///a\nb", .badCharacter),
            ("redis://", .noHost), ("redis:///1", .noHost), ("redis://:6379", .noHost),
            ("redis://user@", .noHost), ("redis://user@:1", .noHost),
            ("redis://[::1", .badHost), ("redis://[::1]x", .badHost),
            ("redis://[host]", .badHost), ("redis://[127.0.0.1]", .badHost),
            ("redis://::1", .badHost), ("redis://ho*st", .badHost), ("redis://[]", .badHost),
            ("redis://host:", .badPort), ("redis://host:0", .badPort),
            ("redis://host:65536", .badPort), ("redis://host:07", .badPort),
            ("redis://host:+7", .badPort), ("redis://[::1]:", .badPort),
            ("redis://host/x", .badDatabase), ("redis://host/1/", .badDatabase),
            ("redis://host/01", .badDatabase), ("redis://host/65536", .badDatabase),
            ("redis://host/-1", .badDatabase), ("unix:///s?db=", .badDatabase),
            ("redis://@host", .badUser), ("redis://a%40@host", .badUser),
            ("redis://user:secret@host", .hasPassword), ("redis://:secret@host", .hasPassword),
            ("unix://user:secret@/s", .hasPassword),
            ("redis://host?db=1", .hasQuery), ("unix:///s?timeout=1", .hasQuery),
            ("unix:///s?", .hasQuery), ("unix:///s?db=1&x", .badDatabase),
            ("unix://", .noPath), ("unix:///", .noPath), ("unix://host/s", .noPath),
            ("unix://relative", .noPath),
        ] as [(String, RedisURLError)])
    func `is refused with what is wrong with it`(_ text: String, _ expected: RedisURLError) {
        #expect(throws: expected) { try read(text) }
    }

    @Test func `has a path that fits into an address`() throws {
        let longest = "/" + String(repeating: "a", count: 106)
        #expect(try read("unix://\(longest)") == "unix \(longest) - 0")
        #expect(throws: RedisURLError.pathTooLong) { try read("unix://\(longest)a") }
    }

    @Test func `has a text for each error`() {
        #expect(Set(RedisURLError.allCases.map(\.description)).count == 12)
    }
}
