import Engine
import Testing

@testable import PinfoldClient

@Suite("An error of the client")
struct ClientErrorTests {
    @Test(
        arguments: [
            ("http://a.test/x", "http://a.test/x"), ("http://a.test/@x", "http://a.test/@x"),
            ("http://a.test:80/x:y@z", "http://a.test:80/x:y@z"),
            ("http://[::1]:80/@x", "http://[::1]:80/@x"), ("/x/@y", "/x/@y"),
            ("http://a.test?b=c@d", "http://a.test?b=c@d"),
            ("http://u:secret@a.test/", "http://***@a.test/"),
            ("http://u:sec/ret@a.test/", "http://***@a.test/"),
            ("http://u:sec?re#t@a.test", "http://***@a.test"),
            ("http:/u:secret@a.test/x", "http:/***@a.test/x"),
            ("HTTPS:u:secret@a.test", "***@a.test"),
            ("http:\\\\u:secret@a.test", "***@a.test"),
            ("http:/u:sec/ret@a.test", "http:/***@a.test"), ("u:secret@a.test", "***@a.test"),
        ])
    func `has no credentials in its URL, be it well-formed or not`(url: String, shown: String) {
        #expect(ClientError(.invalidRequest, "", url: url).url == shown)
    }

    @Test func `does not speak of a gateway where descriptors are wanting`() {
        let error = ClientError(ExchangeFault.descriptorsExhausted)
        #expect(error.explanation == "the process has no file descriptor left")
        #expect(error.token == "descriptors-exhausted")
    }
}
