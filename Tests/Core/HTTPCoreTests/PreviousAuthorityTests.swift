import HTTPCore
import Testing

@Suite("Targets one after another on a connection")
struct PreviousAuthorityTests {
    /// Pairs in which one begins like the other, and pairs in which it only seems to.
    private static let lines: [String] = [
        "GET http://a.example/x", "GET http://a.example", "GET http://a.example?q",
        "GET http://a.example/", "HEAD http://a.example/y", "OPTIONS http://a.example",
        "GET http://a.example./x", "GET http://a.example.:80/x", "GET http://a.example:80/x",
        "GET http://a.example:/x", "GET http://a.example:8080/x", "GET http://a.example:808/x",
        "GET http://a.example:80800/x", "GET http://a.examplf/x", "GET http://a.exampl/x",
        "GET http://A.example/x", "GET HTTP://a.example/x", "GET https://a.example/x",
        "GET http://a.example@b/x", "GET http://a.example:80@b/x", "GET http://a.example,b/x",
        "GET http://a.example%2e/x", "GET http://a.examplé/x",
        "GET http://[2001:db8::1]/x", "GET http://[2001:db8::1]:81/x", "GET http://[2001:db8::1/x",
        "GET http://192.0.2.1/x", "GET http://192.0.2.1", "GET http://192.0.2.10/x",
        "GET http://192.0.2.1.5/x", "GET http://a/x", "GET http://a", "GET http://aa/x",
        "GET /x", "GET //a.example/x", "OPTIONS *", "CONNECT a.example:443",
        "CONNECT http://a.example/x", "GET http:/a", "GET http://", "GET ftp://a.example/x",
        "GET http://\(name(57))/x", "GET http://\(name(58))/x", "GET http://\(name(56))/x",
    ]

    private static func name(_ count: Int) -> String { String(repeating: "n", count: count) }

    private func head(_ line: String, host: String) -> [UInt8] {
        latin1("\(line) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
    }

    @Test(arguments: ["a.example", "a.examplf", "b", "a.example:80"])
    func `a target means the same whatever target came before it`(host: String) {
        for line in Self.lines {
            let bytes = head(line, host: host)
            let expected = parseRequest(bytes)
            for former in Self.lines {
                let before = head(former, host: host)
                #expect(
                    parseRequest(bytes, after: before) == expected, "\(line) after \(former)")
            }
        }
    }

    @Test func `a target that comes byte by byte is compared when it is whole`() {
        let before = head("GET http://a.example/x", host: "a.example")
        for line in Self.lines {
            let bytes = head(line, host: "a.example")
            #expect(parseRequest(bytes, .byteByByte, after: before) == parseRequest(bytes))
        }
    }

    @Test func `an empty line in front moves everything`() throws {
        let before = head("GET http://a.example:81/x", host: "b")
        let bytes = latin1("\r\n") + head("POST http://a.example:81?q", host: "b")
        #expect(parseRequest(bytes, after: before) == parseRequest(bytes))
        #expect(parseRequest(before, after: bytes) == parseRequest(before))
    }

    private func conflicts(_ name: String, host: String) throws -> Bool {
        let head = try requestHead("GET http://\(name)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        return head.hostConflicts
    }

    @Test func `Host is held against the target to its last byte`() throws {
        for count in 1...40 {
            let name = String(repeating: "h", count: count)
            #expect(try !conflicts(name, host: name))
            for place in 0..<count {
                var other = Array(name)
                other[place] = "i"
                #expect(
                    try conflicts(name, host: String(other)), "byte \(place) of \(count)")
            }
        }
    }
}
