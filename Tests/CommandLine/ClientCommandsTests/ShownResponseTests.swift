import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient
@testable import pinfold

@Suite("A response on a terminal")
struct ShownResponseTests {
    @Test func `is indented JSON, in colours on request`() {
        let text = Array(#"{"a":[1,"x\u001b",null],"b":{},"c":[],"d":{"e":true}}"#.utf8)
        let plain = """
            {
              "a": [
                1,
                "x\\u001b",
                null
              ],
              "b": {},
              "c": [],
              "d": {
                "e": true
              }
            }

            """
        #expect(PrettyJSON.text(of: text, hasColors: false)?.lowercased() == plain)
        let colored = PrettyJSON.text(of: Array(#"{"a":1}"#.utf8), hasColors: true)
        #expect(
            colored == "{\n  \u{1B}[34;1m\"a\"\u{1B}[0m: \u{1B}[36m1\u{1B}[0m\n}\n")
    }

    @Test func `has no control characters`() {
        let text = "{\"a\u{9B}31m\": \"b\u{7F}\"}"
        let shown = PrettyJSON.text(of: Array(text.utf8), hasColors: false)
        #expect(shown == "{\n  \"a\\u009b31m\": \"b\\u007f\"\n}\n")
    }

    @Test func `is left as it is if it is not JSON`() {
        #expect(PrettyJSON.text(of: Array("{".utf8), hasColors: false) == nil)
        let long = [UInt8](repeating: 0x20, count: PrettyJSON.maximumBytes + 1)
        #expect(PrettyJSON.text(of: long, hasColors: false) == nil)
    }

    @Test func `is described without control characters, wherever they are`() throws {
        let lines = Locked("")
        let monitor = VerboseMonitor { line in lines.withLock { $0 += line } }
        let request = try HTTPRequest(.get, "http://a.test/x")
        var fields = HTTPFields()
        fields[.server] = "a\u{9B}31m\tb"
        monitor.request(
            .next(),
            .received(
                HTTPResponse(
                    status: .init(code: 200, reasonPhrase: "O\u{9B}K"), headerFields: fields),
                to: request))
        monitor.request(
            .next(), .failed(ClientError(.badResponse, "bad\u{1B}[2J\u{85}"), of: request))
        #expect(
            lines.withLock { $0 }
                == "< 200 O\\u009bK\n< Server: a\\u009b31m\\u0009b\n<\n"
                + "* failed (\(ClientError(.badResponse, "").token)): bad\\u001b[2J\\u0085\n")
    }

    private func written(_ format: String) throws -> String {
        let request = try HTTPRequest(.get, "http://a.test/x")
        let head = HTTPResponse(status: .notFound, headerFields: [.contentType: "text/x"])
        return try WriteOut(format).text(
            WriteOut.Subject(
                response: head, method: request.method, url: request.url,
                metrics: TaskMetrics(task: .next())))
    }

    @Test(arguments: [
        ("%{http_code} %{response_code}\\n", "404 404\n"),
        ("%{url_effective}|%{content_type}|%{method}", "http://a.test/x|text/x|GET"),
        ("100%% \\t\\r\\x %", "100% \t\r\\x %"), ("%{time_total}", "0.000000"),
        ("%{num_redirects}%{remote_ip}", "0"), ("", ""),
    ])
    func `is described in a format of the caller's`(format: String, text: String) throws {
        #expect(try written(format) == text)
    }

    @Test(arguments: [
        ("%{http_code} %{http_version} %{num_redirects}", "000 0 0"), ("%{time_total}", "0.000000"),
        ("%{remote_ip}:%{remote_port} %{content_type}", ":0 "), ("%{url_effective}", "a b"),
    ])
    func `is described as missing if there was none`(format: String, text: String) throws {
        #expect(try WriteOut(format).text(WriteOut.Subject(method: .get, url: "a b")) == text)
    }

    @Test func `has no variables but those that are known`() {
        #expect(throws: (any Error).self) { try WriteOut("%{nonsense}") }
    }
}
