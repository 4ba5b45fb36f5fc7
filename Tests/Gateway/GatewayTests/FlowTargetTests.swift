import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("What a record says about the request's target")
struct FlowTargetTests {
    struct Case: Sendable {
        var method = "GET"
        var target: String
        var host = ""
        var tunnel = ""
        var authority = ""
        var isSecure = false
        var expected: String
    }

    static let cases = [
        Case(target: "http://a.example/b/c?d=e#f", expected: "http a.example 80 /b/c"),
        Case(target: "http://user:secret@A.Example:81?token=x", expected: "http a.example 81 /"),
        Case(target: "HTTPS://a.example", expected: "https a.example 443 /"),
        Case(target: "http://[2001:db8::1]:8080/", expected: "http 2001:db8::1 8080 /"),
        Case(target: "http://[2001:db8::1]/x", expected: "http 2001:db8::1 80 /x"),
        Case(method: "CONNECT", target: "a.example:443", expected: "- a.example 443 -"),
        Case(method: "CONNECT", target: "[::1]:8443", expected: "- ::1 8443 -"),
        Case(
            target: "/p?q", host: "other", tunnel: "a.example:443",
            expected: "https a.example 443 /p"),
        Case(target: "/p", authority: "a.example:80", expected: "http a.example 80 /p"),
        Case(target: "/p", host: "a.example", isSecure: true, expected: "https a.example 443 /p"),
        Case(method: "OPTIONS", target: "*", host: "a.example:81", expected: "http a.example 81 *"),
        Case(target: "/p", expected: "http - - /p"),
        Case(target: "", expected: "- - - -"),
        Case(target: "nonsense", expected: "- - - -"),
    ]

    @Test(arguments: cases)
    func `has neither user information nor a fragment, and a query apart`(_ one: Case) {
        var record = LoggedRequest.record()
        if one.isSecure { record.clientTLS = .tls13 }
        let texts = [one.method, one.target, one.host, one.tunnel, one.authority].map {
            Array($0.utf8)
        }
        let target = texts[0].withUnsafeBytes { method in
            texts[1].withUnsafeBytes { target in
                texts[2].withUnsafeBytes { host in
                    texts[3].withUnsafeBytes { tunnel in
                        texts[4].withUnsafeBytes { authority in
                            let none = UnsafeRawBufferPointer(start: nil, count: 0)
                            return FlowTarget(
                                FlowQueue.Entry(
                                    record: record, method: method, target: target, host: host,
                                    userAgent: none, referer: none, cipherSuite: none,
                                    subject: none, tunnel: tunnel, steps: none, rule: none,
                                    reported: none, user: none, way: none, authority: authority))
                        }
                    }
                }
            }
        }
        let host = target.hostAndPort.host
        let port = target.port.map { "\($0)" }
        let shown = [target.scheme, host.isEmpty ? nil : host, port, target.path].map { $0 ?? "-" }
        #expect(shown.joined(separator: " ") == one.expected)
    }
}
