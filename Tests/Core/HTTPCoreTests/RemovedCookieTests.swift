import HTTPCore
import Testing

@Suite("Cookies that are taken out of a request")
struct RemovedCookieTests {
    /// What is forwarded of a request with these lines, and the cookie's value.
    private func take(_ lines: String...) throws -> (rest: [String], value: String?, has: Bool) {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
        var bytes = Array(text.utf8)
        var head = try requestHead(text)
        let value = bytes.withUnsafeMutableBytes {
            head.takeCookies(named: Array("route".utf8), in: $0)
        }
        var memory = [UInt8](repeating: 0, count: 1024)
        let written = memory.withUnsafeMutableBytes { memory in
            var writer = HeadWriter(memory)
            writer.appendForwardedFields(of: head, in: bytes.span)
            return writer.count
        }
        let forwarded = String(decoding: memory[..<written], as: UTF8.self)
            .split(separator: "\r\n").map(String.init)
        return (
            Array(forwarded.dropFirst()), value.map { String(decoding: $0, as: UTF8.self) },
            head.fields.contains(.cookie)
        )
    }

    private func trimmed(_ lines: [String]) -> [String] {
        lines.map { line in
            var rest = line[...]
            while rest.hasSuffix(" ") { rest.removeLast() }
            return String(rest)
        }
    }

    @Test(
        arguments: [
            ("route=x", [], "x"), ("a=1; route=x; b=2", ["Cookie: a=1; b=2"], "x"),
            ("route=x; a=1", ["Cookie: a=1"], "x"), ("a=1; route=x", ["Cookie: a=1"], "x"),
            ("a=1;route=x;b=2", ["Cookie: a=1;b=2"], "x"),
            ("route=x; route=y; a=1", ["Cookie: a=1"], "x"), ("route=; a=1", ["Cookie: a=1"], ""),
            ("route=a=b; c=d", ["Cookie: c=d"], "a=b"),
            (
                "routes=x; Route=y; xroute=z; route",
                ["Cookie: routes=x; Route=y; xroute=z; route"], nil
            ),
            ("a=1", ["Cookie: a=1"], nil), ("", ["Cookie:"], nil),
        ] as [(String, [String], String?)])
    func `the others are forwarded as they were`(
        cookie: String, expected: [String], value: String?
    ) throws {
        let found = try take("Cookie: \(cookie)")
        #expect(trimmed(found.rest) == expected)
        #expect(found.value == value)
        #expect(found.has == !expected.isEmpty)
    }

    @Test func `several fields are looked through, and one without cookies left is not sent`()
        throws
    {
        let found = try take("Cookie: a=1", "X: y", "Cookie: route=x", "cookie: b=2; route=z")
        #expect(trimmed(found.rest) == ["Cookie: a=1", "X: y", "cookie: b=2"])
        #expect(found.value == "x" && found.has)
    }

    @Test func `a request without cookies stays as it is`() throws {
        let found = try take("X: y")
        #expect(found.rest == ["X: y"] && found.value == nil && !found.has)
    }
}
