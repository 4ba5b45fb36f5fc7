import PinfoldMetrics
import Testing

@testable import PinfoldEngine

@Suite("Accept in heads that cannot be parsed")
struct AcceptFieldTests {
    @Test(
        arguments: [
            ("", false),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nAccept: application/json\r\nHost : a\r\n\r\n", true),
            ("GET / HTTP/1.1\r\naCCept:APPLICATION/json\r\n\r\n", true),
            ("GET / HTTP/1.1\nAccept: application/json\n\n", true),
            ("\r\n\r\nGET / HTTP/1.1\r\nAccept: application/json\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nAccept: application/json", true),
            ("GET / HTTP/1.1\r\nAccept: application/json;q=0\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nAccept: application/json\r\nAccept: text/plain\r\n\r\n", false),
            (
                "GET / HTTP/1.1\r\nAccept: text/plain;q=0.1\r\nAccept: application/json\r\n\r\n",
                true
            ),
            ("GET /application/json HTTP/1.1\r\nHost: a\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nX-Accept: application/json\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nAccept-Encoding: application/json\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nAccept : application/json\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\nAccept: application/json\r\n", false),
            ("Accept:", false), ("Accept", false), ("\r", false), ("\n\n\n", false),
        ] as [(String, Bool)])
    func `the Accept lines of a head that cannot be parsed are read`(
        head: String, prefersJSON: Bool
    ) {
        let bytes = Array(head.utf8)
        let accepted = AcceptedMediaTypes(unreadHead: bytes.span)
        #expect(accepted.prefersJSON == prefersJSON)
    }
}
